// Package standin carries drains on in place of agents that are unresponsive. It takes no other
// drain's turn and asks for no place.
//
//	standin.go    what it keeps while it decides
//	alone.go      which agents are unresponsive; cordon, evict by drainable's tally
//	alonewaits.go what such a drain waits for beside its pods: load balancers, volumes
//	cameback.go   pods that come back to the node that they were evicted from, and what is
//	              persisted of them
//	endedearly.go notices for which an instance is ended before EC2 takes it
package standin
