// Package act carries out the actions of a plan. It decides nothing: it checks that the world
// still is as the action expects, does the one thing, or stops, and the next evaluation
// decides again.
//
//	actor.go     Actor.Do: what must keep its order does, the rest runs side by side
//	group.go     what is asked of Auto Scaling
//	node.go      what is written on Nodes: requests, permits, marks
//	evict.go     cordons and evictions in place of an unresponsive agent
//	hooks.go     hooks that are completed; termination marks that are cleared
//	live.go      which Nodes an instance has, read after the decision
//	terminate.go the point of no return
//	outofservice.go nodes whose machines are switched off
//	takeover.go     what a Cluster Autoscaler that is gone left on a node
//	buffer.go    the status of CapacityBuffers
//	backoff.go   what failed is not tried again at once
//	failures.go  what has failed holds up nothing else
//	announce.go  Events of pods and groups, at a bounded rate
//	podnews.go   the next Event of each pending pod
//	groupnews.go the next Events of groups
//	drainnews.go the Events that an agent would record of its drain
//	nodenews.go  why nodes stay, where that has changed
package act
