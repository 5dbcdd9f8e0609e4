package world

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// oneGroup has nodes of two cores for a dollar an hour.
func oneGroup() Spec {
	return Spec{
		Boot: metav1.Duration{Duration: time.Minute}, Shutdown: metav1.Duration{Duration: 30 * time.Second},
		Scheduler: Scores{LeastAllocated: 1, BalancedAllocation: 1, TaintToleration: 3},
		Groups:    []Group{{Name: "two", Type: "two.cores", Price: 1, Max: 10, Zones: []string{"a"}, Allocatable: room("2", "8Gi")}},
	}
}

func room(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("100")}
}

func workloadOf(name, cpu string) trace.Workload {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")}
	return trace.Workload{
		Namespace: "default", Name: name, Kind: "ReplicaSet", Labels: map[string]string{"app": name},
		Spec: &corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}},
	}
}

// days begin at midnight.
var midnight = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func play(t *testing.T, spec Spec, seconds int64, p policy.Policy, workloads []trace.Workload, pods ...trace.Pod) *Ledger {
	t.Helper()
	w, err := New(spec, trace.Trace{Start: midnight, Seconds: seconds, Workloads: workloads, Pods: pods}, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.Run()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kinds are the decisions of a ledger with their moments.
func kinds(l *Ledger) (out []string) {
	for _, d := range l.Decisions {
		out = append(out, time.Duration(d.At*int64(time.Second)).String()+" "+d.Kind)
	}
	return out
}

// TestBillToTheSecond: a pod comes at 0:01:40 and the node is launched at once, Ready at
// 0:02:40. The pod ends at 0:50:00. The node is unneeded from then on, drained ten minutes
// later, at 1:00:00, and as its agent has nothing to do it is terminated a second after, at
// 1:00:01. That is 3,501 seconds of a dollar an hour.
func TestBillToTheSecond(t *testing.T) {
	l := play(t, oneGroup(), 2*3600, policy.DefaultPolicy(), []trace.Workload{workloadOf("app", "1")}, trace.Pod{Arrive: 100, Ends: 3000})
	if want := []string{"1m40s grow", "1h0m0s request-drain", "1h0m1s terminate"}; !slices.Equal(kinds(l), want) {
		t.Errorf("decisions: %v, want %v", kinds(l), want)
	}
	if got := l.Bills[0].Seconds; got != 3501 {
		t.Errorf("billed for %d s, want 3501", got)
	}
	if got, want := l.Dollars(), 3501.0/3600; math.Abs(got-want) > 1e-12 {
		t.Errorf("the bill is %v, want %v", got, want)
	}
	if len(l.Waits) != 1 || l.Waits[0] != 60 {
		t.Errorf("waits are %v, want the 60 s of the boot", l.Waits)
	}
	if got, want := l.PodHours(), (3000.0-160)/3600; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v pod-hours, want %v", got, want)
	}
	if l.Launches != 1 || l.Idle != 0 || l.Terminations != 1 || l.Evictions != 0 {
		t.Errorf("launches %d, idle %d, terminations %d, evictions %d; want 1, 0, 1, 0", l.Launches, l.Idle, l.Terminations, l.Evictions)
	}
}

// TestOwnersOfSeveralSizes: an owner whose pods were resized is two workloads, and has the replicas
// of both.
func TestOwnersOfSeveralSizes(t *testing.T) {
	p := policy.DefaultPolicy()
	p.Drainable.MinReplicas = 2
	workloads := []trace.Workload{workloadOf("app", "1"), workloadOf("app", "500m"), workloadOf("other", "1")}
	var pods []trace.Pod
	for _, workload := range []int{0, 0, 1, 2} {
		pods = append(pods, trace.Pod{Workload: workload, Ends: trace.Never})
	}
	w, err := New(oneGroup(), trace.Trace{Start: midnight, Seconds: 60, Workloads: workloads, Pods: pods}, p, 1)
	if err == nil {
		err = w.play()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.observe()
	got := map[string]int32{}
	for _, pod := range w.snapshot.Pods {
		got[pod.Owner.Name] = w.snapshot.Owners[pod.Owner.UID].Replicas
	}
	if want := map[string]int32{"app": 3, "other": 1}; !maps.Equal(got, want) {
		t.Errorf("owners have %v replicas, want %v", got, want)
	}
}

// TestPendingBetweenSamples: in two days samples are four minutes apart. Three pods that wait for
// the minute that a node boots, between two of them, show in the one that follows, and in it alone.
func TestPendingBetweenSamples(t *testing.T) {
	pods := []trace.Pod{{Arrive: 250, Ends: trace.Never}, {Arrive: 250, Ends: trace.Never}, {Arrive: 270, Ends: trace.Never}}
	l := play(t, oneGroup(), 2*24*3600, policy.DefaultPolicy(), []trace.Workload{workloadOf("app", "500m")}, pods...)
	for _, s := range l.Samples {
		want := 0
		if s.At == 480 {
			want = 3
		}
		if s.Pending != want {
			t.Errorf("at %d s the sample has %d pending pods, want %d", s.At, s.Pending, want)
		}
	}
}

// TestEvictionAndReplacement: six pods need two nodes; when four have ended the two that are
// left, one on each node, fit one. A node is emptied: its pod is evicted, runs elsewhere at
// once, and the node is terminated when the old pod has had its 30 seconds.
func TestEvictionAndReplacement(t *testing.T) {
	pods := []trace.Pod{{Ends: trace.Never}, {Ends: trace.Never}}
	for range 2 {
		pods = append(pods, trace.Pod{Workload: 1, Ends: 3600})
	}
	l := play(t, oneGroup(), 2*3600, policy.DefaultPolicy(), []trace.Workload{workloadOf("stays", "600m"), workloadOf("ends", "1300m")}, pods...)
	want := []string{"0s grow", "1h10m0s request-drain", "1h10m30s terminate"}
	if got := kinds(l); !slices.Equal(got, want) {
		t.Errorf("decisions: %v, want %v", got, want)
	}
	if l.Evictions != 1 || l.Cancelled != 0 || l.Lost != 0 {
		t.Errorf("%d evictions, %d drains cancelled, %d pods lost; want 1, 0, 0", l.Evictions, l.Cancelled, l.Lost)
	}
	if last := l.Waits[0]; last != 0 {
		t.Errorf("waits are %v: want that of the evicted pod, which is 0", l.Waits)
	}
	// One node for two hours, the other until the 30th second after 1:10.
	if got := l.Bills[0].Seconds; got != 7200+4230 {
		t.Errorf("billed for %d s, want %d", got, 7200+4230)
	}
}

// TestBudgetHoldsADrain: as above, but the pods have a budget that lets none be missing.
func TestBudgetHoldsADrain(t *testing.T) {
	none := 0
	stays := workloadOf("stays", "600m")
	stays.MaxUnavailable = &none
	pods := []trace.Pod{{Ends: trace.Never}, {Ends: trace.Never}, {Workload: 1, Ends: 3600}, {Workload: 1, Ends: 3600}}
	l := play(t, oneGroup(), 2*3600, policy.DefaultPolicy(), []trace.Workload{stays, workloadOf("ends", "1300m")}, pods...)
	if l.Evictions != 0 || l.Terminations != 0 {
		t.Errorf("%d evictions and %d terminations against the budget", l.Evictions, l.Terminations)
	}
}

// TestLaunchFailure: launch calls fail until one does not; then the pod has a node, and the
// failures are those of backed off groups, never two within the back-off of five minutes.
func TestLaunchFailure(t *testing.T) {
	for _, unsteered := range []bool{false, true} {
		spec := oneGroup()
		spec.LaunchFailures = 0.8
		spec.Groups[0].Unsteered = unsteered
		w, err := New(spec, trace.Trace{Start: midnight, Seconds: 12 * 3600, Workloads: []trace.Workload{workloadOf("app", "1")}, Pods: []trace.Pod{{Ends: trace.Never}}}, policy.DefaultPolicy(), 2)
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.Run()
		if err != nil {
			t.Fatal(err)
		}
		if l.LaunchFailures == 0 || l.Launches != 1 || len(l.Waits) != 1 || l.Waits[0] < 300 || l.Pending != 0 {
			t.Errorf("unsteered %v: %d failures, %d launches, waits %v, %d pending: want some failures, one launch, and a pod that waited for the back-off", unsteered, l.LaunchFailures, l.Launches, l.Waits, l.Pending)
		}
		if got, want := l.Bills[0].Seconds, 12*3600-(l.Waits[0]-60); got != want {
			t.Errorf("unsteered %v: billed for %d s, want %d: from the launch that came", unsteered, got, want)
		}
		var last int64
		for i, d := range l.Decisions {
			if d.Kind == "grow" && i > 0 && d.At-last < 300 {
				t.Errorf("unsteered %v: it grows at %d and %d s", unsteered, last, d.At)
			}
			last = d.At
		}
	}
}

// TestSpotInterruption: the pod is evicted at the notice, and runs on another node a boot time
// later; nothing is billed beyond the two minutes.
func TestSpotInterruption(t *testing.T) {
	spec := oneGroup()
	spec.Groups[0].Spot, spec.Interruptions = true, 0.5
	l := play(t, spec, 12*3600, policy.DefaultPolicy(), []trace.Workload{workloadOf("app", "1")}, trace.Pod{Ends: trace.Never})
	if l.Interruptions < 2 || l.Evictions < l.Interruptions || l.Killed != 0 {
		t.Errorf("%d interruptions, %d evictions, %d killed: want some, an eviction for each, and nothing killed", l.Interruptions, l.Evictions, l.Killed)
	}
	if worst := l.Waits[len(l.Waits)-1]; worst > 61 {
		t.Errorf("a pod waited %d s: want no more than a node takes to boot", worst)
	}
	if l.Pending != 0 {
		t.Errorf("%d pods wait at the end", l.Pending)
	}
}

// given is a snapshot of two nodes of a group web; the first has a pod.
func given() (s fleet.Snapshot, of trace.Workload, p *fleet.Pod) {
	group := oneGroup().Shapes()[0]
	group.Name, group.Desired = "web", 2
	s = fleet.Snapshot{Now: midnight}
	for _, name := range []string{"web-1", "web-2"} {
		group.Instances = append(group.Instances, fleet.Instance{ID: "i-" + name, Zone: "a", Type: "two.cores", State: fleet.InService, Protected: true})
		s.Nodes = append(s.Nodes, fleet.Node{
			Name: name, UID: types.UID(name), ProviderID: "aws:///a/i-" + name, Created: midnight.Add(-time.Hour), Ready: true, ReadySince: midnight.Add(-time.Hour),
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}, Capacity: room("2", "8Gi"), Allocatable: room("2", "8Gi"),
		})
	}
	s.Groups = []fleet.Group{group}
	of = workloadOf("app", "1")
	p = &fleet.Pod{Namespace: "default", Name: "app-s2", UID: "given", Created: fleet.SecondOf(midnight.Add(-time.Hour)), Labels: of.Labels, Owner: of.Owner(), Spec: of.Spec, Node: "web-1", Phase: fleet.PodRunning, Ready: true}
	s.Pods = []*fleet.Pod{p}
	return s, of, p
}

// goOn plays a snapshot for two hours.
func goOn(t *testing.T, s fleet.Snapshot, of trace.Workload, pods ...trace.Pod) (*Ledger, *World) {
	t.Helper()
	w, err := New(Spec{Boot: oneGroup().Boot, Shutdown: oneGroup().Shutdown}, trace.Trace{Start: midnight, Seconds: 2 * 3600, Workloads: []trace.Workload{of}, Pods: pods, Snapshot: &s}, policy.DefaultPolicy(), 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.Run()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.check(); err != nil {
		t.Error(err)
	}
	return l, w
}

// TestSnapshotGoesOn: nodes of a snapshot are billed from the start, and never mistaken for
// those that are launched, whatever their names. web-1 holds the pod and stays; web-2 is
// unneeded and goes after ten minutes.
func TestSnapshotGoesOn(t *testing.T) {
	s, of, p := given()
	l, _ := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: p}, trace.Pod{Arrive: 3600, Ends: trace.Never}, trace.Pod{Arrive: 3600, Ends: trace.Never})
	if want := []string{"10m0s request-drain", "10m1s terminate", "1h0m0s grow"}; !slices.Equal(kinds(l), want) {
		t.Errorf("decisions: %v, want %v", kinds(l), want)
	}
	if got, want := l.Bills[0].Seconds, int64(7200+601+3600); got != want {
		t.Errorf("billed for %d s, want %d", got, want)
	}
	if len(s.Nodes) != 2 || len(s.Groups[0].Instances) != 2 || s.Groups[0].Desired != 2 || s.Nodes[1].Annotations != nil {
		t.Error("the snapshot was changed")
	}
}

