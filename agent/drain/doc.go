// Package drain decides what the agent does with its node: a pure function of
// what is seen of it at one moment.
//
//	view.go        View: the node, its pods, the notices, what came of evictions
//	tries.go       Tries: what came of evictions so far, and when to ask again
//	next.go        Next: the answer, and how it prints
//
//	decide.go      Decide: is there a drain, is one to be undone, or neither
//	dates.go       what was written by a clock that was wrong
//	standing.go    which notices stand, and how each is answered
//	noticed.go     the list of them on the Node
//	memory.go      what an earlier agent has written there, and how far that counts
//	served.go      what is kept of those that are done with
//	reboot.go      those that a reboot has fulfilled
//
//	node.go        what a closed or cordoned node looks like, and one that no longer is
//	deadline.go    until when, and how urgent
//	permit.go      why no pod is asked to leave yet
//	pods.go        every pod judged: what hinders, whose turn it is
//	returns.go     what came back to the node of what was evicted
//	evictions.go   who is evicted now, and with what grace
//	budgets.go     when a budget that has refused is asked again
//	lastchance.go  who is deleted before the deadline
//	volumes.go     what an empty node still waits for
//	dryrun.go      what would be done, where nothing shall be
//	report.go      the report, and how seldom it is written
//	told.go        the Events, each once
//
// Decide keeps no state. Everything that must survive a restart stands on the Node: who
// cordoned it, for which notice, since when, under which boot, how far, which Events were
// written. Of what the process keeps, Tries costs one refused request for each pod when it is
// lost, and Unwritten matters only while the Node cannot be written.
//
// Carrying out an answer and deciding again gives nothing new; so does deciding
// with the same facts in another order.
package drain
