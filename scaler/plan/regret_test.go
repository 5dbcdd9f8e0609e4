package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// regrets: where a plan was carried out and nothing else has happened, none of its scale-downs is
// cancelled; but for pods that kube-scheduler has long left waiting, of which it is not known what
// they wait for, and where a node is sent into its warm pool, whose pods need a place from then on.
func regrets(before, after plan.Plan) []string {
	var broken []string
	if slices.ContainsFunc(before.Actions, func(a action.Action) bool {
		r, ok := a.(action.RequestDrain)
		return ok && r.Kind == contract.KindASG && slices.ContainsFunc(before.Verdicts, func(v *verdict.Verdict) bool { return v.Name == r.Node.Name && v.Reason == verdict.NodeInWarmPool })
	}) {
		return nil
	}
	for _, a := range after.Actions {
		keep, ok := a.(action.CancelDrain)
		if ok && slices.ContainsFunc(before.Verdicts, func(v *verdict.Verdict) bool {
			return v.Reason == verdict.PodNotScheduled && strings.Contains(keep.Why, "pod "+v.Name+" ")
		}) {
			continue
		}
		if ok && slices.ContainsFunc(before.Actions, func(b action.Action) bool { r, ok := b.(action.RequestDrain); return ok && r.ID == keep.ID }) {
			broken = append(broken, fmt.Sprintf("regrets: %s, right after it was retired", keep))
		}
	}
	return broken
}

// TestRetirementsStand in small clusters whose nodes are all due, so that all that fits is
// scaled down at once and little room is left. When nothing moves any more, none waits for
// others.
func TestRetirementsStand(t *testing.T) {
	for seed := range uint64(400) {
		w, p := dueTown(seed), anyUtilization()
		p.MaxDrainParallelism = len(w.Nodes)
		for got := plan.Decide(w.Snapshot, p); len(got.Actions) > 0; got = plan.Decide(w.Snapshot, p) {
			if err := carryOut(w, got); err != nil {
				t.Fatal(err)
			}
			for _, broken := range regrets(got, plan.Decide(w.Snapshot, p)) {
				t.Errorf("town %d: %s", seed, broken)
			}
			w.Drain()
			schedule(w)
			w.Reap()
			w.Advance(time.Second)
		}
		for _, v := range plan.Decide(w.Snapshot, p).Verdicts {
			if strings.Contains(v.Message(), "when others have gone") {
				t.Errorf("town %d: nothing moves, and yet %s", seed, v)
			}
		}
	}
}

// dueTown is a small cluster in which every node is marked, and due by turns, so that the
// order in which they go is not that of their names.
func dueTown(seed uint64) *scenario.World {
	c := smallTown(seed)
	for i := range c.Nodes {
		since := c.Now.Add(-time.Hour - time.Duration((7*i+int(seed))%5)*time.Minute)
		c.Nodes[i].Taints = contract.WithTaint(c.Nodes[i].Taints, contract.UnneededTaint(since))
	}
	w := scenario.NewWorld()
	w.Snapshot = c.Snapshot
	return w
}
