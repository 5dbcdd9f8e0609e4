// Package world is a whole small AWS with a cluster in it: a real control plane,
// fake Auto Scaling groups whose instances join as nodes, and the two programs
// as processes with the rights of the manifests.
//
// A world lives in one process. When that process ends, however it ends, all
// that the world started ends too.
//
//	world.go         Start, Close, and what can be asked of a world
//	spec.go          Spec: the world of a script, as YAML
//	controlplane.go  the supervisor of e2e/controlplane as a child
//	build.go         the programs, built from this checkout
//	progress.go      how far that is
//	join.go          instances → Nodes       node.go  what a Node looks like
//	provider.go      an external provider, whose machines they are
//	stray.go         machines that do not register as they should
//	simulated.go     machines of which there is nothing but the Node
//	real.go          machines that boot
//	power.go         kubelets that fall silent, machines that go off
//	runner.go        what runs the pods of both programs
//	pods.go          as processes beside simulated Nodes; ready.go tells that they are Ready
//	ports.go         what they listen at
//	containers.go    as containers of real machines
//	process.go       a child that cannot outlive us, by process_linux.go; elsewhere, by
//	                 process_other.go, it can if we are killed
//	overlay.go       what a kustomization adds to the manifests
//	autoscaler.go    the Deployment of a stand-in for Cluster Autoscaler (autoscaler.yaml)
//	rights.go        the programs held to the IAM policy
//	role.go          the scaler's way to AWS and its credentials, in a pod
//	token.go         the token of a pod, read on its machine
//	clock.go         a scaler whose clock can be set
//	memory.go        what of a program is in memory; usage.go what a pod uses
//
// Nothing here waits by sleeping: Start returns when the control plane is ready
// and the manifests are applied; everything after that is seen in the API.
package world
