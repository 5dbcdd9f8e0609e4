package plan_test

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
)

// BenchmarkEvaluationAfterOneChange: in a cluster that the planner knows, one pod was replaced by
// another on its node, and one node has another label. Scale-down is on.
func BenchmarkEvaluationAfterOneChange(b *testing.B) {
	for _, c := range []struct {
		nodes int
		loops float64
	}{{1_000, 0.2}, {5_000, 0.42}, {15_000, 1.6}} {
		b.Run(fmt.Sprintf("%dx30", c.nodes), func(b *testing.B) {
			w := busy(c.nodes)
			planner := plan.NewPlanner()
			planner.Decide(w.Snapshot, byThreshold())
			turn := 0
			measured(b, w.Snapshot, bounds{loops: c.loops, mb: 1}, func() plan.Plan {
				turn++
				oneChange(w.Snapshot, turn)
				return planner.Decide(w.Snapshot, byThreshold())
			})
		})
	}
}

// BenchmarkColdEvaluation: the same cluster, of which the planner knows nothing. What it costs grows
// with the cluster and not faster.
func BenchmarkColdEvaluation(b *testing.B) {
	for _, c := range []struct {
		nodes int
		loops float64
	}{{15_000, 20}, {100_000, 126}} {
		b.Run(fmt.Sprintf("%dx30", c.nodes), func(b *testing.B) {
			if testing.Short() && c.nodes > 15_000 {
				b.Skip("takes minutes and gigabytes")
			}
			w := busy(c.nodes)
			measured(b, w.Snapshot, bounds{loops: c.loops}, func() plan.Plan { return plan.NewPlanner().Decide(w.Snapshot, byThreshold()) })
		})
	}
}

// busy: equal nodes with thirty pods each of fifty apps, which request more than half of them.
func busy(nodes int) *city {
	c := newCity()
	m := machine{kind: "m5.2xlarge", milliCPU: 7_910, memory: 30 * gib}
	c.group("web", m, nodes)
	apps := make([]template, 50)
	for i := range apps {
		name := fmt.Sprintf("app-%d", i)
		apps[i] = pods(int64(200+i), 512*mib).labelled(labelApp, name).owned(name)
	}
	for i := range nodes {
		n := c.node(0, m, benchZones[i%len(benchZones)])
		for pod := range 30 {
			c.run(apps[(i+pod)%len(apps)], n)
		}
	}
	return c
}

// oneChange makes the change of that turn: rows are replaced, and what stood there is as it was.
func oneChange(s fleet.Snapshot, turn int) {
	i := turn * 7_919 % len(s.Pods)
	came := *s.Pods[i]
	came.Name, came.UID = fmt.Sprintf("%s-%d", came.Name, turn), types.UID(fmt.Sprintf("came-%d", turn))
	s.Pods[i] = &came
	n := &s.Nodes[turn*31%len(s.Nodes)]
	n.Labels = maps.Clone(n.Labels)
	n.Labels["turn"] = fmt.Sprint(turn)
}
