// Package plan decides what the scaler does: Decide takes a snapshot and a
// policy and returns actions, a verdict on every waiting pod, node and group,
// and the moment of the next look. It has no clock, no client, no logger and no
// memory of its own.
//
//	decide.go      Decide: the policy in ten lines, in the order of claims
//	policy.go      Policy: the flags
//	action.go      what may be done; verdict.go, reason.go: what is said
//
// What there is:
//
//	look.go        the snapshot in a fixed order, with its parts joined; order.go the
//	               order of its pods, kept from look to look
//	owner.go       groups that other clusters own
//	stage.go       where a node stands between its coming and its going
//	taints.go      taints that a node has only until it is up; devices.go what it
//	               reports only then
//	learn.go       shapes, corrected by the nodes that came of them: labels.go their
//	               labels and taints, room.go what pods may have there; and what is
//	               remembered for groups without nodes: seen.go their memory, lesson.go
//	               all else
//	differs.go     where nodes are not as their shape was, and which tag would mend it
//
// What came of earlier looks:
//
//	launch.go      launches in zones of our choice: tokens, answers, repetition
//	overdue.go     what was asked for and does not come
//	neverready.go  instances that never became nodes that are Ready; warmpool.go
//	               those that stand in a pool
//	cause.go       how far the cause of a failed launch reaches
//	backoff.go     pauses by zone, group and quota
//	promise.go     pods for which a node came that does not take them
//	termination.go instances that Auto Scaling takes: deadline, heartbeat, complete
//	returning.go   drains that were taken back, and agents that fell silent
//	owndrains.go   what nodes tell of themselves, as far as it counts for others
//
// What pods need:
//
//	waiting.go     which pods wait, and where they could go without a new node
//	release.go     nodes that rebalance recommendations closed, and that are opened
//	disputed.go    pods with room that kube-scheduler leaves waiting
//	place.go       places for pods: nodes that serve, that come, that are kept
//	grow.go        new nodes for the rest: one plan over all groups
//	foresee.go     zones without a node, for pods that spread
//	expander.go    which of several groups grows; priorities.go as people prefer
//	similar.go     groups that are alike, and help each other out
//	limits.go      how large the cluster may be, and which groups are well
//	gang.go        pods that find places all together or not at all
//	headroom.go    room that is kept free for pods to come; reserve.go keeps nodes for it
//
// What can go, and what is said:
//
//	retire.go      nodes that nobody needs; refuge.go places for the pods of those that go
//	eligible.go    the rules of a node alone; utilization.go what counts as used
//	atonce.go      how many go at once; zonehealth.go zones that may be partitioned
//	excess.go      groups that are above desired
//	unneeded.go    its clock; unready.go that of nodes that are not Ready any more
//	delays.go      how long groups rest after something
//	replace.go     some nodes for a cheaper one: the swap that is under way
//	replaceseek.go which may be swapped for which; replaceworth.go what is worth while
//	retiring.go    retirements under way: on to their end, or back
//	outofservice.go nodes whose machines are switched off
//	verdicts.go    the plan put together
//	whynot.go      why each group has no node for a pod
//
// testdata/scenarios shows it at work.
package plan
