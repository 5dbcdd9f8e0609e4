package verdict

// Reason is a verdict in one word, for metrics, Events and tests.
type Reason string

// Reasons of waiting pods.
const (
	// PodGetsNode: a group grows for it now.
	PodGetsNode Reason = "TriggersScaleUp"
	// PodRivalled: a group would grow for it, were no Cluster Autoscaler alive.
	PodRivalled Reason = "OtherAutoscaler"
	// PodFitsComing: a node that is on its way, or is about to be launched, has room for it.
	PodFitsComing Reason = "FitsUpcomingNode"
	// PodFitsFree: a node has room; kube-scheduler will place it.
	PodFitsFree Reason = "FitsNode"
	// PodDisputed: a node has room for it, and kube-scheduler finds none for minutes.
	PodDisputed Reason = "NotScheduled"
	// PodFitsNothing: no group's node could take it.
	PodFitsNothing Reason = "NoNodeGroupFits"
	// PodGroupsFull: groups that could take it are at max or in back-off.
	PodGroupsFull Reason = "GroupsUnavailable"
	// PodKeepsNode: a node that was to go stays for it.
	PodKeepsNode Reason = "CancelsScaleDown"
	// PodGated: it has scheduling gates.
	PodGated Reason = "SchedulingGated"
	// PodNominated: kube-scheduler makes room for it on a node.
	PodNominated Reason = "Nominated"
	// PodOfOther: another scheduler places it.
	PodOfOther Reason = "OtherScheduler"
	// PodYoung: it is not old enough to bring a node.
	PodYoung Reason = "TooYoung"
	// PodGangShort: it is one of a gang for which there is not room enough.
	PodGangShort Reason = "GangDoesNotFit"
	// PodTermsLeftOut: pods of its namespace say too much of others for one evaluation.
	PodTermsLeftOut Reason = "PodTermsLeftOut"
	// PodBudgetSpent: other pods of its namespace have used up the work of an evaluation.
	PodBudgetSpent Reason = "EvaluationBudgetSpent"
	// PodExpendable: its priority is below the cut-off, so it brings no node.
	PodExpendable Reason = "Expendable"
)

// Reasons of nodes.
const (
	NodeNeeded      Reason = "Needed"           // used above the threshold
	NodeNoPlace     Reason = "NoPlaceForPods"   // some pod has no other place
	NodeBlocked     Reason = "BlockedByPod"     // a pod's rule forbids it
	NodeHeadRoom    Reason = "NeededAsHeadroom" // room is kept free, and it has some of that
	NodeHeld        Reason = "Held"             // people keep it
	NodeWaiting     Reason = "Unneeded"         // unneeded, its clock runs
	NodeMinSize     Reason = "GroupAtMin"       // its group may not shrink
	NodeRetiring    Reason = "ScalingDown"      // drained for us, now or soon
	NodeKept        Reason = "ScaleDownCancelled"
	NodeReleased    Reason = "CordonReleased" // what a rebalance recommendation closed takes pods again
	NodeLeaving     Reason = "Draining"       // Auto Scaling or EC2 takes it
	NodeTerminating Reason = "Terminating"    // past the point of no return
	NodeComing      Reason = "Upcoming"       // registered, not Ready yet
	NodeUnready     Reason = "Unready"
	NodeZoneUnready Reason = "ZoneUnready" // not Ready, as are so many of its zone that it stays
	// NodeOutOfService: its machine is switched off, and its volumes are detached by force.
	NodeOutOfService Reason = "OutOfService"
	NodeNeverReady   Reason = "NeverReady" // it registered and did not come up in time
	NodeRetained     Reason = "Retained"   // its instance was kept after a hook was abandoned
	NodePooled       Reason = "InWarmPool" // its instance waits there until its group grows
	NodeNotOurs      Reason = "NotInAnyGroup"
	NodeStays        Reason = "ScaleDownStopped" // nothing is retired now
	NodeReplaced     Reason = "Replaced"         // a cheaper node comes in its stead
	NodeNotAsked     Reason = "NotEvaluated"     // groups grow, and nobody asks yet whether it could go
)

// Reasons of groups.
const (
	GroupGrows        Reason = "ScalingUp"
	GroupSteady       Reason = "Steady"
	GroupComing       Reason = "NodesUpcoming"
	GroupAtMax        Reason = "AtMax"
	GroupClusterLimit Reason = "ClusterAtLimit" // the whole cluster may not grow by its nodes
	GroupUnhealthy    Reason = "Unhealthy"      // too many of its nodes are unready
	GroupBackOff      Reason = "InBackOff"
	GroupUnfulfilled  Reason = "Unfulfilled"             // what was asked for does not come
	GroupAboveDesired Reason = "AboveDesired"            // it has more instances than desired
	GroupFaulty       Reason = "Faulty"                  // something is wrong with its definition
	GroupShapeDiffers Reason = "NodesDifferFromTemplate" // its nodes are not as planned
	GroupShort        Reason = "HeadroomShort"           // less room is free than there shall be
	GroupForeignHook  Reason = "ForeignHook"             // only hooks of others hold its terminations
	GroupHookMissing  Reason = "HookMissing"             // no hook holds its terminations
	GroupHookAmiss    Reason = "HookMisconfigured"       // our hook holds them in a way that may lose pods
	GroupRetains      Reason = "RetainsCapacity"         // instances that count for nothing are paid for
	GroupSuspended    Reason = "LaunchSuspended"         // Auto Scaling launches nothing now
	GroupReplacing    Reason = "Replacing"               // Auto Scaling replaces its instances; it does not shrink
	GroupRebalances   Reason = "ZonesUneven"             // and Auto Scaling would even them out
	GroupRivalled     Reason = "OtherAutoscaler"         // a Cluster Autoscaler is alive
	// GroupForeign: its instances serve, and none ever was a Node of this cluster.
	GroupForeign Reason = "ForeignGroup"
	// GroupUnrecognised: some of its instances are no Nodes, and are not ended.
	GroupUnrecognised Reason = "UnrecognisedInstances"

	GroupOwnedByAnother Reason = "OwnedByAnotherCluster" // by its tag
	GroupUnclaimed      Reason = "Unclaimed"             // its tag is yet to be written
)