// TestWhatGoesInASnapshotGoesOn: an instance that is being terminated at the start comes to its end, whether
// it has a node or not and whatever step it is at. Its pod is made again, and is paid for.
func TestWhatGoesInASnapshotGoesOn(t *testing.T) {
	hook := fleet.Hook{Name: "windlass", Transition: fleet.OnTerminate, Heartbeat: metav1.Duration{Duration: time.Hour}, Global: metav1.Duration{Duration: 48 * time.Hour}, Default: "CONTINUE"}
	others := hook
	others.Name = "others"
	for _, state := range []string{fleet.Terminating, fleet.TerminatingWait, fleet.TerminatingProceed} {
		for _, hooks := range [][]fleet.Hook{nil, {hook}, {others}, {hook, others}} {
			for _, node := range []bool{true, false} {
				s, of, p := given()
				g := &s.Groups[0]
				g.Hooks, g.Desired = hooks, 0
				g.Instances = g.Instances[:1]
				g.Instances[0].State = state
				s.Nodes = s.Nodes[:1]
				if !node {
					s.Nodes, p.Node, p.Phase, p.Ready = nil, "", fleet.PodPending, false
				}
				l, w := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: p})
				if list := w.group("web").Instances; len(list) != 1 || list[0].ID == "i-web-1" || l.Pending > 0 || l.Launches != 1 || l.Bills[0].Seconds < 3600 {
					t.Errorf("%s, %d hooks, node %v: instances %v, %d pods wait, %d launches, %d s billed", state, len(hooks), node, list, l.Pending, l.Launches, l.Bills[0].Seconds)
				}
			}
		}
	}
}

