package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestPendingPodsChangeNoMarks: where marks have settled, pods come and go that no node can take. While
// the clock stands they change no mark; while some minutes pass each node's changes once at most, as
// time makes more or less worth while. Cheaper nodes without pods, which may serve dearer ones, are in
// most of these worlds.
func TestPendingPodsChangeNoMarks(t *testing.T) {
	useful := 0
	rapid.Check(t, func(t *rapid.T) {
		w, p := parsed(t, spareWorld(t)), policy.DefaultPolicy()
		p.Consolidate = rapid.SampledFrom([]string{policy.ConsolidateReplace, policy.ConsolidateBalance}).Draw(t, "consolidate")
		settles(t, w, p)
		start, step := scenario.Format(w.Snapshot), time.Duration(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "step"))*time.Second
		changes := map[string]int{}
		var story []string
		for range rapid.IntRange(1, 8).Draw(t, "evaluations") {
			w.Pods = slices.DeleteFunc(w.Pods, func(p *fleet.Pod) bool { return strings.HasPrefix(p.Name, "huge") })
			for i := range rapid.IntRange(0, 2).Draw(t, "pending") {
				if err := w.Apply(fmt.Sprintf("pod huge-%d waiting cpu=%d", i, rapid.SampledFrom([]int{20, 200}).Draw(t, "cpu"))); err != nil {
					t.Fatal(err)
				}
			}
			w.Now = w.Now.Add(step)
			got := plan.Decide(w.Snapshot, p)
			story = append(story, render(got, nil))
			for _, a := range got.Actions {
				switch a := a.(type) {
				case action.Mark:
					changes[a.Node.Name]++
				case action.Unmark:
					changes[a.Node.Name]++
				}
			}
			for name, n := range changes {
				if step == 0 || n > 1 {
					t.Fatalf("the mark of %s changes %d times\n%s\n%s", name, n, strings.Join(story, "\n"), start)
				}
			}
			applyMarks(t, w, got)
			useful += len(spared(got))
		}
	})
	if useful == 0 {
		t.Error("no node serves dearer ones: the worlds are not worth their while")
	}
}

// spared are the nodes that stay as they cost less than others, whose pods fit them.
func spared(p plan.Plan) (nodes []string) {
	for _, v := range p.Verdicts {
		if v.Reason == verdict.NodeNeeded && strings.Contains(v.Details.String(), "it costs less than ") {
			nodes = append(nodes, v.Name)
		}
	}
	return nodes
}

// spareWorld has nodes that are well used, others of several prices that are not used or hardly,
// and a group in back-off that pods wait for.
func spareWorld(t *rapid.T) string {
	x := &text{T: t}
	x.line("group huge type=m5.2xlarge cpu=40 price=2.3")
	x.line("backoff huge until=11:00:00 cause=InsufficientInstanceCapacity")
	pods := 0
	for g, price := range []float64{0.384, 0.3, 0.16} {
		name, nodes := fmt.Sprintf("g%d", g), x.number("nodes", 0, 4)
		x.line("group", name, fmt.Sprintf("desired=%d max=9 price=%v", nodes, price), x.one("type", "type=m5.2xlarge", "type=m5.2xlarge", "type=m5.xlarge"), x.rarely("min=1"), x.rarely("zones=a,b"))
		for n := range nodes {
			node := fmt.Sprintf("%s-%d", name, n)
			x.line("node", node, "group="+name, x.one("marked", "", "", "unneeded=09:55:00", "unneeded=09:57:00"))
			count := x.number("pods", 0, 3)
			if x.number("empty", 0, g) > 0 {
				count = 0
			}
			for range count {
				pods++
				x.line("pod", fmt.Sprintf("p%d", pods), "on="+node, fmt.Sprintf("cpu=%dm", 100*x.number("cpu", 1, 25)), x.rarely("priority=1000000000"), x.rarely("safe=false"), x.rarely("apart labels=app=x"), x.one("age", "", "age=20h", "age=5s"))
			}
		}
	}
	return strings.Join(x.lines, "\n")
}
