// Package upstream asks kube-scheduler's own filter plugins, out of
// k8s.io/kubernetes: the rules themselves and not a copy of them. Package fit
// asks it what is asked seldom (a class of pods against a class of nodes; volumes,
// claims and devices), and its tests hold against it what fit counts by itself.
//
//	gates.go    the feature gates of a server version
//	reckoning.go which of these gates change what others count of a pod
//	filters.go  Filters: the plugins, and the questions about a pod and a node alone
//	question.go a pod, with what the plugins prepared for it
//	seldom.go   the questions about volumes and devices
//	host.go     Host: a node, there or to come, with the pods that have any
//	seat.go     seats: volumes assumed and devices allocated, and given back
//	world.go    what there is of volumes and devices, and what is only simulated
//	devices.go  who has which device
//	handle.go   what the plugins ask of the scheduler that they think they run in
//	memory      informers without a server
//
// The plugins are called one by one and not through the scheduler's framework,
// which stops at the first that refuses, measures itself in the background and
// asks those too that a pod has nothing for.
package upstream
