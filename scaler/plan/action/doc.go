// Package action is what may be done, as data: each action carries what it expects to find, and
// names its lane, what must be persisted before it, and what it is in words. No action does
// anything; scaler/act carries them out.
//
//	action.go        groups, nodes, hooks and buffers
//	drain.go         drains that the scaler carries on in place of an agent
//	outofservice.go  nodes whose machines are switched off
//	takeover.go      what a Cluster Autoscaler that is gone left on a node
//	traits.go        the table of what others have to know of each: which goes first, what it
//	                 is about, what must be persisted before it
package action
