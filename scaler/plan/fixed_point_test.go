package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// settlesIn is how many evaluations marks may take to settle where nothing else changes, if so many
// nodes are filled in another turn: the first may find marks that none would have made, and each
// changes the turns of ten nodes at most.
func settlesIn(steered int) int { return 3 + max(1, (steered+9)/10) }

// TestMarksSettle is law 18: while the clock stands still and nothing but the marks of the
// plan is done, evaluations reach a fixed point soon, and come back to no state.
func TestMarksSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, shrinkingWorld(t, 1))
		p := shrinkingPolicy(t)
		p.DisruptionCost = rapid.SampledFrom([]float64{0, 0.001, 0.05, 1}).Draw(t, "disruption cost")
		settles(t, w, p)
	})
}

// shrinkingPolicy draws what decides which nodes are unneeded.
func shrinkingPolicy(t *rapid.T) policy.Policy {
	p := policy.DefaultPolicy()
	p.UtilizationThreshold = []float64{0.5, 0.7, 0.9, 1}[rapid.IntRange(0, 3).Draw(t, "threshold")]
	p.Consolidate = rapid.SampledFrom(policy.ConsolidateModes).Draw(t, "consolidate")
	return p
}

// TestMarksOfCrowdsSettle is law 18 in larger worlds, where nodes are marked at random that could not
// all go.
func TestMarksOfCrowdsSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, shrinkingWorld(t, 16))
		settles(t, w, shrinkingPolicy(t))
	})
}

// TestSurplusSettles is law 18 where more nodes are surplus than may become so at once, and hardly any
// is worth to be emptied.
func TestSurplusSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(30, 120).Draw(t, "nodes")
		lines := []string{fmt.Sprintf("group web max=%d desired=%d type=m5.xlarge price=0.2", nodes, nodes)}
		for n := range nodes {
			lines = append(lines, fmt.Sprintf("node n%d group=web", n))
			for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
				lines = append(lines, fmt.Sprintf("pod p%d-%d on=n%d cpu=%dm", n, i, n, 50*rapid.IntRange(1, 10).Draw(t, "cpu")))
			}
		}
		p := policy.DefaultPolicy()
		p.Consolidate, p.DisruptionCost = policy.ConsolidateBalance, 100
		settles(t, parsed(t, strings.Join(lines, "\n")), p)
	})
}

// TestTurnsChangeAtAPace: however often pods come and go, no more than ten nodes get another turn in
// ten seconds. Else a tenant could have the scaler write to Nodes as fast as it makes pods.
func TestTurnsChangeAtAPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{"group web max=60 desired=60 type=m5.xlarge price=0.2"}
		for n := range 60 {
			lines = append(lines, fmt.Sprintf("node n%d group=web\npod p%d on=n%d cpu=%dm", n, n, n, 50*rapid.IntRange(1, 70).Draw(t, "cpu")))
		}
		w, p := parsed(t, strings.Join(lines, "\n")), policy.DefaultPolicy()
		var changed []time.Time
		for i := range 60 {
			w.Advance(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			n := rapid.IntRange(0, 59).Draw(t, "node")
			if err := w.Apply(fmt.Sprintf("pod flood-%d on=n%d cpu=%dm", i, n, 50*rapid.IntRange(1, 20).Draw(t, "cpu"))); err != nil {
				t.Fatal(err)
			}
			got := plan.Decide(w.Snapshot, p)
			applyMarks(t, w, got)
			for range action.Only[action.Steer](got.Actions) {
				changed = append(changed, w.Now)
			}
			for len(changed) > 0 && w.Now.Sub(changed[0]) >= 10*time.Second {
				changed = changed[1:]
			}
			if len(changed) > 10 {
				t.Fatalf("%d nodes get another turn in %v", len(changed), w.Now.Sub(changed[0]))
			}
		}
	})
}

// settles holds law 18 in a world, which it changes.
func settles(t *rapid.T, w *scenario.World, p policy.Policy) {
	start := scenario.Format(w.Snapshot)
	seen, steered := map[string]bool{}, map[string]bool{}
	var story []string
	for rounds := 0; rounds <= settlesIn(len(steered)); rounds++ {
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
		w.State.Steered = time.Time{} // at what pace turns change is another law
		for a := range action.Only[action.Steer](got.Actions) {
			steered[a.Node.Name] = true
		}
	}
	t.Fatalf("law 18: marks have not settled after %d evaluations\n%s\n%s", settlesIn(len(steered)), strings.Join(story, "\n"), start)
}

