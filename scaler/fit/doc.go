// Package fit answers two questions for the scaler: does this pod fit this
// node, and if not, why not; and how many new nodes do these pods need.
//
//	class.go     Class: all that decides where a pod fits, equal for equal pods
//	looks.go     Looks: all of a node, or of a new node, that decides what fits
//	place.go     Place: a node with what is on it; Cluster: places and their undo log
//	static.go    names, selectors, affinity, taints: a verdict per class and looks
//	resources.go cpu, memory and the rest, as packed whole numbers
//	reason.go    why not, as values with the figures
//	row.go       the first of many places that takes a pod
//	pack.go      pods onto as few new nodes as possible
//	unseen.go    what a pod may ask for that is not considered yet
//
// So far resources, host ports, node selectors, required node affinity, taints
// and names are considered, as kube-scheduler does. What else a pod asks for,
// its class says in NotConsidered, so that whoever decides can keep off it and
// a verdict can tell.
package fit
