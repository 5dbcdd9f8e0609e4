package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// opposed are actions of which one undoes another, or goes by what another ends, where both are about
// one node or instance. A drain that another one takes over is cancelled first, and that is one step
// after the other.
var opposed = [][2]string{
	{scaleDown, "cancel-drain"},
	{scaleDown, "clear-termination-mark"},
	{"request-drain", "terminate"},
	{"clear-termination-mark", "terminate"},
	{"heartbeat", "complete"},
	{"cordon", "release"},
	{"evict", "cancel-drain"},
	{"permit", "not-yet"},
	{"mark", "unmark"},
	{"out-of-service", "in-service-again"},
}

const scaleDown = "scale-down"

// namesOf an action are that of its kind and, of a drain for scale-down, that, too.
func namesOf(a action.Action) []string {
	names := []string{action.TraitsOf(a).Kind}
	if x, is := a.(action.RequestDrain); is && x.Kind == contract.KindScaleDown {
		names = append(names, scaleDown)
	}
	return names
}

// forgoes reports whether a scale-down is cancelled and its instance ended for that very one. A node
// that is no more on its way out of service, and is drained for a notice of EC2's, is another matter.
func forgoes(a, b action.Action) bool {
	cancel, is := a.(action.CancelDrain)
	end, also := b.(action.Terminate)
	return is && also && cancel.ID == end.ID && contract.IsScaleDown(end.ID)
}

// lawOpposed: no plan does one thing twice, and none does two things of which one undoes the other.
// What it does to the size of a group is for law 3: each step begins at the size that the one before
// it leaves.
func lawOpposed(_ fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	var broken []string
	for i, a := range got.Actions {
		x := action.TraitsOf(a)
		for _, b := range got.Actions[:i] {
			y := action.TraitsOf(b)
			if x.Key == y.Key {
				broken = append(broken, fmt.Sprintf("opposed: twice in one plan: %s, %s", b, a))
			}
			if (x.Node != y.Node || x.Node.Name == "") && (x.Instance != y.Instance || x.Instance == "") {
				continue
			}
			does := func(a action.Action, name string) bool { return slices.Contains(namesOf(a), name) }
			between := func(pair [2]string) bool {
				return does(a, pair[0]) && does(b, pair[1]) || does(a, pair[1]) && does(b, pair[0])
			}
			if slices.ContainsFunc(opposed, between) || forgoes(a, b) || forgoes(b, a) {
				broken = append(broken, fmt.Sprintf("opposed: in one plan: %s, %s", b, a))
			}
		}
	}
	return broken
}

// TestLoweredOnce: where what a group wants cannot come, and is asked for no more, nodes of the group
// that are on their way out go with the right size all the same, by one plan or by two.
func TestLoweredOnce(t *testing.T) {
	both := 0
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		nodes, low := x.number("nodes", 1, 4), x.number("min", 0, 3)
		x.line(fmt.Sprintf("group g min=%d max=9 desired=%d failed=09:59:00/NoCapacity", low, max(low, nodes)+x.number("more", 0, 3)), x.one("hook", "", "hook=windlass"))
		x.line("grown g at=09:30:00")
		for i := range nodes {
			name := fmt.Sprintf("n%d", i+1)
			x.line("node", name, "group=g protected", x.one("ready", "", "", "", "notready"), x.one("unneeded", "", "unneeded=09:40:00"))
			if kind := x.one("request", "", "kind=scale-down", "kind=request"); kind != "" {
				x.line("request", name, kind, "at=09:50:00")
				x.line("report", name, x.one("phase", "phase=Draining", "phase=Drained", "phase=Blocked"), "since=09:55:00", x.one("kind", "", "", "kind=spot"))
			}
			x.line("agent", name, x.one("agent", "ready", "gone"))
			if x.rarely("marked") != "" {
				x.line("mark", name, "id=scale-down:i-"+name+":1")
			}
		}
		w, p := parsed(t, strings.Join(x.lines, "\n")), randomPolicy(t)
		for range 3 {
			got := look(t, w, p)
			lowers, decrements := slices.Collect(action.Only[action.Lower](got.Actions)), 0
			for end := range action.Only[action.Terminate](got.Actions) {
				if end.Decrement {
					decrements++
				}
			}
			both += min(len(lowers), decrements)
			w.Advance(time.Minute)
		}
	})
	if both == 0 {
		t.Error("no plan did both: nothing is told")
	}
}
