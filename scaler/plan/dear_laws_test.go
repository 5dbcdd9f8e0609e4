package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// TestNeedyPodsMakeOthersNoDearer: what is launched for pods that need a dear group and for others
// together costs no more than what is launched for each of them alone, and a cheap node: pods of one
// tenant that need GPUs, or no spot, decide for themselves. Pods that follow others are left out: they
// follow those there, too.
func TestNeedyPodsMakeOthersNoDearer(t *testing.T) {
	grown := 0
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		cheap := x.number("cents", 2, 10)
		x.line("group", "cheap", "max=60", x.one("zones", "zones=a", "zones=a,b"), x.one("steered", "", "steered"), x.one("type", "type=m5.large", "type=m5.xlarge"), fmt.Sprintf("price=0.%02d", cheap))
		need := x.one("need", "gpu=1", "selector=lifecycle=normal")
		if need == "gpu=1" {
			x.line("group", "dear", "max=60 type=g4dn.xlarge", fmt.Sprintf("price=0.%02d", x.number("dear cents", 40, 90)))
		} else {
			x.line("group", "dear", "max=60 type=m5.large labels=lifecycle=normal", fmt.Sprintf("price=0.%02d", x.number("dear cents", 40, 90)))
		}
		for i := range x.number("needy apps", 1, 3) {
			x.line("pod", fmt.Sprintf("needy%d-1..%d", i, x.number("needy", 1, 3)), "waiting", x.one("cpu", "cpu=300m", "cpu=800m", "cpu=1700m"), need, x.rarely("priority=100"))
		}
		for i := range x.number("apps", 1, 3) {
			x.line("pod", fmt.Sprintf("app%d-1..%d", i, x.number("count", 1, 12)), "waiting",
				x.one("cpu", "cpu=300m", "cpu=800m", "cpu=1100m", "cpu=1700m"), x.rarely("priority=100"),
				x.one("apart", "", "apart"), fmt.Sprintf("labels=app=app%d", i))
		}
		w := parsed(t, strings.Join(x.lines, "\n"))
		p := policy.DefaultPolicy()
		p.ScaleDown = false
		p.Expander = x.one("expander", policy.DefaultPolicy().Expander, policy.LeastWaste, policy.MostPods)
		cost := func(of func(*fleet.Pod) bool) float64 {
			s := w.Snapshot
			s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *fleet.Pod) bool { return !of(p) })
			return hourly(s, plan.Decide(s, p))
		}
		needy := func(p *fleet.Pod) bool { return strings.HasPrefix(p.Name, "needy") }
		all := cost(func(*fleet.Pod) bool { return true })
		apart := cost(needy) + cost(func(p *fleet.Pod) bool { return !needy(p) })
		if all > 0 {
			grown++
		}
		if p.Expander == policy.DefaultPolicy().Expander && all > apart+float64(cheap)/100+0.001 {
			t.Fatalf("together $%.2f an hour, apart $%.2f\n%s\n%s", all, apart, render(plan.Decide(w.Snapshot, p), []string{"pod"}), scenario.Format(w.Snapshot))
		}
	})
	if grown == 0 {
		t.Error("nothing was ever launched")
	}
}
