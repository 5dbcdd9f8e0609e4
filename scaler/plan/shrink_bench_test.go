package plan_test

import (
	"testing"

	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// What an evaluation costs at which nodes turn out to be unneeded: Decide as a whole, with a
// planner that has seen the cluster before, and one that has not.

// BenchmarkScaleDownUniform: 2,000 equal nodes, each 40 % full, of which 800 are enough,
// as in Cluster Autoscaler's BenchmarkRunOnceScaleDown.
func BenchmarkScaleDownUniform(b *testing.B) {
	const nodes, left = 2_000, 800
	shrink(b, func() *city { return uniform(nodes, 40) }, between{nodes - left, nodes - left}, bounds{loops: 10, mb: 50})
}

// BenchmarkScaleDownHard: 5,000 nodes with 150,000 pods of 500 specs, budgets and rules
// of where they may go. All pods together fill two fifths.
func BenchmarkScaleDownHard(b *testing.B) {
	const nodes = 5_000
	shrink(b, func() *city { return tangled(nodes, 500) }, between{nodes / 2, nodes * 3 / 5}, bounds{loops: 38})
}

// shrink decides again and again. Where no node has a mark, all unneeded nodes get one; where all
// have had one for an hour, those go that may, and the others lose it.
func shrink(b *testing.B, world func() *city, unneeded between, bound bounds) {
	b.Run("cold", func(b *testing.B) {
		measureShrink(b, world(), unneeded, bound, func() *plan.Planner { return plan.NewPlanner() })
	})
	for _, known := range []struct {
		name string
		city *city
	}{{"kept", world()}, {"due", world().marked()}} {
		b.Run(known.name, func(b *testing.B) {
			planner := plan.NewPlanner()
			planner.Decide(known.city.Snapshot, byThreshold())
			measureShrink(b, known.city, unneeded, bound, func() *plan.Planner { return planner })
		})
	}
}

func measureShrink(b *testing.B, c *city, right between, bound bounds, planner func() *plan.Planner) {
	b.Helper()
	got := measured(b, c.Snapshot, bound, func() plan.Plan { return planner().Decide(c.Snapshot, byThreshold()) })
	unneeded := 0
	for _, v := range got.Verdicts {
		if v.Of == verdict.OfNode && (v.Reason == verdict.NodeUnneeded || v.Reason == verdict.NodeScalingDown) {
			unneeded++
		}
	}
	b.ReportMetric(float64(unneeded), "unneeded")
	if unneeded < right.from || unneeded > right.to {
		b.Errorf("%d nodes are unneeded, want %d to %d", unneeded, right.from, right.to)
	}
}
