package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// fleetOf is a cluster of nodes with thirty pods each, of fifty kinds, the least
// of that much cpu.
func fleetOf(b *testing.B, nodes, milli int) *scenario.World {
	var text strings.Builder
	fmt.Fprintf(&text, "group web type=m5.2xlarge max=9999 desired=%d\nnode n-1..%d group=web\n", nodes, nodes)
	w := scenario.NewWorld()
	if err := w.Apply(text.String()); err != nil {
		b.Fatal(err)
	}
	for kind := range 50 {
		text.Reset()
		fmt.Fprintf(&text, "pod app%d-1..%d on=n-1 cpu=%dm mem=512Mi", kind, nodes*30/50, milli+kind)
		if err := w.Apply(text.String()); err != nil {
			b.Fatal(err)
		}
	}
	for i := range w.Pods {
		w.Pods[i].Node = fmt.Sprintf("n-%d", 1+i%nodes)
	}
	return w
}

// What an evaluation costs: where all nodes are needed, where about half could be removed, and
// where none can go though all would like to.
func BenchmarkEvaluation(b *testing.B) {
	for _, c := range []struct {
		name    string
		milli   int
		blocked string
		loops   float64
	}{{"needed", 110, "", 16}, {"half", 60, "", 28}, {"nowhere", 60, " mem=930Mi", 22}} {
		b.Run(c.name, func(b *testing.B) {
			w := fleetOf(b, 1000, c.milli)
			if c.blocked != "" {
				if err := w.Apply("group other\npod giant-1..1000 on=n-1 cpu=10m mem=12Gi"); err != nil {
					b.Fatal(err)
				}
				for i := range w.Pods[30_000:] {
					w.Pods[30_000+i].Node = fmt.Sprintf("n-%d", 1+i)
				}
			}
			p := byThreshold()
			p.UtilizationThreshold = 0.95
			if c.name == "needed" {
				p.UtilizationThreshold = 0.5
			}
			measured(b, w.Snapshot, bounds{loops: c.loops}, func() plan.Plan { return plan.Decide(w.Snapshot, p) })
		})
	}
}

func BenchmarkBurst(b *testing.B) {
	w := scenario.NewWorld()
	if err := w.Apply("group web type=m5.2xlarge max=9999\ngroup big type=m5.xlarge max=9999\npod app-1..20000 cpu=300m"); err != nil {
		b.Fatal(err)
	}
	measured(b, w.Snapshot, bounds{loops: 26}, func() plan.Plan { return plan.Decide(w.Snapshot, policy.DefaultPolicy()) })
}
