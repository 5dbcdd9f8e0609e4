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
//	pods.go          pods of our own → processes
//	process.go       a child that cannot outlive us
//	memory.go        what of a program is in memory
//
// Nothing here waits by sleeping: Start returns when the control plane is ready
// and the manifests are applied; everything after that is seen in the API.
package world
