// Package view makes of what stands in the cluster what people ask for: pure functions from a
// World to a value that prints as JSON or as a table.
//
//	world.go    what is read of the cluster
//	status.go   one screen
//	why.go      the verdict on a pod, node or group, with what it stands on
//	resolve.go  which of them a name means
//	cost.go     what the nodes cost, and for what
//	story.go    what happened, in order
//	preview.go  what a drain would do; progress.go how far one is
//	reasons.go  what each reason means, and what to do
package view
