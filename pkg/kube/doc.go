// Package kube is the little that both programs need of the Kubernetes API
// beside the typed clients:
//
//	config.go  how to reach the API server: in a cluster, or by a kubeconfig
//	state.go   NodeState: the part of a Node that Windlass writes
//	patch.go   NodePatch: one atomic, guarded write of it
//	denied.go  what an admission webhook denies
//	account.go is our account one that admission policies confine
//	events.go  EventWriter: Events, at a bounded rate
//	bound.go   Bound: how much of an answer is read
//	clock.go   Clock: the API server's time, where the node's own is off
//	gone.go    does an answer say that a pod is no more
//	lease/     one leader among replicas (the scaler's; the agent links none of it)
//
// A write carries what it expects to find. If the world differs it fails with
// ErrChanged, and whoever asked for it looks again and decides anew: there is
// no retry in here.
//
// The agent is paid for on every node, so this package imports neither the
// clientset nor informers.
package kube
