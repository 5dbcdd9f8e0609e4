// Package observe makes a fleet.Snapshot of the world.
//
//	observer.go  Observer: the watches, the groups, the rival → Snapshot
//	table.go     the latest state of one kind of object, in our words
//	watch.go     a reflector that fills a table, and its health
//	slim.go      what is dropped of an object before it is kept
//	share.go     equal pod specs are kept once
//	rival.go     is a Cluster Autoscaler alive beside us
//	nudge.go     something changed: tell whoever decides
//
// Nothing here asks on a timer what a watch can tell: from the moment at which
// a pod is seen to be unschedulable until whoever decides is nudged pass a few
// milliseconds, in which the rest of a burst arrives.
package observe
