package world

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// TestMarksSettleInDays is law 18 where time goes on: in a day that is frozen at some moment, so
// that no pod comes or goes, no mark that was set is cleared again, and no node is made surplus twice,
// until the plan asks for more than marks.
func TestMarksSettleInDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		played, err := trace.Generate(trace.Mix{Seed: seed, Days: 0.2, Pods: rapid.IntRange(5, 60).Draw(t, "pods")})
		if err != nil {
			t.Fatal(err)
		}
		p := policy.DefaultPolicy()
		p.Consolidate = rapid.SampledFrom(policy.ConsolidateModes).Draw(t, "consolidate")
		p.UtilizationThreshold = rapid.SampledFrom([]float64{0.5, 0.7, 1}).Draw(t, "threshold")
		w, err := New(Default(), played, p, seed)
		if err != nil {
			t.Fatal(err)
		}
		for moment := int64(600); moment < played.Seconds; moment += 1800 {
			if err := w.playUntil(moment); err != nil {
				t.Fatal(err)
			}
			if story := w.freeze(); story != nil {
				t.Fatalf("law 18: frozen after %d s, marks do not settle:\n%s", moment, story)
			}
		}
	})
}

// playUntil plays the trace up to a moment.
func (w *World) playUntil(moment int64) error {
	end := w.trace.Seconds
	w.trace.Seconds = moment
	defer func() { w.trace.Seconds = end }()
	return w.play()
}

// playUntilDue plays the trace up to a moment, and on until an evaluation is due for something that
// has changed; it has not been made then.
func (w *World) playUntilDue(moment int64) error {
	if err := w.playUntil(moment); err != nil {
		return err
	}
	for w.now < w.trace.Seconds {
		w.happen()
		w.schedule()
		if w.changed && w.now >= w.due() {
			break
		}
		if err := w.playUntil(w.now + 1); err != nil {
			return err
		}
	}
	return nil
}

// freeze decides again and again while nothing changes but the time and the marks of the plan. It
// returns what was done if a mark was taken back; the world stays as it was.
func (w *World) freeze() (story []string) {
	s := w.stilled()
	planner, set, steered := plan.NewPlanner(), map[string]bool{}, map[string]int{}
	for range 40 {
		s.Now = s.Now.Add(10 * time.Second)
		got := planner.Decide(s, w.policy)
		s.State = got.State
		for _, a := range got.Actions {
			story = append(story, s.Now.Format(time.TimeOnly)+" "+a.String())
			if !marks(s, a) {
				return nil
			}
			switch x := a.(type) {
			case action.Mark:
				set[x.Node.Name] = true
			case action.Unmark:
				if set[x.Node.Name] {
					return story
				}
			case action.Steer:
				if steered[x.Node.Name]++; steered[x.Node.Name] > 1 {
					return story
				}
			}
		}
	}
	return nil
}

// stilled is what the scaler sees now; its nodes may be changed.
func (w *World) stilled() fleet.Snapshot {
	w.observe()
	s := w.snapshot
	s.Nodes = slices.Clone(s.Nodes)
	return s
}

// marks does an action on a snapshot if it sets or clears a mark.
func marks(s fleet.Snapshot, a action.Action) bool {
	switch x := a.(type) {
	case action.Mark:
		taint(s, x.Node.Name, func(n *fleet.Node) { n.Taints = contract.WithTaint(n.Taints, contract.UnneededTaint(x.Since)) })
	case action.Unmark:
		taint(s, x.Node.Name, func(n *fleet.Node) { n.Taints = contract.WithoutTaint(n.Taints, contract.TaintUnneeded) })
	case action.Steer:
		taint(s, x.Node.Name, func(n *fleet.Node) { n.Taints = contract.WithFillTurn(n.Taints, x.Fill) })
	default:
		return false
	}
	return true
}

func taint(s fleet.Snapshot, node string, change func(*fleet.Node)) {
	for i := range s.Nodes {
		if s.Nodes[i].Name == node {
			change(&s.Nodes[i])
		}
	}
}
