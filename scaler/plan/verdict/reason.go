package verdict

import "windlass.dev/windlass/pkg/statuspage"

// Reason is a verdict in one word, for metrics, Events and tests.
type Reason = statuspage.Reason

// Reasons of pending pods.
const (
	// PodTriggersScaleUp: a group grows for it now.
	PodTriggersScaleUp Reason = "TriggersScaleUp"
	// PodRivalled: a group would grow for it, were no Cluster Autoscaler alive.
	PodRivalled Reason = "OtherAutoscaler"
	// PodFitsUpcoming: an upcoming node, or one about to be launched, has room for it.
	PodFitsUpcoming Reason = "FitsUpcomingNode"
	// PodFitsNode: a node has room; kube-scheduler will place it.
	PodFitsNode Reason = "FitsNode"
	// PodNotScheduled: a node has room for it, and kube-scheduler finds none for minutes.
	PodNotScheduled Reason = "NotScheduled"
	// PodNoGroupFits: no group's node could take it.
	PodNoGroupFits Reason = "NoNodeGroupFits"
	// PodGroupsUnavailable: groups that could take it are at max or in back-off.
	PodGroupsUnavailable Reason = "GroupsUnavailable"
	// PodCancelsScaleDown: a node that was to be scaled down stays for it.
	PodCancelsScaleDown Reason = "CancelsScaleDown"
	// PodGated: it has scheduling gates.
	PodGated Reason = "SchedulingGated"
	// PodNominated: kube-scheduler makes room for it on a node.
	PodNominated Reason = "Nominated"
	// PodOtherScheduler: another scheduler places it.
	PodOtherScheduler Reason = "OtherScheduler"
	// PodTooYoung: it is not old enough to trigger scale-up.
	PodTooYoung Reason = "TooYoung"
	// PodGangDoesNotFit: it is one of a gang for which there is not room enough.
	PodGangDoesNotFit Reason = "GangDoesNotFit"
	// PodTermsLeftOut: pods of its namespace say too much of others for one evaluation.
	PodTermsLeftOut Reason = "PodTermsLeftOut"
	// PodBudgetSpent: other pods of its namespace have used up the work of an evaluation.
	PodBudgetSpent Reason = "EvaluationBudgetSpent"
	// PodExpendable: its priority is below the cut-off, so it triggers no scale-up.
	PodExpendable Reason = "Expendable"
)

// Reasons of nodes.
const (
	NodeNeeded             Reason = "Needed"           // used above the threshold
	NodeNoPlace            Reason = "NoPlaceForPods"   // some pod has no other place
	NodeBlocked            Reason = "BlockedByPod"     // a pod's rule forbids it
	NodeHeadroom           Reason = "NeededAsHeadroom" // it has room that is kept free
	NodeHeld               Reason = "Held"             // people keep it, or two Nodes name its instance
	NodeUnneeded           Reason = "Unneeded"         // unneeded: its clock runs, or is over and it waits
	NodeGroupAtMin         Reason = "GroupAtMin"       // its group may not shrink
	NodeScalingDown        Reason = "ScalingDown"      // drained for us, now or soon
	NodeScaleDownCancelled Reason = "ScaleDownCancelled"
	NodeCordonReleased     Reason = "CordonReleased" // what a rebalance recommendation closed takes pods again
	NodeDraining           Reason = "Draining"       // Auto Scaling, EC2 or a person takes it
	NodeTerminating        Reason = "Terminating"    // past the point of no return
	NodeUpcoming           Reason = "Upcoming"       // registered, not Ready yet, or not with the devices it came for
	NodeUnready            Reason = "Unready"
	NodeZoneUnready        Reason = "ZoneUnready" // not Ready, as are so many of its zone that it stays
	// NodeOutOfService: its machine is switched off, and its volumes are detached by force.
	NodeOutOfService     Reason = "OutOfService"
	NodeNeverReady       Reason = "NeverReady" // it registered and did not come up in time
	NodeRetained         Reason = "Retained"   // its instance was retained after a hook was abandoned
	NodeInWarmPool       Reason = "InWarmPool" // its instance waits there until its group grows
	NodeNotInAnyGroup    Reason = "NotInAnyGroup"
	NodeObserved         Reason = "Observed"         // people want nothing to be done with its group
	NodeScaleDownStopped Reason = "ScaleDownStopped" // nothing of its group is scaled down now
	NodeReplaced         Reason = "Replaced"         // a cheaper node replaces it
	NodeNotEvaluated     Reason = "NotEvaluated"     // not asked yet: groups grow, or the search has used up its work
)

// Reasons of groups.
const (
	GroupScalingUp         Reason = "ScalingUp"
	GroupSteady            Reason = "Steady"
	GroupNodesUpcoming     Reason = "NodesUpcoming"
	GroupAtMax             Reason = "AtMax"
	GroupClusterLimit      Reason = "ClusterAtLimit" // the whole cluster may not grow by its nodes
	GroupUnhealthy         Reason = "Unhealthy"      // too many of its nodes are unready
	GroupBackOff           Reason = "InBackOff"
	GroupUnfulfilled       Reason = "Unfulfilled"             // what was asked for does not come
	GroupAboveDesired      Reason = "AboveDesired"            // it has more instances than desired
	GroupFaulty            Reason = "Faulty"                  // something is wrong with its definition
	GroupNodesDiffer       Reason = "NodesDifferFromTemplate" // its nodes are not as planned
	GroupHeadroomShort     Reason = "HeadroomShort"           // less room is free than there shall be
	GroupForeignHook       Reason = "ForeignHook"             // only hooks of others hold its terminations
	GroupHookMissing       Reason = "HookMissing"             // no hook holds its terminations
	GroupHookMisconfigured Reason = "HookMisconfigured"       // our hook holds them in a way that may lose pods
	GroupHookCutIn         Reason = "HookCompletedByOthers"   // something else completes our hook
	GroupRetainsCapacity   Reason = "RetainsCapacity"         // instances that count for nothing are paid for
	GroupSuspended         Reason = "LaunchSuspended"         // Auto Scaling launches nothing now
	GroupReplacing         Reason = "Replacing"               // Auto Scaling replaces its instances; it does not shrink
	GroupZonesUneven       Reason = "ZonesUneven"             // and Auto Scaling would even them out
	GroupOtherAutoscaler   Reason = "OtherAutoscaler"         // a Cluster Autoscaler is alive
	// GroupForeign: its instances serve, and none ever was a Node of this cluster.
	GroupForeign Reason = "ForeignGroup"
	// GroupUnrecognised: some of its instances are no Nodes, and are not ended.
	GroupUnrecognised Reason = "UnrecognisedInstances"

	GroupOwnedByAnother Reason = "OwnedByAnotherCluster" // by its tag
	GroupUnclaimed      Reason = "Unclaimed"             // its tag is yet to be written
	GroupObserved       Reason = "Observed"              // people want nothing to be done with it
)
