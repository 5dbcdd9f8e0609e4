package contract

// Reasons of the Events that we write. Those that Cluster Autoscaler writes
// too keep its words, so that alerts and dashboards go on working.
const (
	// On pods, by the scaler.
	EventTriggeredScaleUp  = "TriggeredScaleUp"
	EventNotTriggerScaleUp = "NotTriggerScaleUp"
	// On the ConfigMap windlass-status, of groups, by the scaler. A group is no
	// object; Cluster Autoscaler writes of its own on its status ConfigMap too.
	EventScaledUpGroup        = "ScaledUpGroup"
	EventFailedToScaleUpGroup = "FailedToScaleUpGroup"
	EventScaleUpFailed        = "ScaleUpFailed"      // a launch has failed: the group rests
	EventScaleUpTimedOut      = "ScaleUpTimedOut"    // no node came of one: the group rests
	EventDeleteUnregistered   = "DeleteUnregistered" // an instance that never joined was ended
	EventLoweredGroup         = "LoweredGroup"
	EventSuspendedProcess     = "SuspendedProcess" // one of the group's own, such as AZRebalance
	EventClaimedGroup         = "ClaimedGroup"     // its owner tag names this cluster now
	// On the ConfigMap windlass-state, by the scaler.
	EventStateShed = "PersistedStateShed" // it was near its limit, and what costs least to lose was dropped
	// On nodes, by the scaler. Beside these a node is told why it stays by the reason of
	// its verdict, such as NoPlaceForPods: see verdict.Reason.
	EventScaleDown          = "ScaleDown"
	EventScaleDownCancelled = "ScaleDownCancelled"
	EventPermitted          = "DrainPermitted"
	EventTerminated         = "InstanceTerminated"
	EventHookDone           = "LifecycleActionCompleted"
	EventActionFailed       = "ActionFailed"
	EventOutOfService       = "MarkedOutOfService"
	EventInService          = "MarkedInServiceAgain"
	EventTakenOver          = "TakenOver" // what a Cluster Autoscaler had left there was taken off
	// On the ConfigMap windlass-status, of what is decided and not done.
	EventWouldScaleUp   = "WouldScaleUp"
	EventWouldScaleDown = "WouldScaleDown"

	// On its Node by the agent, on the ConfigMap windlass-status by the scaler, as they start:
	// no admission policy confines their account.
	EventNotConfined = "AccountNotConfined"
	// EventMetadataUnread, of a node: its agent does not hear what EC2 and Auto Scaling announce.
	EventMetadataUnread = "MetadataUnread"

	// On nodes, by the agent.
	EventNoticed      = "NoticeReceived" // of a notice for which nothing is drained yet, or ever
	EventDrainWaiting = "DrainWaiting"   // for a permit, or for load balancers
	EventDrainStarted = "DrainStarted"
	EventDrainBlocked = "DrainBlocked"
	EventDrained      = "Drained"
	EventDrainFailed  = "DrainFailed"
	EventPodOverdue   = "PodStuckTerminating" // of a pod that is still there long after its grace period
	EventDrainUndone  = "DrainTakenBack"
	EventUncordoned   = "Uncordoned" // of a node that was cordoned for a notice, and not drained; by the scaler, too
	EventBadRequest   = "BadDrainRequest"
	// By Cluster Autoscaler alone: on its status, of nodes without pods, and of what failed.
	EventScaleDownEmpty       = "ScaleDownEmpty"
	EventScaleDownFailed      = "ScaleDownFailed" // on nodes, too
	EventFailedToRevert       = "FailedToRevertScaleUp"
	EventMaxNodesTotalReached = "MaxNodesTotalReached"
	EventClusterUnhealthy     = "ClusterUnhealthy"

	// On pods, by the agent.
	EventEvictionForced = "EvictionOverridesAnnotation"
)
