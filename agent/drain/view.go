package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// View is everything the agent knows at Now. Order carries no meaning.
type View struct {
	Now time.Time
	// Node as it was last read; nil while it is not known, or deleted.
	Node *fleet.Node
	// Pods that are bound to the node, if PodsKnown.
	Pods      []fleet.Pod
	PodsKnown bool
	// Ending are the pods that came to be deleted while they were watched.
	Ending map[types.UID]Ending
	// Notices that the instance metadata show. The drain request is read from
	// the Node.
	Notices []notice.Notice
	// rehearsed is the Node as it is, where nothing of what is decided is done: it is open,
	// and pods come to it. nil where this is in earnest.
	rehearsed *fleet.Node
	// Heard means that the metadata have answered. Until then a drain that a notice began is
	// not over because the notice is unseen, nor as long as its path is Unclear.
	Heard bool
	// Unclear are the paths of the metadata that have said nothing yet that is
	// understood. What an earlier agent heard there still stands.
	Unclear []notice.SourceName
	// Budgets of the cluster as the drain found them, those of the Live namespaces
	// as they are now; nil while they are not known. They say which pods are guarded
	// together, and when asking again is worth it; whether a pod may leave says the
	// eviction API.
	Budgets *drainable.Budgets
	// Live names the namespaces whose Budgets are watched, and current.
	Live map[string]bool
	// Attached names the volumes that the Node's status shows as attached
	// (status.volumesAttached).
	Attached []string
	// Tries is what came of evictions so far.
	Tries Tries
	// Stirred holds, by namespace, when a pod of this node last left or changed
	// its readiness: a budget may have room again.
	Stirred map[string]time.Time
	// Back is when the watch of the pods last came back after it had failed; zero
	// if it never failed.
	Back time.Time
	// NotYet is when the scaler's present word that the drain is to wait on arrived here
	// (contract.AnnotationDrainNotYet); zero where none stands. The date in it is of
	// another clock.
	NotYet time.Time
	// Written is when the agent last wrote to the Node, zero if it has not.
	Written time.Time
	// Unwritable is since when no write to the Node has succeeded, though one was
	// tried; zero while writes succeed.
	Unwritable time.Time
	// Crowded means that the API server has shown that it has no time, since about the last renewal of a
	// report that said so.
	Crowded bool
	// Unwritten is the report that was last to be written and that the Node has not
	// taken; nil where it has.
	Unwritten *contract.Report
	// Unlisted is the list of notices that was last to be written, by AnnotationNotices, and that the
	// Node has not taken; empty where it has.
	Unlisted string
}

// Ending is when we heard that a pod is being deleted, and when that was asked for, by the API
// server's word: one that is loaded tells late. Back is when the watch of the pods first came back after that
// and stayed, once it had failed; zero if it has not.
type Ending struct{ Heard, Asked, Back time.Time }

func (e Ending) late() time.Duration { return e.Heard.Sub(e.Asked) }

// Policy is how drains are done.
type Policy struct {
	// Responses by cause of a notice.
	Responses notice.Responses
	// Manner is what the scaler goes by as well, where it drains in an agent's place.
	drainable.Manner

	// TerminationDrainTime is how long a termination by Auto Scaling is taken to
	// leave, until the scaler names its deadline.
	TerminationDrainTime time.Duration
	// PermitWait is how long a drain without hurry waits for its permit after each word
	// of the scaler that it is not its turn, and MaxPermitWait how long in all.
	PermitWait, MaxPermitWait time.Duration
	// LastChanceTime is how long before a deadline pods are deleted that a budget
	// still keeps, where the response says so.
	LastChanceTime time.Duration

	// DryRun does nothing, and says on the Node what would be done.
	DryRun bool
	// Version of the agent, for the report.
	Version string
}

// DefaultPolicy is the one without flags.
func DefaultPolicy() Policy {
	return Policy{
		Responses:            notice.DefaultResponses(),
		Manner:               drainable.DefaultManner(),
		TerminationDrainTime: 10 * time.Minute,
		PermitWait:           5 * time.Minute,
		MaxPermitWait:        24 * time.Hour,
		LastChanceTime:       30 * time.Second,
	}
}
