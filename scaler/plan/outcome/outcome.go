package outcome

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Outcome is what the steps of one evaluation settle, but for the verdicts on nodes and groups,
// which stand on these. A room whose New does not ask for it answers questions, and settles little:
// seats has UpdateBuffers, which is given it, and cluster says which nodes are in a warm pool.
type Outcome struct {
	// Actions are what is to be done, in the order in which it was settled.
	Actions []action.Action
	// PodVerdicts are those of pending pods.
	PodVerdicts []*verdict.Verdict
	// Foreseen are the heartbeats that are due later, as things are.
	Foreseen []Foreseen
	// State is to persist: what was read, and what was settled since.
	State fleet.State

	facts *cluster.Cluster
}

// New has settled nothing yet, but for the claims of groups without an owner.
func New(facts *cluster.Cluster) *Outcome {
	o := &Outcome{State: copyState(facts.Given, facts.OwnDrains), facts: facts}
	for _, g := range facts.Unclaimed {
		o.Do(action.Claim{Group: g.Name, Owner: facts.UID})
	}
	return o
}

// Foreseen is a heartbeat that is due later, should no evaluation come in time.
type Foreseen struct {
	action.Heartbeat
	// Due is when it is, and Every how long after it the next one is, before Until.
	Due, Until time.Time
	Every      time.Duration
}

// Do adds an action.
func (o *Outcome) Do(a action.Action) { o.Actions = append(o.Actions, a) }

// SayPod settles the verdict of a pending pod. Pods that are only foreseen to
// wait have none.
func (o *Outcome) SayPod(t fit.Tenant, reason verdict.Reason, group string, details verdict.Details) {
	if !cluster.WantsNode(t.Pod) {
		return
	}
	if o.PodVerdicts == nil {
		o.PodVerdicts = make([]*verdict.Verdict, 0, len(o.facts.Unbound.Pods))
	}
	o.PodVerdicts = append(o.PodVerdicts, &verdict.Verdict{
		Of: verdict.OfPod, Name: t.Pod.Key(), UID: string(t.Pod.UID), Group: group, Reason: reason, Details: details,
	})
}
