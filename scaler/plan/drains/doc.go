// Package drains is the drains under way that need places for their pods: which may begin, how
// those for scale-down end, and which others end with the instance before EC2 takes it.
//
//	drains.go      what it needs of the other rooms
//	permit.go      drains that wait for a permit: whose turn it is
//	cancel.go      cancelling a scale-down; places for the pods of nodes that are removed
//	scaledowns.go  scale-downs under way: on to their end, or back; instances that are ended before
//	               EC2 takes them; what of drains and growth is persisted no longer
//	replaced.go    groups of which Auto Scaling replaces instances
//	burst.go       how fast a group grows
//	unspoken.go    the verdict of a node of which no step has spoken
package drains
