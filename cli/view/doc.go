// Package view makes of what stands in the cluster what people ask for: pure functions from a
// World to a value that prints as JSON or as a table.
//
//	world.go    what is read of the cluster
//	asof.go     how old an answer is, and what it lacks
//	status.go   one screen
//	why.go      the verdict on a pod, node or group, with what it stands on
//	resolve.go  which of them a name means
//	cost.go     what the nodes cost, and for what; levers.go what would lower that
//	story.go    what happened, in order
//	preview.go  what a drain would do; progress.go how far one is
//	plan.go     what the leader would do now, and what is new about it
//	check.go    what is wrong with the installation; programs.go which programs run, rights.go what
//	            accounts may do
//	lines.go    a node, or some pending pods, in one line
//	reasons.go  what each reason means, and what to do
package view
