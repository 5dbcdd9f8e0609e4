package contract

// Reasons of the Events that we write. Those that Cluster Autoscaler writes
// too keep its words, so that alerts and dashboards go on working.
const (
	// On pods, by the scaler.
	EventTriggeredScaleUp  = "TriggeredScaleUp"
	EventNotTriggerScaleUp = "NotTriggerScaleUp"
	// On nodes, by the scaler.
	EventRetiring     = "Retiring"
	EventKept         = "RetirementTakenBack"
	EventTerminated   = "InstanceTerminated"
	EventHookDone     = "LifecycleActionCompleted"
	EventActionFailed = "ActionFailed"

	// On nodes, by the agent.
	EventDrainStarted = "DrainStarted"
	EventDrainBlocked = "DrainBlocked"
	EventDrained      = "Drained"
	EventDrainUndone  = "DrainTakenBack"
	EventBadRequest   = "BadDrainRequest"
	// On pods, by the agent.
	EventEvictionForced = "EvictionOverridesAnnotation"
)