// TestPricesOfZones: a machine is billed for what its own zone costs.
func TestPricesOfZones(t *testing.T) {
	s, of, p := given()
	g := &s.Groups[0]
	g.Zones = []string{"a", "b"}
	dear := g.NodeTemplates[0]
	dear.Zone, dear.PricePerHour = "b", 10
	dear.Labels = maps.Clone(dear.Labels)
	dear.Labels[corev1.LabelTopologyZone] = "b"
	g.NodeTemplates = append(g.NodeTemplates, dear)
	of.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"}
	g.Desired, g.Instances, s.Nodes, s.Pods = 0, nil, nil, nil
	p.Spec, p.Node, p.Phase, p.Ready = of.Spec, "", fleet.PodPending, false
	l, _ := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: p})
	if got := l.Dollars(); math.Abs(got-20) > 0.1 || len(l.Bills) != 2 || l.Bills[0].Seconds != 0 || l.Bills[1].Price != 10 {
		t.Errorf("two hours in the dear zone cost $%.2f: %+v", got, l.Bills)
	}
	g.NodeTemplates[1].PricePerHour = 0
	if _, err := New(Spec{Boot: oneGroup().Boot, Shutdown: oneGroup().Shutdown}, trace.Trace{Start: midnight, Seconds: 60, Snapshot: &s}, policy.DefaultPolicy(), 1); err == nil || !strings.Contains(err.Error(), "price of group web is not known") {
		t.Errorf("a zone without a price: %v", err)
	}
}

