package act

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
)

// A drain that the scaler carries on reports each thing once; what finds no room is recorded
// at the next evaluation, and another drain of the node is another story.
func TestAnnounceDrains(t *testing.T) {
	drain := func(id string, phase contract.Phase) plan.Plan {
		return plan.Plan{Drains: []action.Drain{{Node: n1, ID: id, Phase: phase, Message: id + " " + string(phase)}}}
	}
	e := &events{}
	n := &Announcer{Events: e}
	e.room = 1
	for _, p := range []plan.Plan{
		drain("a", contract.PhaseWaiting), drain("a", contract.PhaseDraining), drain("a", contract.PhaseBlocked),
	} {
		n.Announce(fleet.Snapshot{}, p, nil)
	}
	e.room = 0
	for _, p := range []plan.Plan{
		drain("a", contract.PhaseBlocked), drain("a", contract.PhaseDraining), drain("a", contract.PhaseBlocked), drain("a", contract.PhaseDrained),
		{}, drain("a", contract.PhaseDraining), drain("b", contract.PhaseDraining),
	} {
		n.Announce(fleet.Snapshot{}, p, nil)
	}
	want := []string{
		"DrainStarted n1: a Waiting", "DrainBlocked n1: a Blocked", "Drained n1: a Drained",
		"DrainStarted n1: a Draining", "DrainStarted n1: b Draining",
	}
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Error(diff)
	}
}

// A drain that waits for load balancers has not started.
func TestAnnounceWaitingDrain(t *testing.T) {
	e := &events{}
	n := &Announcer{Events: e}
	for _, d := range []action.Drain{
		{Phase: contract.PhaseWaiting, Pauses: true, Message: "load balancers"}, {Phase: contract.PhaseWaiting, Pauses: true, Message: "load balancers"},
		{Phase: contract.PhaseDraining, Message: "pods"},
	} {
		d.Node, d.ID = n1, "a"
		n.Announce(fleet.Snapshot{}, plan.Plan{Drains: []action.Drain{d}}, nil)
	}
	if diff := cmp.Diff([]string{"DrainWaiting n1: load balancers", "DrainStarted n1: pods"}, e.list); diff != "" {
		t.Error(diff)
	}
}
