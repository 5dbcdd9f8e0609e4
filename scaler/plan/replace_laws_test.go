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
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawSwaps: a cheaper node replaces others only when it serves, and does not go before they have;
// and each replacement buys one node.
func lawSwaps(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	var broken []string
	before, after := s.State.Replacement, got.State.Replacement
	bought := 0
	for _, a := range got.Actions {
		if grow, ok := a.(action.Grow); ok && grow.Why != "" {
			bought += grow.To - grow.From
		}
	}
	if begun := begins(before, after); begun && bought != 1 || !begun && bought != 0 {
		broken = append(broken, fmt.Sprintf("swaps: %d nodes are bought by %v", bought, got.Actions))
	}
	came, goesOn := cameFor(s, before), launched(after) && !begins(before, after)
	for _, a := range got.Actions {
		retire, ok := a.(action.RequestDrain)
		if !ok || retire.Kind != contract.KindScaleDown {
			continue // others take it
		}
		goes := launched(before) && slices.Contains(before.Instances, nodeNamed(s, retire.Node.Name).InstanceID())
		if strings.Contains(retire.Why, "replaces it") && !(goes && len(came) > 0) {
			broken = append(broken, fmt.Sprintf("swaps: %s, and no node has come", retire))
		}
		if goesOn && came[retire.Node.Name] {
			broken = append(broken, fmt.Sprintf("swaps: %s, and those have not gone that it came for", retire))
		}
	}
	for _, a := range got.Actions {
		if mark, ok := a.(action.Mark); ok && goesOn && came[mark.Node.Name] {
			broken = append(broken, fmt.Sprintf("swaps: %s, and those have not gone that it came for", mark))
		}
	}
	return broken
}

func launched(s *fleet.NodeReplacement) bool { return s != nil && !s.Launched.IsZero() }

// begins reports whether a node was launched for another replacement than the one before.
func begins(before, after *fleet.NodeReplacement) bool {
	return launched(after) && !(launched(before) && before.Launched.Equal(after.Launched))
}

// cameFor are the nodes that are Ready and came since the launch.
func cameFor(s fleet.Snapshot, swap *fleet.NodeReplacement) map[string]bool {
	came := map[string]bool{}
	if !launched(swap) {
		return came
	}
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			for _, n := range s.Nodes {
				if g.Name == swap.Group && n.InstanceID() == i.ID && n.Ready && !n.Created.Before(swap.Launched.Truncate(time.Second)) {
					came[n.Name] = true
				}
			}
		}
	}
	return came
}

// TestSwapsSave lets random worlds live in which nodes are replaced and nothing else happens, but
// that now and then the scaler is killed before or amid its actions, or before it learns of a
// launch: they settle, every pod that had a node has one in the end, no more nodes were bought than
// replacements begun, and from one finished replacement to the next the nodes cost less.
func TestSwapsSave(t *testing.T) {
	finished, killed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := newSwapLife(t)
		for quiet := 0; quiet < 15; quiet++ {
			if l.round(t) {
				quiet = 0
			}
			if l.rounds == 400 {
				l.fail(t, "no rest")
			}
		}
		if now := countBound(l.World); now != l.bound {
			l.fail(t, fmt.Sprintf("%d pods have nodes, %d had", now, l.bound))
		}
		finished, killed = finished+l.finished, killed+l.kills
	})
	if finished == 0 || killed == 0 {
		t.Errorf("%d swaps finished, %d kills: the worlds are not worth their while", finished, killed)
	}
	t.Logf("%d swaps finished, %d kills", finished, killed)
}

// TestReplacementsComeDue: of worlds in which replacements are worth while only once pods have run
// for some time, the next evaluation is asked for in time.
func TestReplacementsComeDue(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		l := newSwapLife(t)
		l.policy.Consolidate, l.deadly = policy.ConsolidateBalance, false
		for range 30 {
			got := plan.Decide(l.Snapshot, l.policy)
			for _, broken := range lawWake(l.Snapshot, l.policy, got) {
				l.fail(t, broken)
			}
			if l.State.Replacement == nil && got.State.Replacement != nil {
				found++
			}
			l.act(t, got)
			l.Launch()
			l.Join()
			schedule(l.World)
			if len(got.Actions) > 0 {
				l.Now = l.Now.Add(time.Second)
				continue
			}
			if got.Wake.IsZero() {
				return
			}
			l.Now = got.Wake
		}
	})
	if found == 0 {
		t.Error("no replacement was found: the worlds are not worth their while")
	}
	t.Logf("%d replacements found", found)
}

// swapLife is a world of which nodes are replaced.
type swapLife struct {
	*scenario.World
	policy policy.Policy
	// deadly: the scaler is killed now and then.
	deadly bool
	// known are the instances that there were or that came.
	known map[string]bool
	// bound is how many pods have nodes, and cost what nodes did after the last replacement.
	bound int
	cost  float64

	rounds, begun, bought, finished, kills int
	log                                    []string
}

func newSwapLife(t *rapid.T) *swapLife {
	p := policy.DefaultPolicy()
	p.Consolidate = policy.ConsolidateReplace
	p.UnneededTime = time.Duration(rapid.IntRange(0, 10).Draw(t, "unneeded")) * time.Minute
	p.UtilizationThreshold = rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "threshold")
	w := parsed(t, pricedWorld(t))
	l := &swapLife{World: w, policy: p, deadly: rapid.Bool().Draw(t, "deadly"), known: map[string]bool{}, bound: countBound(w), cost: priceOf(w.Snapshot)}
	l.count()
	l.bought = 0
	return l
}

func (l *swapLife) fail(t *rapid.T, what string) {
	t.Fatalf("%s:\n%s\n%s", what, strings.Join(l.log, "\n"), scenario.Format(l.Snapshot))
}