// What is left of an evaluation's work is no reason for which a node loses its mark: the next
// evaluation has a budget of its own.
func TestMarksOutliveTheBudget(t *testing.T) {
	for _, nodes := range []int{50, 100, 190} {
		for _, pods := range []int{4, 20} {
			snapshot, err := scenario.Parse(crowdedNodes(nodes, pods))
			if err != nil {
				t.Fatal(err)
			}
			p, asked := byThreshold(), 0
			for p.Bounds.ScaleDown = 50_000; p.Bounds.ScaleDown < 1_000_000; p.Bounds.ScaleDown = p.Bounds.ScaleDown * 6 / 5 {
				got := plan.Decide(snapshot, p)
				for range action.Only[action.Mark](got.Actions) {
					asked++
				}
				for a := range action.Only[action.Unmark](got.Actions) {
					t.Errorf("%d nodes of %d pods, with %d steps: %s", nodes, pods, p.Bounds.ScaleDown, a)
				}
			}
			if asked == 0 {
				t.Errorf("%d nodes of %d pods: no mark is ever made", nodes, pods)
			}
		}
	}
}

// Where the budget ends while it is asked who of the marked nodes can go together, those go that were
// asked: otherwise none would go in a cluster that is as large at each evaluation.
func TestMarkedNodesGoThoughTheBudgetEnds(t *testing.T) {
	snapshot, err := scenario.Parse(crowdedNodes(400, 8))
	if err != nil {
		t.Fatal(err)
	}
	p, some, all := policy.DefaultPolicy(), 0, 0
	p.UnneededTime = time.Minute
	for p.Bounds.ScaleDown = 2_000; p.Bounds.ScaleDown < 120_000; p.Bounds.ScaleDown = p.Bounds.ScaleDown * 21 / 20 {
		got := plan.Decide(snapshot, p)
		unneeded, unasked, drains := 0, 0, 0
		for _, v := range got.Verdicts {
			n := slices.IndexFunc(snapshot.Nodes, func(n fleet.Node) bool { return v.Of == verdict.OfNode && n.Name == v.Name && n.Ready })
			if n < 0 {
				continue
			}
			if _, marked, _ := contract.Unneeded(snapshot.Nodes[n].Taints); !marked {
				continue
			}
			switch v.Reason {
			case verdict.NodeUnneeded, verdict.NodeScalingDown:
				unneeded++
			case verdict.NodeNotEvaluated:
				unasked++
			default:
				t.Errorf("with %d steps: %s", p.Bounds.ScaleDown, v)
			}
		}
		for range action.Only[action.RequestDrain](got.Actions) {
			drains++
		}
		switch {
		case unneeded > 0 && drains == 0:
			t.Errorf("with %d steps %d marked nodes can go, and no drain begins", p.Bounds.ScaleDown, unneeded)
		case unneeded > 0 && unasked > 0:
			some++
		case unneeded > 0:
			all++
		}
	}
	if some == 0 || all == 0 {
		t.Errorf("in %d evaluations some of the marked nodes can go and the others are not asked, in %d all can; want some of either", some, all)
	}
}

// Nodes that take more work than the choice may take leave those their turns that come behind them.
func TestDearNodesLeaveTurns(t *testing.T) {
	w, err := scenario.Parse(`
group web desired=107 max=200
node busy-1..100 group=web
pod full-1..100 cpu=1200m
node dear-1..6 group=web
pod bound-1..6 cpu=100m affinity=kubernetes.io/hostname=elsewhere
node idle-1 group=web
pod easy on=idle-1 cpu=110m
`)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range w.Pods {
		if name, number, _ := strings.Cut(p.Name, "-"); number != "" {
			p.Node, p.Phase, p.Scheduling = map[string]string{"full": "busy-", "bound": "dear-"}[name]+number, fleet.PodRunning, fleet.Unjudged
			w.Pods[i] = p
		}
	}
	p := byThreshold()
	for p.Bounds.ScaleDown = 100; p.Bounds.ScaleDown < 2_000; p.Bounds.ScaleDown = p.Bounds.ScaleDown * 5 / 4 {
		reached := 0
		for minute := range 30 {
			now := w
			now.Now = now.Now.Add(time.Duration(minute) * time.Minute)
			for m := range action.Only[action.Mark](plan.Decide(now, p).Actions) {
				if m.Node.Name == "idle-1" {
					reached++
				}
			}
		}
		if reached == 0 {
			t.Errorf("with %d steps it is never asked whether idle-1 is needed", p.Bounds.ScaleDown)
		}
	}
}

