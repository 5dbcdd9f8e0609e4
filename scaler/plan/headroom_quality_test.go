package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
)

// TestHeadRoomKeepsLittleMore: of a hundred nodes at 40 %, five percent of headroom keep
// few more than are needed without, also where there are many more pods than pieces.
func TestHeadRoomKeepsLittleMore(t *testing.T) {
	const mostMore = 5
	for _, c := range []struct {
		what string
		pods int // on each node
		most int // pods request one to so many times 100m and 100 MiB
	}{
		{"small and alike", 31, 1},
		{"small and mixed", 12, 4},
		{"large and mixed", 3, 16},
	} {
		w := scenario.NewWorld()
		dice := rand.New(rand.NewPCG(5, 5))
		apply(t, w, "group web desired=100 max=200 type=m5.2xlarge pods=234")
		for i := range 100 {
			apply(t, w, fmt.Sprintf("node web-%d group=web pods=234", i))
			for j := range c.pods {
				size := 100 * (1 + dice.IntN(c.most))
				apply(t, w, fmt.Sprintf("pod app%d-%d on=web-%d labels=app=x cpu=%dm mem=%dMi", i, j, i, size, size))
			}
		}
		without, with := needed(w, ""), needed(w, "5%")
		t.Logf("%s: %d nodes are needed, and %d with head-room", c.what, without, with)
		if with <= without || with > without+mostMore {
			t.Errorf("%s: head-room keeps %d nodes, want 1 to %d", c.what, with-without, mostMore)
		}
	}
}

// needed counts the nodes that are not marked as unneeded.
func needed(w *scenario.World, head string) int {
	p := byThreshold()
	p.TerminationHooks, p.Headroom = nil, headRoom(head)
	n := len(w.Nodes)
	for _, a := range plan.Decide(w.Snapshot, p).Actions {
		if _, marks := a.(action.Mark); marks {
			n--
		}
	}
	return n
}

func apply(t *testing.T, w *scenario.World, lines string) {
	t.Helper()
	if err := w.Apply(lines); err != nil {
		t.Fatal(err)
	}
}
