// Package cluster is what one evaluation knows: the snapshot in a fixed order with its parts
// joined. Nothing in it asks which pod fits where.
//
// Facts are settled once New and FindStages are done, but for what rooms add that find out more:
// recognition which groups are recognised; launch what launches promise (Desired, LaunchedIn), which
// back-offs run (BackOffs), which instances are lost, and that a node which never came up is no
// place (Stage, Open); scaleup how large the whole is (Measure). Groups and nodes also bear what is
// planned for each and said of it (group.go, node.go): later steps read that.
//
//	cluster.go      the whole: joining its parts
//	group.go        one group: its size, prices, back-offs
//	node.go         one node: its pods, whether it is up, what it is worth
//	pods.go         pods: which of them want a node
//	register.go     who is where, kept from evaluation to evaluation
//	members.go      which instance is in which group
//	row.go          a node as it was read, and what follows from that alone, kept likewise
//	stage.go        where a node stands between registration and termination
//	reports.go      what scaler, agent and people wrote on a node
//	unhurried.go    which drains wait for a permit, and how many drain at once
//	owndrains.go    what nodes report of themselves, as far as it counts for others
//	passage.go      instances that Auto Scaling moves in or out of service, and their deadlines
//	returning.go    nodes whose instance is in service again
//	warmpool.go     instances in warm pools; when a node should be up
//	identity.go     which Node may be which instance, where the providerID does not say so
//	outage.go       how long things take where the API server was away meanwhile
//	owner.go        groups that other clusters own
//	others.go       other autoscalers and termination handlers
//	leftovers.go    what a Cluster Autoscaler that is gone left on a node
//	devices.go      devices that a node reports only when it is up
//	successor.go    pods that end and whose successors are still to come
//	urgency.go      how urgent a drain is
//	zonehealth.go   zones that may be partitioned
//	limits.go       how large the cluster may be, and which groups are unhealthy
//	clock.go        the next evaluation
package cluster
