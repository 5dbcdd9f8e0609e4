package plan_test

import (
	"fmt"
	"math/bits"
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

// TestPodsThatComeBackLaw is law 19 for drains that the scaler carries on: it evicts the pods that
// it found, and in place of those a few of each owner, one more each time that it has gone on for
// twice as long, and those that are there at the last call of each notice that has a deadline,
// however often that is put off, and however long kube-scheduler takes to bind every one to the
// node that drains. A scale-down to which one came back is cancelled.
func TestPodsThatComeBackLaw(t *testing.T) {
	const few = 3 // of an owner
	rapid.Check(t, func(t *rapid.T) {
		late := time.Duration(rapid.SampledFrom([]int{0, 0, 3, 30, 100}).Draw(t, "bound after")) * time.Second
		x := &text{T: t}
		x.line("group g0 desired=2", x.one("hook", "hook=windlass", "hook=windlass/10m/2h"))
		x.line("node n1 group=g0")
		x.line("agent n1 gone")
		x.line("node n2 group=g0") // kube-scheduler prefers the first that it may take
		switch x.one("why", "asg", "scale-down", "request", "spot") {
		case "asg":
			x.line("node n1 state=Terminating:Wait leaving=09:59:00")
			x.line("request n1 kind=asg at=09:59:00", x.one("deadline", "deadline=10:02:00", "deadline=10:10:00", "deadline=10:05:00"))
		case "scale-down":
			x.line("node n1 unneeded=09:30:00 cordoned excluded taints=" + contract.TaintDraining + "=scale-down:NoSchedule")
			x.line("request n1 kind=scale-down at=09:58:00")
		case "request":
			x.line("node n1 cordoned excluded taints=" + contract.TaintDraining + "=request:NoSchedule")
			x.line("request n1 kind=request by=someone id=request:upgrade at=09:59:00", x.one("deadline", "", "deadline=10:05:00"))
			x.line("report n1 phase=Draining kind=request answers=request:upgrade since=09:59:00 renewed=09:59:00", x.one("excluded", "", "excluded=09:59:00"))
		case "spot":
			x.line("node n1 cordoned excluded taints=" + contract.TaintDraining + "=spot:NoSchedule")
			x.line("report n1 phase=Draining kind=spot answers=spot:1 since=09:59:00 renewed=09:59:00 excluded=09:59:00", x.one("by", "", "deadline=10:01:30"))
		}
		for a := range x.number("apps", 1, 3) {
			tolerates, name := x.one("tolerates", "tolerates=*", "tolerates=*", ""), fmt.Sprintf("app%d", a)
			x.line(fmt.Sprintf("pod %s-1..%d on=n1 cpu=10m age=1h", name, x.number("pods", 1, 6)), "owner="+x.one("owner", "ReplicaSet", "StatefulSet")+"/"+name, tolerates)
			if x.number("guarded", 0, 2) == 0 {
				x.line("pdb", name, fmt.Sprintf("allowed=%d", x.number("allowed", 1, 3)))
			}
		}
		var lines string
		for _, l := range x.lines {
			lines += l + "\n"
		}
		w, p := parsed(t, lines), policy.DefaultPolicy()
		found, again, most, began := map[string]bool{}, map[string]int{}, map[string]int{}, w.Now
		for _, pod := range w.Pods {
			found[string(pod.UID)] = true
		}
		came, chosen := false, retires(w.Snapshot, "n1")
		for range rapid.IntRange(10, 40).Draw(t, "evaluations") {
			scheduleLate(w, late)
			before, here := map[string]*fleet.Pod{}, map[string]int{}
			for _, pod := range w.Pods {
				before[string(pod.UID)] = pod
				if pod.Node == "n1" {
					here[pod.Owner.Name]++
					most[pod.Owner.Name] = max(most[pod.Owner.Name], here[pod.Owner.Name])
				}
				came = came || pod.Node == "n1" && !found[string(pod.UID)]
			}
			got := look(t, w, p)
			for _, a := range got.Actions {
				evict, ok := a.(action.Evict)
				if !ok || found[string(evict.Pod.UID)] {
					continue
				}
				owner := before[string(evict.Pod.UID)].Owner.Name
				retries := bits.Len(uint(w.Now.Sub(began) / time.Minute))
				if again[owner]++; again[owner] > few+retries+most[owner] {
					t.Fatalf("law 19: %s is the %dth eviction of a pod that came in the stead of others\n%s", a, again[owner], lines)
				}
				if retires(w.Snapshot, "n1") {
					t.Fatalf("law 19: %s, for a retirement\n%s", a, lines)
				}
			}
			if came && retires(w.Snapshot, "n1") {
				t.Fatalf("law 19: a pod came back, and the node is retired all the same\n%s", lines)
			}
			if marked := nodeNamed(w.Snapshot, "n1").Annotations[contract.AnnotationTerminating] != ""; chosen && (marked || !retires(w.Snapshot, "n1")) {
				return // it was empty, or the next one is another drain
			}
			for i := range w.Budgets {
				w.Budgets[i].Allowed = max(w.Budgets[i].Allowed, 1)
			}
			putOff(w, "n1", time.Duration(rapid.SampledFrom([]int{10, 60, 100}).Draw(t, "left"))*time.Second, 150*time.Second)
			next := w.Now.Add(time.Duration(rapid.SampledFrom([]int{20, 60, 90}).Draw(t, "seconds")) * time.Second)
			if got.Wake.After(w.Now) && got.Wake.Before(next) {
				next = got.Wake
			}
			w.Advance(next.Sub(w.Now))
		}
	})
}

// However many owners a drain's pods have, few evictions are persisted of it, and all pods are
// evicted in the end.
func TestFewEvictionsAreRemembered(t *testing.T) {
	const owners, most = 80, 32
	w := scenario.NewWorld()
	lines := "group g desired=2\nnode n1 group=g cpu=8 cordoned excluded taints=" + contract.TaintDraining + "=request:NoSchedule\nagent n1 gone\nnode n2 group=g\n" +
		"request n1 kind=request by=someone id=request:upgrade at=09:59:00\n" +
		"report n1 phase=Draining kind=request answers=request:upgrade since=09:59:00 renewed=09:59:00 excluded=09:59:00\n"
	for i := range owners {
		lines += fmt.Sprintf("pod app%d on=n1 cpu=10m age=1h owner=ReplicaSet/app%d tolerates=*\n", i, i)
	}
	if err := w.Apply(lines); err != nil {
		t.Fatal(err)
	}
	evicted := 0
	for range 200 {
		got := plan.Decide(w.Snapshot, policy.DefaultPolicy())
		for range action.Only[action.Evict](got.Actions) {
			evicted++
		}
		if n := len(got.State.StandIns["n1"].Evicted); n > most {
			t.Fatalf("%d evictions are remembered", n)
		}
		if err := carryOut(w, got); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Second)
	}
	if evicted != owners {
		t.Errorf("%d pods are evicted of %d", evicted, owners)
	}
}

// scheduleLate binds the pods that have waited for so long.
func scheduleLate(w *scenario.World, late time.Duration) {
	for _, pod := range w.Pods {
		if pod.Node != "" {
			continue
		}
		if pod.Scheduling = fleet.Unjudged; w.Now.Sub(pod.Created.Time()) < late {
			pod.Scheduling = fleet.Gated
		}
	}
	schedule(w)
}

// putOff gives the request of a node, if no more than so much time is left to it, some more.
func putOff(w *scenario.World, node string, left, by time.Duration) {
	r, err := contract.ParseRequest(nodeNamed(w.Snapshot, node).Annotations[contract.AnnotationDrainRequest])
	if err != nil || r.Deadline.IsZero() || r.Deadline.Sub(w.Now) > left {
		return
	}
	r.Deadline = contract.At(w.Now.Add(left + by))
	w.Request(node, r)
}
