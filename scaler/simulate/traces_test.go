package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// tracesEnv names a folder with the public traces, which are no part of the project.
const tracesEnv = "WINDLASS_TRACES"

// TestTraces plays windows of public traces and prints what they cost.
func TestTraces(t *testing.T) {
	folder := os.Getenv(tracesEnv)
	if folder == "" {
		t.Skipf("%s names no folder with the traces", tracesEnv)
	}
	const ramp = 12 * 3600
	for _, c := range []struct {
		format, file string
		slice        trace.Slice
	}{
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 119, To: 124, Divide: 4}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 124, To: 129, Divide: 4}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 129, To: 134, Divide: 4}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 134, To: 139, Divide: 4}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 119, To: 124, Divide: 4, Ramp: ramp}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 124, To: 129, Divide: 4, Ramp: ramp}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 129, To: 134, Divide: 4, Ramp: ramp}},
		{"openb", "openb_pods_until_day_139.csv", trace.Slice{From: 134, To: 139, Divide: 4, Ramp: ramp}},
		{"dlrm", "dlrm_instances_until_day_24.csv", trace.Slice{From: 6, To: 10, Divide: 20, Sample: 24, Phase: 1}},
		{"dlrm", "dlrm_instances_until_day_24.csv", trace.Slice{From: 8, To: 12, Divide: 20, Sample: 24, Phase: 2}},
		{"dlrm", "dlrm_instances_until_day_24.csv", trace.Slice{From: 6, To: 10, Divide: 20, Sample: 24, Phase: 1, Ramp: ramp}},
		{"dlrm", "dlrm_instances_until_day_24.csv", trace.Slice{From: 8, To: 12, Divide: 20, Sample: 24, Phase: 2, Ramp: ramp}},
	} {
		start := "cold"
		if c.slice.Ramp > 0 {
			start = "ramp"
		}
		name := fmt.Sprintf("%s %g-%g %s", c.format, c.slice.From, c.slice.To, start)
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(filepath.Join(folder, c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }() // it was only read
			played, err := trace.Formats[c.format].Read(file, c.slice)
			if err != nil {
				t.Fatal(err)
			}
			played.Name = name
			for _, v := range policies() { // one by one, for the times
				began := time.Now()
				got, err := Run(world.Default(), played, 1, 1, []Variant{v})
				if err != nil {
					t.Fatal(err)
				}
				r := got.Runs[0]
				t.Logf("%s | %s | %.3f (%.1f) | $%.2f of $%.2f, packed anew ÷ bound %.3f, ÷ packed anew %.3f | pending %s, beyond boot %s | launches %d, idle %d, relaunched %d | drains %d, cancelled %d, short marks %d of %d | %d pods, %d left out | %d evaluations in %.1f s",
					name, v.Name, r.OverBound, r.EvictionRate, r.Dollars, r.Bound, r.Repack/r.Bound, r.OverRepack, r.Pending, r.Beyond, r.Launches, r.Idle, r.Relaunches, r.ScaleDowns, r.Cancelled, r.ShortMarks, r.Marks, got.Pods, got.LeftOut, r.Evaluations, time.Since(began).Seconds())
				if r.Dollars < r.Bound {
					t.Errorf("%s costs %v, less than the bound of %v", v.Name, r.Dollars, r.Bound)
				}
			}
		})
	}
}

// policies are the default, the expander least-waste of Cluster Autoscaler, replacements, and all
// that is weighed against its cost.
func policies() []Variant {
	with := func(name string, change func(*policy.Policy)) Variant {
		p := policy.DefaultPolicy()
		change(&p)
		return Variant{name, p}
	}
	return []Variant{
		with("default", func(*policy.Policy) {}),
		with("least-waste", func(p *policy.Policy) { p.Expander = policy.LeastWaste }),
		with("replace", func(p *policy.Policy) { p.Consolidate = policy.ConsolidateReplace }),
		with("balance", func(p *policy.Policy) { p.Consolidate = policy.ConsolidateBalance }),
	}
}
