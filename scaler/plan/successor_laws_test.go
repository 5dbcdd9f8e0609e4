package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// TestHeldPlaces holds the laws, law 6 before all, against small worlds where a pod of a
// StatefulSet ends on a node that goes and others could go.
func TestHeldPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		nodes := x.number("nodes", 2, 4)
		x.line("group", "web", "max=9", fmt.Sprintf("desired=%d", nodes+1))
		x.line("node", "first", "group=web", "unneeded=09:40:00")
		x.line("pod", "db-0", "on=first", "owner=StatefulSet/db", fmt.Sprintf("cpu=%dm", 100*x.number("db", 1, 15)), "ends=10:05:00", x.rarely("succeeded"))
		x.line("request", "first", "kind=scale-down", "at=09:59:00")
		x.line("report", "first", "phase=Draining", "since=09:59:00", "left=1")
		for i := range nodes {
			name := fmt.Sprintf("web-%d", i)
			x.line("node", name, "group=web", x.one("marked", "", "unneeded=09:45:00"), x.rarely("cordoned"))
			for j := range x.number("pods", 0, 2) {
				x.line("pod", fmt.Sprintf("%s-%d", name, j), "on="+name, fmt.Sprintf("cpu=%dm", 100*x.number("cpu", 1, 9)))
			}
		}
		w := parsed(t, strings.Join(x.lines, "\n"))
		p := policy.DefaultPolicy()
		hold(t, w, p, plan.Decide(w.Snapshot, p))
	})
}
