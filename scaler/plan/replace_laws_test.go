package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/scenario"
	"windlass.dev/windlass/scaler/plan"
)

// TestSwapsSave lets random worlds live in which nodes are replaced and nothing else
// happens: they come to rest, every pod that had a node has one in the end, and from one
// finished swap to the next the nodes cost less.
func TestSwapsSave(t *testing.T) {
	finished := 0
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, pricedWorld(t))
		p := plan.DefaultPolicy()
		p.Consolidate = plan.ConsolidateReplace
		p.UnneededTime = time.Duration(rapid.IntRange(0, 10).Draw(t, "unneeded")) * time.Minute
		p.UtilizationThreshold = rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "threshold")
		bound := countBound(w)
		cost := priceOf(w.Snapshot)
		var log []string
		quiet := 0
		for round := 0; quiet < 30; round++ {
			if round == 400 {
				t.Fatalf("no rest:\n%s\n%s", strings.Join(log, "\n"), scenario.Format(w.Snapshot))
			}
			before := w.State.Swap
			got := look(t, w, p)
			for _, a := range got.Actions {
				log = append(log, w.Now.Format(time.TimeOnly)+" "+a.String())
			}
			if quiet++; len(got.Actions) > 0 {
				quiet = 0
			}
			if finishedSwap(before, w.State) {
				finished++
				if now := priceOf(w.Snapshot); now > cost-0.001 {
					t.Fatalf("a finished swap leaves nodes for $%.3f an hour, and they were $%.3f:\n%s", now, cost, strings.Join(log, "\n"))
				}
				cost = priceOf(w.Snapshot)
			}
			w.Now = w.Now.Add(time.Minute)
			w.Launch()
			w.Join()
			schedule(w)
			w.Drain()
			w.Refill()
			w.Reap()
			schedule(w)
		}
		if now := countBound(w); now != bound {
			t.Fatalf("%d pods have nodes, %d had:\n%s", now, bound, strings.Join(log, "\n"))
		}
	})
	if finished == 0 {
		t.Error("not one swap was finished: the worlds are not worth their while")
	}
	t.Logf("%d swaps finished", finished)
}

// finishedSwap says that a swap that was under way is done.
func finishedSwap(before *fleet.Swap, after fleet.State) bool {
	if before == nil || before.Launched.IsZero() || after.Swap != nil {
		return false
	}
	_, givenUp := after.SwapPauses[before.Group]
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
				x.line("pod", fmt.Sprintf("p%d", pods), fmt.Sprintf("on=n%d", nodes), fmt.Sprintf("cpu=%dm", milli), x.rarely("priority=1000000000"), x.rarely("safe=false"), x.rarely("apart"))
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
		sum += float64(len(live)) * g.Shapes[0].PricePerHour
	}
	return sum
}
