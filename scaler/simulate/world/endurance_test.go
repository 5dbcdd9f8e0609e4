package world

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"testing"

	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
)

var days = flag.Float64("days", 6, "how many days TestEndurance lives in all")

// TestEndurance: through days in which launches fail and spot nodes are interrupted, by each way to
// consolidate, all adds up each hour, what the planner keeps makes no difference, and the state grows
// with what there is and not with time.
func TestEndurance(t *testing.T) {
	const day, pods, stateEach = 86_400, 40, 1 << 10
	for i, mode := range policy.ConsolidateModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			seed := uint64(i + 1)
			played, err := trace.Generate(trace.Mix{Seed: seed, Days: *days / float64(len(policy.ConsolidateModes)), Pods: pods})
			if err != nil {
				t.Fatal(err)
			}
			dice := rand.New(rand.NewPCG(seed, 1))
			spec := Default()
			spec.LaunchFailures, spec.Interruptions = 0.1, 0.05
			for g := range spec.Groups {
				spec.Groups[g].Spot, spec.Groups[g].Unsteered, spec.Groups[g].Max = dice.IntN(2) > 0, dice.IntN(2) > 0, 1+dice.IntN(20)
			}
			p := policy.DefaultPolicy()
			p.Consolidate = mode
			w, err := New(spec, played, p, seed)
			if err != nil {
				t.Fatal(err)
			}
			looks, largest := 0, 0
			for moment := int64(3600); moment < played.Seconds; moment += 3600 {
				if err := w.playUntilDue(moment); err != nil {
					t.Fatal(err)
				}
				if err := w.check(); err != nil {
					t.Fatalf("after %d days and %d s: %v", w.now/day, w.now%day, err)
				}
				w.observe()
				if difference := w.planner.Judge(w.snapshot, w.policy); difference != "" {
					t.Fatalf("after %d days and %d s the kept planner decides %s", w.now/day, w.now%day, difference)
				}
				state, err := json.Marshal(w.snapshot.State)
				if err != nil {
					t.Fatal(err)
				}
				there := 1 + len(w.snapshot.Nodes) + len(w.snapshot.Groups)
				if len(state) > there*stateEach {
					t.Fatalf("after %d days and %d s the state of %d nodes and groups has %d bytes:\n%s", w.now/day, w.now%day, there, len(state), state)
				}
				looks, largest = looks+1, max(largest, len(state))
			}
			l, err := w.Run()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.checkEnd(l); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d days, %d pods, %d evaluations, %d looks; the state had %d bytes at the most", w.now/day, len(played.Pods), l.Evaluations, looks, largest)
		})
	}
}
