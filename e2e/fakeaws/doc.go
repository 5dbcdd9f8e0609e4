// Package fakeaws is the AWS side of the test bed: EC2 Auto Scaling, EC2, EKS and STS over HTTP in their real protocols, and an instance metadata service
// for each instance. Any AWS SDK, the aws command line, Cluster Autoscaler and the Node Termination Handler work against it with the standard endpoint
// variables (AWS_ENDPOINT_URL, AWS_EC2_METADATA_SERVICE_ENDPOINT).
//
//	s, err := fakeaws.Start(fakeaws.Config{Spec: fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 10, Type: "m5.large"}}}})
//	defer s.Close()
//	s.OnInstance(func(i fakeaws.Instance) { … })              // every change of an instance, in order
//	call, err := s.WaitCall(ctx, fakeaws.Operation("SetDesiredCapacity"), fakeaws.ForGroup("web"))
//
// What AWS does by itself is done on command, by methods or, from scripts, by the control endpoint: POST ControlURL()/COMMAND with a JSON object; see
// control.go for the table. The parts:
//
//	cloud     the state machine: groups, instances, hooks, activities; no clock, no network
//	catalog   the figures of instance types
//	api       the operations, in the shapes of the services
//	wire      the protocols
//	metadata  the instance metadata service
//	iam       what a policy document allows
//	config.go what a server starts with; the words of the cloud
//	server.go the clock and the lock around the cloud   http.go  one request     calls.go  the call log
//	faults.go latency, throttling, errors     rights.go policies, denials     commands.go, control.go  commands
package fakeaws