// TestBudgetOfAStatefulSet: a pod that is made again only when the one before it has left is missing until
// then, so the budget lets no other go.
func TestBudgetOfAStatefulSet(t *testing.T) {
	one := 1
	of := workloadOf("db", "100m")
	of.Kind, of.MaxUnavailable = "StatefulSet", &one
	w, err := New(oneGroup(), trace.Trace{Start: midnight, Seconds: 3600, Workloads: []trace.Workload{of}, Pods: []trace.Pod{{Ends: trace.Never}, {Ends: trace.Never}, {Ends: trace.Never}}}, policy.DefaultPolicy(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(); err != nil {
		t.Fatal(err)
	}
	is := func(when string, healthy, desired, allowed int32) {
		t.Helper()
		if b := w.budgets.seen[0]; b.Healthy != healthy || b.Desired != desired || b.Allowed != allowed {
			t.Errorf("%s: %d healthy, %d desired, %d allowed; want %d, %d, %d", when, b.Healthy, b.Desired, b.Allowed, healthy, desired, allowed)
		}
	}
	is("at first", 3, 2, 1)
	p := w.podAt[0]
	w.evict(p)
	is("while one leaves", 2, 2, 0)
	w.budgets.await(p, -1) // as when its grace is over
	w.remove(p)
	w.makeAgain(p.replica)
	is("when its successor waits", 2, 2, 0)
}

// TestOwnPrice: an instance of a group with several types costs what it is billed for, of a snapshot or
// launched, unless the group buys in two ways.
func TestOwnPrice(t *testing.T) {
	for _, both := range []bool{false, true} {
		s, of, p := given()
		g := &s.Groups[0]
		g.Mixed, g.Synchronous = true, !both
		want := g.NodeTemplates[0].PricePerHour
		if both {
			want = 0
		}
		_, w := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: p}, trace.Pod{Arrive: 3600, Ends: trace.Never}, trace.Pod{Arrive: 3600, Ends: trace.Never}, trace.Pod{Arrive: 3600, Ends: trace.Never})
		list := w.group("web").Instances
		if len(list) != 2 || list[0].ID != "i-web-1" {
			t.Fatalf("instances %v", list)
		}
		for _, i := range list {
			if i.PricePerHour != want {
				t.Errorf("both ways %v: %s costs %v, want %v", both, i.ID, i.PricePerHour, want)
			}
		}
	}
}

