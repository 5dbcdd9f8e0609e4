// Package upstream asks kube-scheduler's own filter plugins, out of
// k8s.io/kubernetes: the rules themselves and not a copy of them. Package fit
// asks it what is asked seldom (a class of pods against a class of nodes; volumes,
// claims and devices), and its tests hold against it what fit counts by itself.
//
//	gates.go   the feature gates of a server version
//	filters.go Filters: the plugins, and the questions about a pod and a node alone
//	handle.go  what the plugins ask of the scheduler that they think they run in
//
// The plugins are called one by one and not through the scheduler's framework,
// which stops at the first that refuses, measures itself in the background and
// asks those too that a pod has nothing for.
package upstream
