package plan_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// TestDecideBesideAnother: people ask what would be done by another policy while the loop decides
// on a snapshot that shares its parts: neither changes what the other finds. The race detector
// sees what they would write.
func TestDecideBesideAnother(t *testing.T) {
	loops := plan.NewPlanner() // warm, as the loop's is
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, randomWorld(t, true))
		asked := randomPolicy(t)
		before := scenario.Format(w.Snapshot)
		alone, question := plan.Decide(w.Snapshot, policy.DefaultPolicy()), plan.Decide(w.Snapshot, asked)
		var loop, beside plan.Plan
		var both sync.WaitGroup
		both.Go(func() { loop = loops.Decide(w.Snapshot, policy.DefaultPolicy()) })
		both.Go(func() { beside = plan.Decide(w.Snapshot, asked) })
		both.Wait()
		for what, pair := range map[string][2]plan.Plan{"the loop's": {alone, loop}, "the question's": {question, beside}} {
			if a, b := textOf(pair[0]), textOf(pair[1]); !cmp.Equal(a, b) {
				t.Fatalf("%s plan (-alone +beside another):\n%s\n%s", what, cmp.Diff(a, b), before)
			}
		}
		if after := scenario.Format(w.Snapshot); before != after {
			t.Fatalf("the snapshot was written to:\n%s", cmp.Diff(before, after))
		}
	})
}

func textOf(p plan.Plan) (lines []string) {
	for _, a := range p.Actions {
		lines = append(lines, a.String())
	}
	for _, v := range p.Verdicts {
		lines = append(lines, v.String())
	}
	return lines
}