// TestHooks: a launch hook holds the new instance until its node is up, a termination hook the
// one that goes until it is completed.
func TestHooks(t *testing.T) {
	s, of, p := given()
	for _, transition := range []string{fleet.OnTerminate, fleet.OnLaunch} {
		s.Groups[0].Hooks = append(s.Groups[0].Hooks, fleet.Hook{Name: "windlass", Transition: transition, Heartbeat: metav1.Duration{Duration: time.Hour}, Global: metav1.Duration{Duration: 48 * time.Hour}, Default: "CONTINUE"})
	}
	p.Node = ""
	p.Phase, p.Ready = fleet.PodPending, false
	l, _ := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: p})
	want := []string{"request-drain", "terminate", "complete"}
	var got []string
	for _, d := range l.Decisions {
		got = append(got, d.Kind)
	}
	if !slices.Equal(got, want) {
		t.Errorf("decisions: %v, want %v", got[:min(len(got), 10)], want)
	}
}

// TestDaemonSets: each new node has a pod of the DaemonSet, which takes its share of the room:
// two pods of a core need two nodes.
func TestDaemonSets(t *testing.T) {
	s, of, p := given()
	s.DaemonSets = []fleet.DaemonSet{{Namespace: "kube-system", Name: "proxy", Template: corev1.PodTemplateSpec{Spec: *workloadOf("proxy", "100m").Spec}}}
	s.Nodes, s.Pods, s.Groups[0].Instances, s.Groups[0].Desired = nil, []*fleet.Pod{p}, nil, 0
	p.Node, p.Phase, p.Ready = "", fleet.PodPending, false
	l, w := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: p}, trace.Pod{Ends: trace.Never})
	daemons := map[string]int{}
	for _, p := range w.snapshot.Pods {
		if drainable.IsDaemonSet(p) {
			daemons[p.Node]++
		}
	}
	if want := map[string]int{"web-s1": 1, "web-s2": 1}; l.Launches != 2 || l.Pending != 0 || !maps.Equal(daemons, want) {
		t.Errorf("%d launches, %d pending, pods of the DaemonSet %v: want two nodes with one each", l.Launches, l.Pending, daemons)
	}
}

