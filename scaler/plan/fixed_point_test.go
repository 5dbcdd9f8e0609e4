package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// settlesIn is how many evaluations marks may take to settle where nothing else changes: the
// first may find marks that none would have made.
const settlesIn = 1 + 3

// TestMarksSettle is law 18: while the clock stands still and nothing but the marks of the
// plan is done, evaluations reach a fixed point soon, and come back to no state.
func TestMarksSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, shrinkingWorld(t))
		p := policy.DefaultPolicy()
		p.UtilizationThreshold = []float64{0.5, 0.7, 0.9, 1}[rapid.IntRange(0, 3).Draw(t, "threshold")]
		start := scenario.Format(w.Snapshot)
		seen := map[string]bool{}
		var story []string
		for range settlesIn + 1 {
			state := strings.Join(markedNodes(w), ",")
			if seen[state] {
				t.Fatalf("law 18: marks come back to %q\n%s\n%s", state, strings.Join(story, "\n"), start)
			}
			seen[state] = true
			story = append(story, state)
			got := plan.Decide(w.Snapshot, p)
			story = append(story, render(got, []string{"node"}))
			if !applyMarks(t, w, got) {
				return
			}
		}
		t.Fatalf("law 18: marks have not settled after %d evaluations\n%s\n%s", settlesIn, strings.Join(story, "\n"), start)
	})
}

// shrinkingWorld is half-empty nodes, some of them marked, of groups that differ in price.
func shrinkingWorld(t *rapid.T) string {
	x := &text{T: t}
	groups := x.number("groups", 1, 3)
	types := []string{"m5.large price=0.1", "m5.xlarge price=0.2", "m5.2xlarge price=0.4"}
	for g := range groups {
		x.line("group", fmt.Sprintf("g%d", g), "max=20", "type="+types[g], x.rarely("zones=a,b"))
	}
	pods := 0
	for n := range x.number("nodes", 2, 7) {
		name, g := fmt.Sprintf("n%d", n), x.number("group", 0, groups-1)
		x.line("node", name, fmt.Sprintf("group=g%d", g), x.one("marked", "", "unneeded=09:55:00", "unneeded=09:57:00"))
		for range x.number("pods", 0, 4) {
			pods++
			x.line("pod", fmt.Sprintf("p%d", pods), "on="+name, fmt.Sprintf("cpu=%dm", 100*x.number("cpu", 1, 18)), fmt.Sprintf("mem=%dMi", 256*x.number("mem", 0, 6)), x.rarely("apart labels=app=x"), x.rarely("safe=false"))
		}
	}
	for g := range groups {
		of := strings.Count(strings.Join(x.lines, "\n"), fmt.Sprintf(" group=g%d", g))
		x.line("group", fmt.Sprintf("g%d", g), fmt.Sprintf("desired=%d", of))
	}
	return strings.Join(x.lines, "\n")
}

// markedNodes are the nodes that are marked as unneeded, and since when.
func markedNodes(w *scenario.World) []string {
	var marked []string
	for _, n := range w.Nodes {
		if since, is, err := contract.Unneeded(n.Taints); is && err == nil {
			marked = append(marked, n.Name+" "+since.Format(time.TimeOnly))
		}
	}
	slices.Sort(marked)
	return marked
}

// applyMarks does what the marks of a plan ask for, and takes its memory over; it says
// whether there was any.
func applyMarks(t *rapid.T, w *scenario.World, got plan.Plan) (any bool) {
	w.State = got.State
	for _, a := range got.Actions {
		switch a.(type) {
		case action.Mark, action.Unmark:
			if err := carry(w, a); err != nil {
				t.Fatal(err)
			}
			any = true
		}
	}
	return any
}
