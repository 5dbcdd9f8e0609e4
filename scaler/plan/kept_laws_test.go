package plan_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
)

// TestKeptPlanner: a planner that goes on from evaluation to evaluation, as the loop's does,
// decides each time what one decides that knows nothing. Its pods come as those of a watch do:
// what has not changed is the same pod as before, in the same row or, after a new list, in another.
func TestKeptPlanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, randomWorld(t, rapid.Bool().Draw(t, "wild")))
		p := randomPolicy(t)
		kept, rows := plan.NewPlanner(), watched{}
		for range rapid.IntRange(2, 12).Draw(t, "events") {
			rows.take(t, w.Pods)
			s := w.Snapshot
			s.Pods = slices.Clone(rows.list)
			got, want := kept.Decide(s, p), plan.Decide(s, p)
			if a, b := append(textOf(want), want.Wake.String()), append(textOf(got), got.Wake.String()); !cmp.Equal(a, b) {
				t.Fatalf("the kept planner decides (-alone +kept):\n%s\n%s", cmp.Diff(a, b), scenario.Format(s))
			}
			if !fleet.Equal(got.State, want.State) || got.Steps != want.Steps {
				t.Fatalf("the kept planner leaves\n%+v after %d steps, want\n%+v after %d", got.State, got.Steps, want.State, want.Steps)
			}
			if err := carryOut(w, want); err != nil {
				t.Fatal(err)
			}
			randomEvent(t, w)
			schedule(w)
		}
	})
}

// watched are pods as a watch keeps them: a row never changes, another takes its place, and the
// last fills a gap.
type watched struct{ list []*fleet.Pod }

func (r *watched) take(t *rapid.T, pods []*fleet.Pod) {
	now := map[string]*fleet.Pod{}
	for _, p := range pods {
		now[p.Key()+string(p.UID)] = p
	}
	for i := len(r.list) - 1; i >= 0; i-- {
		key := r.list[i].Key() + string(r.list[i].UID)
		p, there := now[key]
		switch {
		case !there:
			last := len(r.list) - 1
			r.list[i] = r.list[last]
			r.list = r.list[:last]
		case !reflect.DeepEqual(p, r.list[i]):
			r.list[i] = copied(p)
		}
		delete(now, key)
	}
	for _, p := range pods {
		if now[p.Key()+string(p.UID)] == p {
			r.list = append(r.list, copied(p))
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "list") == 0 {
		r.list = rapid.Permutation(r.list).Draw(t, "rows")
	}
}

// copied is the pod as it is now: worlds change theirs in place.
func copied(p *fleet.Pod) *fleet.Pod {
	c := *p
	return &c
}
