package plan_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// TestPodsThatComeBackLaw is law 19 for drains that the scaler carries on: it evicts the pods
// that it found, and in the stead of those a few of each owner, though kube-scheduler binds
// every one to the node that drains. A retirement to which one came back is taken back.
func TestPodsThatComeBackLaw(t *testing.T) {
	const most = 10 // of an owner
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		x.line("group g0 desired=2", x.one("hook", "hook=windlass", "hook=windlass/10m/2h"))
		x.line("node n1 group=g0")
		x.line("agent n1 gone")
		x.line("node n2 group=g0") // kube-scheduler prefers the first that it may take
		switch x.one("why", "asg", "scale-down", "request", "spot") {
		case "asg":
			x.line("node n1 state=Terminating:Wait leaving=09:59:00")
			x.line("request n1 kind=asg at=09:59:00", x.one("deadline", "deadline=10:02:00", "deadline=10:10:00", "deadline=10:59:00"))
		case "scale-down":
			x.line("node n1 unneeded=09:30:00 cordoned excluded taints=" + contract.TaintDraining + "=scale-down:NoSchedule")
			x.line("request n1 kind=scale-down at=09:58:00")
		case "request":
			x.line("node n1 cordoned excluded taints=" + contract.TaintDraining + "=request:NoSchedule")
			x.line("report n1 phase=Draining kind=request answers=request:upgrade since=09:59:00 renewed=09:59:00", x.one("excluded", "", "excluded=09:59:00"))
		case "spot":
			x.line("node n1 cordoned excluded taints=" + contract.TaintDraining + "=spot:NoSchedule")
			x.line("report n1 phase=Draining kind=spot answers=spot:1 since=09:59:00 renewed=09:59:00 excluded=09:59:00", x.one("by", "", "deadline=10:01:30"))
		}
		for a := range x.number("apps", 1, 3) {
			tolerates, name := x.one("tolerates", "", "tolerates=*"), fmt.Sprintf("app%d", a)
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
		found, again := map[string]bool{}, map[string]int{}
		for _, pod := range w.Pods {
			found[string(pod.UID)] = true
		}
		came := false
		for range rapid.IntRange(5, 20).Draw(t, "evaluations") {
			schedule(w)
			before := map[string]*fleet.Pod{}
			for _, pod := range w.Pods {
				before[string(pod.UID)] = pod
				came = came || pod.Node == "n1" && !found[string(pod.UID)]
			}
			got := look(t, w, p)
			for _, a := range got.Actions {
				evict, ok := a.(action.Evict)
				if !ok || found[string(evict.Pod.UID)] {
					continue
				}
				owner := before[string(evict.Pod.UID)].Owner.Name
				if again[owner]++; again[owner] > most {
					t.Fatalf("law 19: %s is the %dth eviction of a pod that came in the stead of others\n%s", a, again[owner], lines)
				}
				if retires(w.Snapshot, "n1") {
					t.Fatalf("law 19: %s, for a retirement\n%s", a, lines)
				}
			}
			if came && retires(w.Snapshot, "n1") {
				t.Fatalf("law 19: a pod came back, and the node is retired all the same\n%s", lines)
			}
			for i := range w.Budgets {
				w.Budgets[i].Allowed = max(w.Budgets[i].Allowed, 1)
			}
			w.Advance(time.Duration(x.number("seconds", 1, 180)) * time.Second)
		}
	})
}
