// Package fit answers two questions for the scaler: does this pod fit this
// node, and if not, why not; and how many new nodes do these pods need. Its answers
// are those of kube-scheduler's filter plugins in the default profile, with the
// feature gates of the server's version.
//
// What is known from evaluation to evaluation:
//
//	rules.go     Rules: all that was learned, and when it is forgotten
//	class.go     Class: all that decides where a pod fits, equal for equal pods
//	traits.go    what of a pod's spec counts, found by pointer, by bytes, by meaning
//	terms.go     the terms of a pod about other pods
//	selector.go  all selectors of all terms, and which of them select a pod
//	template.go  NodeTemplate: all of a node, or of a new node, that decides what fits
//	static.go    names, selectors, affinity, taints: asked once of the plugins
//	weigh.go     how many kinds of pods the terms of one may match, before it is a class
//
// What is counted in an evaluation:
//
//	cluster.go   Cluster: what classes count for, and what counts for them
//	place.go     Place: a node with what is on it
//	daemons.go   the pods that a new node comes with
//	resources.go cpu, memory and the rest, as columns of whole numbers
//	ports.go     host ports
//	tally.go     pods by domain
//	affinity.go  inter-pod affinity and anti-affinity
//	spread.go    topology spread
//	routed.go    volumes, claims and devices, which the plugins are asked about
//	expect.go    zones that have no node yet, and could
//	undo.go      seats, and how they are undone
//	trial.go     what-ifs in which nodes are emptied
//	steps.go     what it costs, in steps, and how namespaces share them
//
// What is asked:
//
//	ask.go       does it fit, and why not
//	reason.go    why not, as values with the figures
//	row.go       the first of many places that takes a pod
//	nearest.go   the place of a row that comes nearest, where none takes a pod
//	slots.go     how many pods of a class a place takes
//	load.go      what a place could take beside a load, or without one
//	sorted.go    the order in which pods are placed
//	pack.go      pods onto as few new nodes as possible
//
// Package upstream holds the plugins. What is counted here and not asked there is
// held against kube-scheduler's whole framework by TestAgainstScheduler.
package fit
