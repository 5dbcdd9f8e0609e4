package drain

import (
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// View is everything the agent knows at Now. Order carries no meaning.
type View struct {
	Now time.Time
	// Node as it was last read; nil while it is not known, or gone.
	Node *fleet.Node
	// Pods that are bound to the node, if PodsKnown.
	Pods      []fleet.Pod
	PodsKnown bool
	// Notices that the instance metadata show. The drain request is read from
	// the Node.
	Notices []notice.Notice
	// Heard says that the metadata were asked for everything at least once. Until
	// then a drain that a notice began is not over because the notice is unseen.
	Heard bool
	// Budgets of the cluster as the drain found them; nil while they are not
	// known. They say which pods are guarded together; whether a pod may leave
	// says the eviction API.
	Budgets *drainable.Budgets
	// Live tells the namespaces whose Budgets are watched, and true at this moment.
	Live map[string]bool
	// Attached names the volumes that are attached to the node, in order.
	Attached []string
	// Tries is what came of evictions so far.
	Tries Tries
	// Stirred tells by namespace when a pod of this node last left or changed
	// its readiness: a budget may have room again.
	Stirred map[string]time.Time
	// Back is when the watch of the pods last came back after it had failed; zero
	// if it never failed.
	Back time.Time
	// Written is when the agent last wrote to the Node, zero if it has not.
	Written time.Time
	// Unwritable is since when the API server has refused what the agent would
	// write to the Node; zero while it does not.
	Unwritable time.Time
}

// Policy is how drains are done.
type Policy struct {
	// TerminationDrainTime is how long a termination by Auto Scaling is taken to
	// leave, until the scaler names its deadline.
	TerminationDrainTime time.Duration
	// CriticalReserve is what is kept of the time before a deadline for the
	// critical pods, which leave last.
	CriticalReserve time.Duration
	// Pods says which pods may leave.
	Pods drainable.Policy
	// Version of the agent, for the report.
	Version string
}

// DefaultPolicy is the one without flags.
func DefaultPolicy() Policy {
	return Policy{TerminationDrainTime: 10 * time.Minute, CriticalReserve: 15 * time.Second}
}
