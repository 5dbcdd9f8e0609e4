// Package observe makes a fleet.Snapshot of the world.
//
//	observer.go  Observer: the watches, the groups, other programs → Snapshot
//	table.go     the latest state of one kind of object, in our words
//	index.go     which row has which key
//	outage.go    when the API server was away
//	watches.go   which kinds are watched, and which of them are vital
//	watch.go     a reflector that fills a table, and its health
//	server.go    the API server's version, and whether it serves devices
//	refusal.go   a right that is missing
//	slim.go      what is dropped of pods and nodes before they are kept
//	daemonsets.go  DaemonSets, and what admission makes of their pods
//	storage.go   likewise of volumes and devices
//	owners.go    the controllers of pods, where a rule asks for them
//	share.go     what pods, or nodes, of one template have in common is kept once
//	buffers.go   CapacityBuffers and what they refer to; bufferobject.go as the API serves
//	             them; scalables.go objects that have pods, such as Deployments
//	priorities.go  which groups people prefer
//	foreignevents.go  what a Cluster Autoscaler says in Events that it did
//	machines.go  what EC2 says of machines that may be down
//	autoscalers.go  is another autoscaler alive beside us, and may it be one
//	handlers.go  Node Termination Handlers
//	nodepools.go Karpenter's
//	nudge.go     something changed: wake whoever decides
//
// Nothing here asks on a timer what a watch can report: from the moment at which a pod is
// seen to be unschedulable until whoever decides is nudged pass a few milliseconds, in which
// what comes with it arrives.
package observe
