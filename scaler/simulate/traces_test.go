package simulate

import (
	"testing"
	"time"

	"windlass.dev/windlass/e2e/traces"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// TestTraces plays windows of public traces and generated times, and prints what they cost.
func TestTraces(t *testing.T) {
	traces.Play(t, func(t *testing.T, played trace.Trace) {
		for _, v := range policies() { // one by one, for the times
			began := time.Now()
			got, err := Run(world.Default(), played, 1, 1, []Variant{v})
			if err != nil {
				t.Fatal(err)
			}
			r := got.Runs[0]
			t.Logf("%s | %s | %.3f (%.1f) | $%.2f of $%.2f, packed anew ÷ bound %.3f, ÷ packed anew %.3f | pending %s, beyond boot %s | launches %d, idle %d, relaunched %d | drains %d, cancelled %d, short marks %d of %d | %d pods, %d left out | %d evaluations in %.1f s",
				played.Name, v.Name, r.OverBound, r.EvictionRate, r.Dollars, r.Bound, r.Repack/r.Bound, r.OverRepack, r.Pending, r.Beyond, r.Launches, r.Idle, r.Relaunches, r.ScaleDowns, r.Cancelled, r.ShortMarks, r.Marks, got.Pods, got.LeftOut, r.Evaluations, time.Since(began).Seconds())
			if r.Dollars < r.Bound {
				t.Errorf("%s costs %v, less than the bound of %v", v.Name, r.Dollars, r.Bound)
			}
		}
	})
}

// policies are the default, and those that move pods by a threshold: with the expander least-waste of
// Cluster Autoscaler, with price, and with replacements.
func policies() []Variant {
	with := func(name string, change func(*policy.Policy)) Variant {
		p := policy.DefaultPolicy()
		change(&p)
		return Variant{Name: name, Policy: p}
	}
	return []Variant{
		with("default", func(*policy.Policy) {}),
		with("unneeded, least-waste", func(p *policy.Policy) {
			p.Consolidate, p.Expander = policy.ConsolidateUnneeded, policy.LeastWaste
		}),
		with("unneeded", func(p *policy.Policy) { p.Consolidate = policy.ConsolidateUnneeded }),
		with("replace", func(p *policy.Policy) { p.Consolidate = policy.ConsolidateReplace }),
	}
}
