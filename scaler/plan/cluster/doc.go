// Package cluster is what one evaluation knows: the snapshot in a fixed order with its parts
// joined. Nothing in it asks which pod fits where.
//
// Facts are settled once New and FindStages are done, but for which instances are recognised
// and how large the whole is: rooms that need these ask for them first (Recognise, Measure). What
// steps settle is collected beside the facts: actions, verdicts, the persisted state, the next
// evaluation (cluster.go), and on groups and nodes what is planned for each (group.go, node.go).
//
//	cluster.go      the whole: joining its parts
//	group.go        one group: its size, prices, pauses
//	node.go         one node: its pods, whether it is up, what it is worth
//	pods.go         pods: which of them want a node
//	order.go        their order, kept from evaluation to evaluation
//	stage.go        where a node stands between registration and termination
//	reports.go      what scaler, agent and people wrote on a node
//	permit.go       which drains wait for a permit, and how many drain at once
//	owndrains.go    what nodes tell of themselves, as far as it counts for others
//	passage.go      instances that Auto Scaling moves in or out of service, and their deadlines
//	returning.go    nodes whose instance is in service again
//	warmpool.go     instances in warm pools; when a node should be up
//	recognise.go    instances that are no Nodes here: strangers, conflicts, the brake on ending them
//	owner.go        groups that other clusters own
//	others.go       other autoscalers and termination handlers
//	devices.go      devices that a node reports only when it is up
//	successor.go    pods that end and whose successors are still to come
//	urgency.go      how urgent a drain is
//	zonehealth.go   zones that may be partitioned
//	limits.go       how large the cluster may be, and which groups are unhealthy
//	state.go        the persisted state: copied, compacted; the clock of an evaluation
package cluster