// TestGates: a gated pod waits, and keeps no pod like it from a node. The others are on a
// node each at first, and then on one: each of two pods has waited no second.
func TestGates(t *testing.T) {
	s, of, p := given()
	gated := *of.Spec
	gated.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}}
	held := *p
	held.Name, held.UID, held.Spec, held.Node, held.Phase, held.Ready = "held", "held", &gated, "", fleet.PodPending, false
	s.Pods = append(s.Pods, &held)
	l, _ := goOn(t, s, of, trace.Pod{Ends: trace.Never, Given: &held}, trace.Pod{Ends: trace.Never, Given: p}, trace.Pod{Ends: trace.Never})
	if l.Pending != 1 || l.Launches != 0 || !slices.Equal(l.Waits, []int64{0, 0, 7200}) {
		t.Errorf("%d pending, %d launches, waits %v: want the gated one alone to wait", l.Pending, l.Launches, l.Waits)
	}
}

// TestGivenBudgets: a budget of a snapshot lets as many be missing as at the start. With none no
// pod of the emptier node is evicted, with one it is.
func TestGivenBudgets(t *testing.T) {
	for allowed, want := range map[int32]int{0: 0, 1: 1} {
		s, of, p := given()
		s.Budgets = []fleet.Budget{{Namespace: "default", Name: "app", Selector: &metav1.LabelSelector{MatchLabels: of.Labels}, Allowed: allowed, Healthy: 2, Desired: 2 - allowed}}
		small := workloadOf("app", "500m")
		other := *p
		other.Name, other.UID, other.Node, p.Spec, other.Spec = "app-s3", "other", "web-2", small.Spec, small.Spec
		s.Pods = append(s.Pods, &other)
		l, _ := goOn(t, s, small, trace.Pod{Ends: trace.Never, Given: p}, trace.Pod{Ends: trace.Never, Given: &other})
		if l.Evictions != want || l.Terminations != want {
			t.Errorf("%d disruptions allowed: %d evictions and %d terminations, want %d: %v", allowed, l.Evictions, l.Terminations, want, kinds(l))
		}
	}
}

// TestKilledWithItsNode: a budget that lets none be missing keeps the pod on an interrupted node.
// It goes with the node, and its controller makes another.
func TestKilledWithItsNode(t *testing.T) {
	none := 0
	app := workloadOf("app", "1")
	app.MaxUnavailable = &none
	spec := oneGroup()
	spec.Groups[0].Spot, spec.Interruptions = true, 0.5
	l := play(t, spec, 12*3600, policy.DefaultPolicy(), []trace.Workload{app}, trace.Pod{Ends: trace.Never})
	if l.Killed < 2 || l.Killed > l.Interruptions || l.Evictions != 0 || len(l.Waits) != 1+l.Killed {
		t.Errorf("%d interruptions, %d killed, %d evictions, %d waits: want some to be killed, no evictions, and another pod for each", l.Interruptions, l.Killed, l.Evictions, len(l.Waits))
	}
}

// TestDefaultWorld: it is read, and what is wrong with a world is reported.
func TestDefaultWorld(t *testing.T) {
	if n := len(Default().Groups); n != 9 {
		t.Errorf("%d groups, want nine", n)
	}
	for text, want := range map[string]string{
		"boot: 60s\ncolour: red": `unknown field "colour"`,
		"boot: 0s":               "boot is 0s",
		"boot: 60s\ngroups: [{name: a, type: t, max: 1, zones: [z]}]":                     "group a costs 0",
		"boot: 60s\nlaunchFailures: 1":                                                    "launchFailures is 1",
		"boot: 60s\ngroups: [{name: a}, {name: b, allocatable: {cpu: 1e999999999}}]":      `groups[1].allocatable.cpu: "1e999999999" is beyond all quantities`,
		"boot: 60s\nGroups: [{name: a, Allocatable: {cpu: 2, memory: \"1e-999999999\"}}]": `Groups[0].Allocatable.memory: "1e-999999999" is beyond all quantities`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