// count counts the instances that were bought.
func (l *swapLife) count() {
	for _, g := range l.Groups {
		for _, i := range g.Instances {
			if !l.known[i.ID] {
				l.known[i.ID] = true
				l.bought++
			}
		}
	}
}

// round is an evaluation, what comes of it, and a minute, or three where nothing does.
func (l *swapLife) round(t *rapid.T) (busy bool) {
	l.rounds++
	before := l.State.Replacement
	got := plan.Decide(l.Snapshot, l.policy)
	for _, law := range []func(fleet.Snapshot, policy.Policy, plan.Plan) []string{lawSwaps, law6Places, law9Drained} {
		for _, broken := range law(l.Snapshot, l.policy, got) {
			l.fail(t, broken)
		}
	}
	if begins(before, got.State.Replacement) {
		l.begun++
	}
	l.act(t, got)
	if l.count(); l.bought > l.begun {
		l.fail(t, fmt.Sprintf("%d nodes were bought for %d swaps", l.bought, l.begun))
	}
	if finishedSwap(before, l.State) {
		l.finish(t)
	}
	step := 3 * time.Minute
	if len(got.Actions) > 0 || l.State.Replacement != nil {
		step = time.Minute
	}
	l.Now = l.Now.Add(step)
	l.Launch()
	l.Join()
	schedule(l.World)
	l.Drain()
	l.Refill()
	l.Reap()
	schedule(l.World)
	return len(got.Actions) > 0 || launched(l.State.Replacement)
}

// act carries a plan out, or the part of it before the scaler dies. What it persists is written
// before.
func (l *swapLife) act(t *rapid.T, got plan.Plan) {
	l.State = got.State
	todo := len(got.Actions)
	if todo > 0 && l.deadly && rapid.IntRange(0, 3).Draw(t, "killed") == 0 {
		todo = rapid.IntRange(0, todo-1).Draw(t, "after")
		l.kills++
	}
	for _, a := range got.Actions[:todo] {
		l.log = append(l.log, l.Now.Format(time.TimeOnly)+" "+a.String())
		if err := carry(l.World, a); err != nil {
			l.fail(t, err.Error())
		}
	}
	if todo == len(got.Actions) {
		return
	}
	l.log = append(l.log, l.Now.Format(time.TimeOnly)+" killed before "+got.Actions[todo].String())
	if x, ok := got.Actions[todo].(action.Grow); ok && x.Token != "" && rapid.Bool().Draw(t, "unheard") {
		if _, err := l.LaunchIn(x.Group, x.Zone, x.Token, x.Count); err != nil {
			l.fail(t, err.Error())
		}
	}
}

// finish takes notice of a replacement that is done.
func (l *swapLife) finish(t *rapid.T) {
	l.finished++
	now := priceOf(l.Snapshot)
	if now > l.cost-0.001 && l.kills == 0 {
		l.fail(t, fmt.Sprintf("a finished swap leaves nodes for $%.3f an hour, and they were $%.3f", now, l.cost))
	}
	l.cost = now
}

// finishedSwap reports whether a replacement that was under way is done.
func finishedSwap(before *fleet.NodeReplacement, after fleet.State) bool {
	if before == nil || before.Launched.IsZero() || after.Replacement != nil {
		return false
	}
	_, givenUp := after.ReplacementBackOffs[before.Group]
	return !givenUp
}

// pricedWorld has groups of several sizes and prices and pods that all run.
func pricedWorld(t *rapid.T) string {
	x := &text{T: t}
	kinds := []struct {
		name       string
		milli, mib int
	}{{"m5.large", 1930, 7 << 10}, {"m5.xlarge", 3920, 14 << 10}, {"m5.2xlarge", 7910, 29 << 10}}
	nodes, pods := 0, 0
	for g := range x.number("groups", 2, 4) {
		kind := kinds[x.number("kind", 0, len(kinds)-1)]
		n := x.number("nodes", 0, 4)
		x.line("group", fmt.Sprintf("g%d", g), fmt.Sprintf("desired=%d max=%d", n, n+x.number("spare", 0, 3)), "type="+kind.name,
			fmt.Sprintf("price=0.%02d", x.number("price", 1, 60)), x.one("zones", "", "zones=a,b"), x.one("steered", "", "steered"), x.one("hook", "", "hook=windlass"))
		for range n {
			nodes++
			x.line("node", fmt.Sprintf("n%d", nodes), fmt.Sprintf("group=g%d", g))
			room := kind.milli
			for range x.number("pods", 0, 4) {
				pods++
				milli := min(room, 100*x.number("cpu", 1, kind.milli/150))
				if room -= milli; milli < 100 {
					break
				}
				x.line("pod", fmt.Sprintf("p%d", pods), fmt.Sprintf("on=n%d", nodes), fmt.Sprintf("cpu=%dm", milli), x.rarely("priority=1000000000"), x.rarely("safe=false"), x.rarely("apart"),
					x.one("age", "", "age=0s", "age=90s", "age=20m", "age=40h"))
			}
		}
	}
	return strings.Join(x.lines, "\n")
}

func countBound(w *scenario.World) int {
	n := 0
	for _, p := range w.Pods {
		if p.Node != "" && !p.Ended() {
			n++
		}
	}
	return n
}

// priceOf is what the live instances cost in an hour.
func priceOf(s fleet.Snapshot) float64 {
	sum := 0.0
	for _, g := range s.Groups {
		live := slices.DeleteFunc(slices.Clone(g.Instances), func(i fleet.Instance) bool { return !i.Live() })
		sum += float64(len(live)) * g.NodeTemplates[0].PricePerHour
	}
	return sum
}
