package world

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/traces"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// moments are how many of a window law 18 is held at.
const moments = 1_000

// TestLawsInTraces: in windows of public traces all adds up at a thousand moments and at the end, and
// law 18 holds at each of these moments, where no group grows just then.
func TestLawsInTraces(t *testing.T) {
	traces.Play(t, func(t *testing.T, played trace.Trace) {
		for _, mode := range []string{policy.ConsolidateUnneeded, policy.ConsolidateReplace, policy.ConsolidateBalance} {
			t.Run(mode, func(t *testing.T) {
				p := policy.DefaultPolicy()
				p.Consolidate = mode
				w, err := New(Default(), played, p, 1)
				if err != nil {
					t.Fatal(err)
				}
				held, longest, planner := 0, 0, plan.NewPlanner()
				for i := range int64(moments) {
					moment := played.Seconds * (i + 1) / (moments + 1)
					if err := w.playUntilDue(moment); err != nil {
						t.Fatal(err)
					}
					if err := w.check(); err != nil {
						t.Fatalf("after %d s: %v", w.now, err)
					}
					rounds, story, grows := w.settle(planner)
					if story != nil {
						t.Errorf("law 18: frozen after %d s, marks do not settle:\n%s", w.now, strings.Join(story, "\n"))
					}
					if !grows {
						held++
					}
					longest = max(longest, rounds)
				}
				l, err := w.Run()
				if err != nil {
					t.Fatal(err)
				}
				if err := w.checkEnd(l); err != nil {
					t.Fatal(err)
				}
				t.Logf("law 18 is held at %d of %d moments; marks changed in %d evaluations in a row at most", held, moments, longest)
				if held < moments/2 {
					t.Errorf("law 18 is held at %d moments alone", held)
				}
			})
		}
	})
}

// TestKeptPlannerInADay: at five hundred moments of a generated day what the world's planner has kept
// makes no difference.
func TestKeptPlannerInADay(t *testing.T) {
	day, err := trace.Generate(trace.Mix{Seed: 3, Days: 1, Pods: 80})
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{policy.ConsolidateUnneeded, policy.ConsolidateReplace, policy.ConsolidateBalance} {
		t.Run(mode, func(t *testing.T) {
			p := policy.DefaultPolicy()
			p.Consolidate = mode
			w, err := New(Default(), day, p, 1)
			if err != nil {
				t.Fatal(err)
			}
			const moments = 500
			for i := range int64(moments) {
				if err := w.playUntilDue(day.Seconds * (i + 1) / (moments + 1)); err != nil {
					t.Fatal(err)
				}
				w.observe()
				if difference := w.planner.Judge(w.snapshot, w.policy); difference != "" {
					t.Fatalf("after %d s the kept planner decides %s", w.now, difference)
				}
			}
		})
	}
}

// steeredAtOnce is how many nodes an evaluation makes surplus, or no more, at most.
const steeredAtOnce = 10

// settle decides again and again while the clock stands still and nothing but marks is done, until
// none changes any more: in how many evaluations they did. It returns what was done if these are more
// than three and those that the surplus taints take, or if marks come back to what they were. Where a
// group grows there is nothing to be told: its nodes would be the next that is seen.
func (w *World) settle(planner *plan.Planner) (rounds int, story []string, grows bool) {
	s := w.stilled()
	seen, steered := map[string]bool{}, map[string]bool{}
	for ; ; rounds++ {
		state := markedNodes(s.Nodes)
		if seen[state] {
			return rounds, append(story, "comes back to "+state), false
		}
		seen[state] = true
		if most := 3 + (len(steered)+steeredAtOnce-1)/steeredAtOnce; rounds > most {
			return rounds, append(story, fmt.Sprintf("more than %d evaluations", most)), false
		}
		s.State.Steered = time.Time{} // at what pace turns change is another law
		got := planner.Decide(s, w.policy)
		s.State = got.State
		changed := false
		for _, a := range got.Actions {
			if _, is := a.(action.Grow); is {
				return rounds, nil, true
			}
			if !marks(s, a) {
				continue
			}
			changed = true
			story = append(story, fmt.Sprintf("%d: %s", rounds+1, a))
			if x, is := a.(action.Steer); is {
				steered[x.Node.Name] = true
			}
		}
		if !changed {
			return rounds, nil, false
		}
	}
}

// markedNodes are the nodes that are marked as unneeded, and since when, and those that are not filled first.
func markedNodes(nodes []fleet.Node) string {
	var marked []string
	for _, n := range nodes {
		if since, is, err := contract.Unneeded(n.Taints); is && err == nil {
			marked = append(marked, n.Name+" "+since.Format(time.TimeOnly))
		}
		if turn := contract.FillTurnOf(n.Taints); turn != contract.FillFirst {
			marked = append(marked, fmt.Sprint(n.Name, " fill turn ", turn))
		}
	}
	slices.Sort(marked)
	return strings.Join(marked, ",")
}
