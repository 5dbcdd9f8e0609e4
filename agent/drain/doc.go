// Package drain decides what the agent does with its node: a pure function of
// what is seen of it at one moment.
//
//	view.go      View: the node, its pods, the notices, what came of evictions
//	tries.go     Tries: what came of evictions so far, and when to ask again
//	decide.go    Decide: is there a drain, is one to be undone, or neither
//	node.go      what a draining node looks like, and one that no longer is
//	pods.go      what hinders, who is evicted now, how far it is
//	report.go    the report, and how seldom it is written
//	next.go      Next: the answer, and how it prints
//
// Decide has no memory. Everything that must survive a restart stands on the
// Node: who cordoned it, for which notice, since when, how far. Tries is the
// one thing that the process keeps, and losing it costs one refused request
// for each pod.
//
// Carrying out an answer and deciding again gives nothing new; so does deciding
// with the same facts in another order.
package drain