// Nor is it one for which a replacement is forgotten that was found before: its clock would start anew.
func TestReplacementsOutliveTheBudget(t *testing.T) {
	w, err := scenario.Parse(`
group big desired=1 type=m5.2xlarge price=0.4
group small type=m5.xlarge price=0.2
node big-1 group=big
pod a on=big-1 cpu=2100m
`)
	if err != nil {
		t.Fatal(err)
	}
	p := policy.DefaultPolicy()
	p.Consolidate, p.UtilizationThreshold = policy.ConsolidateReplace, 0.1
	w.State = plan.Decide(w, p).State
	if w.State.Replacement == nil {
		t.Fatal("no replacement is found")
	}
	for p.Bounds.ScaleDown = 1; p.Bounds.ScaleDown < 10_000; p.Bounds.ScaleDown *= 2 {
		if kept := plan.Decide(w, p).State.Replacement; kept == nil || !kept.Found.Equal(w.State.Replacement.Found) {
			t.Errorf("with %d steps it is forgotten", p.Bounds.ScaleDown)
		}
	}
}

// crowdedNodes are nodes of three prices, a quarter of them marked, and some of those not Ready, with
// up to so many small pods each: all that are marked can go.
func crowdedNodes(nodes, pods int) string {
	dice := rand.New(rand.NewPCG(1, uint64(nodes)))
	var lines []string
	for g, kind := range []string{"m5.large price=0.1", "m5.xlarge price=0.2", "m5.2xlarge price=0.4"} {
		lines = append(lines, fmt.Sprintf("group g%d max=500 desired=%d type=%s", g, nodes/3+1, kind))
	}
	for n := range nodes {
		mark := []string{"unneeded=09:55:00", "", "", "", "unneeded=09:55:00 notready", "", "", ""}[n%8]
		lines = append(lines, fmt.Sprintf("node n%d group=g%d %s", n, n%3, mark))
		for i := range dice.IntN(pods + 1) {
			cpu := []int{20, 50, 100, 200}[dice.IntN(4)]*4/pods + 5
			lines = append(lines, fmt.Sprintf("pod p%d-%d on=n%d cpu=%dm mem=%dMi", n, i, n, cpu, 32*(1+dice.IntN(4))))
		}
	}
	return strings.Join(lines, "\n")
}

// shrinkingWorld is half-empty nodes, some of them marked, of groups that differ in price.
func shrinkingWorld(t *rapid.T, times int) string {
	x := &text{T: t}
	groups := x.number("groups", 1, 3)
	types := []string{"m5.large price=0.1", "m5.xlarge price=0.2", "m5.2xlarge price=0.4"}
	for g := range groups {
		x.line("group", fmt.Sprintf("g%d", g), "max=20", "type="+types[g], x.rarely("zones=a,b"))
	}
	pods := 0
	for n := range times * x.number("nodes", 2, 7) {
		name, g := fmt.Sprintf("n%d", n), x.number("group", 0, groups-1)
		x.line("node", name, fmt.Sprintf("group=g%d", g), x.one("marked", "", "unneeded=09:55:00", "unneeded=09:57:00"))
		for range x.number("pods", 0, 4) {
			pods++
			x.line("pod", fmt.Sprintf("p%d", pods), "on="+name, fmt.Sprintf("cpu=%dm", 100*x.number("cpu", 1, 18)), fmt.Sprintf("mem=%dMi", 256*x.number("mem", 0, 6)), x.rarely("apart labels=app=x"), x.rarely("safe=false"), x.one("age", "", "age=20h", "age=5s"))
		}
	}
	for g := range groups {
		of := strings.Count(strings.Join(x.lines, "\n"), fmt.Sprintf(" group=g%d", g))
		x.line("group", fmt.Sprintf("g%d", g), fmt.Sprintf("desired=%d", of))
	}
	return strings.Join(x.lines, "\n")
}

// markedNodes are the nodes that are marked as unneeded, and since when, and those that are not filled first.
func markedNodes(w *scenario.World) []string {
	var marked []string
	for _, n := range w.Nodes {
		if since, is, err := contract.Unneeded(n.Taints); is && err == nil {
			marked = append(marked, n.Name+" "+since.Format(time.TimeOnly))
		}
		if turn := contract.FillTurnOf(n.Taints); turn != contract.FillFirst {
			marked = append(marked, fmt.Sprint(n.Name, " fill turn ", turn))
		}
	}
	slices.Sort(marked)
	return marked
}

// applyMarks does what the marks of a plan ask for, and takes over its state; it says whether there
// was any.
func applyMarks(t *rapid.T, w *scenario.World, got plan.Plan) (any bool) {
	w.State = got.State
	for _, a := range got.Actions {
		switch a.(type) {
		case action.Mark, action.Unmark, action.Steer:
			if err := carry(w, a); err != nil {
				t.Fatal(err)
			}
			any = true
		}
	}
	return any
}
