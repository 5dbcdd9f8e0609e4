// Package plan decides what the scaler does: Decide takes a snapshot and a
// policy and returns actions, a verdict on every waiting pod, node and group,
// and the moment of the next look. It has no clock, no client, no logger and no
// memory of its own.
//
//	decide.go      Decide: the policy in ten lines, in the order of claims
//	policy.go      Policy: the flags
//	action.go      what may be done; verdict.go, reason.go: what is said
//
//	look.go        the snapshot in a fixed order, with its parts joined
//	stage.go       where a node stands between its coming and its going
//	warmpool.go    nodes that registered in a warm pool
//	backoff.go     failed launches, instances that never became nodes
//	termination.go instances that Auto Scaling takes: deadline, heartbeat, complete
//	place.go       places for pods: nodes that serve, that come, that are kept
//	waiting.go     which pods wait, and where they could go without a new node
//	grow.go        new nodes for the rest: one plan over all groups
//	expander.go    which of several groups grows; priorities.go as people prefer
//	similar.go     groups that are alike, and help each other out
//	limits.go      how large the cluster may be, and which groups are well
//	gang.go        pods that find places all together or not at all
//	retiring.go    retirements under way: on to their end, or back
//	returning.go   drains that were taken back, and agents that fell silent
//	retire.go      nodes that nobody needs
//	verdicts.go    the plan put together
//
// testdata/scenarios shows it at work.
package plan
