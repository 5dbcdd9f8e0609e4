package plan

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Plan is what to do now, and why, and when to evaluate again.
type Plan struct {
	Actions []action.Action
	// Drains are those that the scaler carries on in place of agents, by node.
	Drains []action.Drain
	// Verdicts has exactly one for every pending pod, every node and every
	// group, sorted by subject. Plans share those that repeat: none is ever changed.
	Verdicts []*verdict.Verdict
	// Others are sentences about programs of the cluster that do what we do, and what people do
	// about it. Stopped: one of them is an autoscaler, so that nothing is done.
	Others  []string
	Stopped bool
	// Wake is the latest moment of the next evaluation, if nothing happens before;
	// zero where only an event can change the answer.
	Wake time.Time
	// AwaitsAnswer: a group is to grow for pods once AWS has answered a launch that is under way.
	AwaitsAnswer bool
	// Unrecognised counts the instances that should long have become Nodes and that we did not ask
	// for, by group. Braked: there are so many of them, with those that may still, that none is ended.
	Unrecognised map[string]int
	Braked       bool
	// Steps is what deciding took, as fit.Cluster.Steps counts it; see Bounds.
	Steps int64
	// State replaces the snapshot's; where it differs it is written before the
	// actions are carried out.
	State fleet.State
}
