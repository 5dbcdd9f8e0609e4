// Package hooks answers for instances that Auto Scaling, EC2 or people take, or give back. It is
// acted on first, and does not ask what fits where: no pending pod makes it late.
//
//	hooks.go        lifecycle hooks: heartbeats, and when they are completed
//	termination.go  the deadline that a node's agent gets
//	cutin.go        completions by something else
//	hookremarks.go  what people should know of a group's hooks
//	takenback.go    drains that were cancelled
//	survivors.go    instances that outlived their termination
//	switchedoff.go  nodes whose machines are switched off
//	takeover.go     what a Cluster Autoscaler that is gone left is taken off
package hooks
