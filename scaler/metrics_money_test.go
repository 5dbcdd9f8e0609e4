package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"pgregory.net/rapid"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
	"windlass.dev/windlass/scaler/status"
)

// series are the values of a metric, by those of its labels in the order of their names.
func series(t testing.TB, m *metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			key := ""
			for _, l := range x.GetLabel() {
				key += "/" + l.GetValue()
			}
			if f.GetName() == name {
				values[key] = x.GetGauge().GetValue() + x.GetCounter().GetValue()
			}
		}
	}
	return values
}

func total(values map[string]float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// What the groups cost is what the reasons cost, and what `kubectl windlass cost` makes of the same
// nodes, group by group, type by type and reason by reason, whatever the world is.
func TestMoneyOfRandomWorlds(t *testing.T) {
	bill := status.Bill{Book: prices.Shipped(), Spot: prices.Spot{{Type: "m5.large"}: 0.05}, Prices: statuspage.Prices{SpotFactor: 0.4}}
	rapid.Check(t, func(rt *rapid.T) {
		s := randomFleet(rt)
		p := plan.Decide(s, policy.DefaultPolicy())
		m := newMetrics()
		m.money.bill = func() status.Bill { return bill }
		m.record(evaluation{snapshot: s, plan: p})
		groups, reasons, nodes := series(t, m, "windlass_group_dollars_per_hour"), series(t, m, "windlass_dollars_per_hour"), series(t, m, "windlass_nodes")
		if math.Abs(total(groups)-total(reasons)) > 1e-9 || int(total(nodes)) != len(s.Nodes) {
			rt.Errorf("groups cost %v, reasons %v; %v nodes of %d", groups, reasons, nodes, len(s.Nodes))
		}
		w := view.World{Now: s.Now, Verdicts: status.NewVerdicts(s, p, bill)}
		for i := range s.Nodes {
			w.Nodes = append(w.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Nodes[i].Name, Labels: s.Nodes[i].Labels}})
		}
		cost := view.NewCost(w, view.Rates{})
		if got := series(t, m, "windlass_unpriced_nodes")[""]; int(got) != cost.Unpriced {
			rt.Errorf("%v nodes have no price, cost says %d", got, cost.Unpriced)
		}
		byGroup, byType, byReason := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for i := range w.Verdicts.Nodes {
			n := &w.Verdicts.Nodes[i]
			byGroup["/"+string(n.Capacity())+"/"+n.Group] += n.PricePerHour
		}
		for _, part := range cost.Reasons {
			byReason["/"+part.Name] = part.DollarsPerHour
		}
		for _, part := range cost.Capacity {
			byType[part.Name] = part.DollarsPerHour
		}
		for key, dollars := range groups {
			for kind, name := range map[string]string{"/on-demand/": "on demand", "/spot/": "spot", "/unknown/": view.SpotOrOnDemand} {
				if len(key) >= len(kind) && key[:len(kind)] == kind {
					byType[name] -= dollars
				}
			}
		}
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-5 } // cost rounds
		if !maps.EqualFunc(byGroup, groups, near) || !maps.EqualFunc(byReason, reasons, near) {
			rt.Errorf("cost has %v and %v, the metrics %v and %v", byGroup, byReason, groups, reasons)
		}
		for name, left := range byType {
			if !near(left, 0) {
				rt.Errorf("cost of %s differs by %v", name, left)
			}
		}
		for name, share := range series(t, m, "windlass_requested_ratio") {
			if !(share >= 0 && share <= 1) {
				rt.Errorf("%s is requested to %v", name, share)
			}
		}
	})
}

// randomFleet has groups of all kinds, nodes of them and of none, and pods there.
func randomFleet(t *rapid.T) fleet.Snapshot {
	s := fleet.Snapshot{Now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
	ids := 0
	for g := range rapid.IntRange(0, 3).Draw(t, "groups") {
		group := fleet.Group{Name: fmt.Sprint("g", g), Max: 9}
		switch rapid.IntRange(0, 2).Draw(t, "buys") {
		case 1:
			group.Spot = true
		case 2:
			group.Both = true
		}
		for range rapid.IntRange(0, 4).Draw(t, "instances") {
			ids++
			group.Instances = append(group.Instances, fleet.Instance{ID: fmt.Sprint("i-", ids), Zone: "us-east-1a", State: rapid.SampledFrom([]string{fleet.InService, fleet.Pending, fleet.TerminatingWait, "Warmed:Stopped", "Standby"}).Draw(t, "state")})
		}
		group.Desired = len(group.Instances)
		s.Groups = append(s.Groups, group)
	}
	for n := range rapid.IntRange(0, ids+2).Draw(t, "nodes") {
		size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(rapid.SampledFrom([]string{"0", "1930m", "64"}).Draw(t, "cpu")), corev1.ResourceMemory: resource.MustParse("7Gi"), corev1.ResourcePods: resource.MustParse("29")}
		node := fleet.Node{Name: fmt.Sprint("n", n), ProviderID: fmt.Sprint("aws:///us-east-1a/i-", n+1), Created: s.Now.Add(-time.Hour), ReadySince: s.Now.Add(-time.Hour), Ready: rapid.Bool().Draw(t, "ready"), Capacity: size, Allocatable: size,
			Labels: map[string]string{corev1.LabelTopologyRegion: rapid.SampledFrom([]string{"us-east-1", "eu-west-1"}).Draw(t, "region"), corev1.LabelInstanceTypeStable: rapid.SampledFrom([]string{"m5.large", "c5.xlarge", "x99.huge", ""}).Draw(t, "type")}}
		if kind := rapid.SampledFrom([]string{"", "SPOT", "ON_DEMAND"}).Draw(t, "label"); kind != "" {
			node.Labels[contract.LabelCapacityType] = kind
		}
		s.Nodes = append(s.Nodes, node)
		for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
			ask := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(rapid.SampledFrom([]string{"0", "500m", "9"}).Draw(t, "asks")), corev1.ResourceMemory: resource.MustParse("1Gi")}
			s.Pods = append(s.Pods, &fleet.Pod{Namespace: "d", Name: fmt.Sprintf("p%d-%d", n, i), Node: node.Name, Phase: rapid.SampledFrom([]fleet.Phase{fleet.PodRunning, fleet.PodSucceeded}).Draw(t, "phase"),
				Spec: &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: ask}}}}})
		}
	}
	return s
}

// Node time is counted whenever the loop turns, however far apart that is. It never goes back, and
// no leap of the clock is taken for time that passed.
func TestNodeSeconds(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	world := func(now time.Time, nodes int, groups ...fleet.Group) evaluation {
		l := evaluation{snapshot: fleet.Snapshot{Now: now, Groups: groups}}
		for i := range nodes {
			name := fmt.Sprint("n", i)
			l.snapshot.Nodes = append(l.snapshot.Nodes, fleet.Node{Name: name})
			l.plan.Verdicts = append(l.plan.Verdicts, &verdict.Verdict{Of: verdict.OfNode, Name: name, Group: groups[0].Name, Reason: verdict.NodeNeeded})
		}
		return l
	}
	spot, web := fleet.Group{Name: "batch", Spot: true}, fleet.Group{Name: "web"}
	m := newMetrics()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for _, step := range []struct {
		name string
		do   func()
		want map[string]float64
	}{
		{"before the first evaluation", func() { m.money.pass(at(-time.Minute)) }, map[string]float64{}},
		{"the first", func() { m.record(world(at(0), 2, web)) }, map[string]float64{"/on-demand/web": 0}},
		{"a turn without an evaluation", func() { m.money.pass(at(7 * time.Second)) }, map[string]float64{"/on-demand/web": 14}},
		{"and a node less", func() { m.record(world(at(10*time.Second), 1, web)) }, map[string]float64{"/on-demand/web": 20}},
		{"a minute later", func() { m.money.pass(at(70 * time.Second)) }, map[string]float64{"/on-demand/web": 80}},
		{"the clock is set back", func() { m.money.pass(at(-time.Hour)) }, map[string]float64{"/on-demand/web": 80}},
		{"and goes on from there", func() { m.money.pass(at(-time.Hour + time.Second)) }, map[string]float64{"/on-demand/web": 81}},
		{"and is set right", func() { m.money.pass(at(2 * time.Minute)) }, map[string]float64{"/on-demand/web": 81 + longestStep.Seconds()}},
		{"a day is lost", func() { m.money.pass(at(24 * time.Hour)) }, map[string]float64{"/on-demand/web": 81 + 2*longestStep.Seconds()}},
		{"it leads again after a while", func() { m.begin(); m.money.pass(at(25 * time.Hour)) }, map[string]float64{"/on-demand/web": 81 + 2*longestStep.Seconds()}},
		{"with a spot group besides", func() { m.record(world(at(26*time.Hour), 3, spot, web)) }, map[string]float64{"/on-demand/web": 81 + 2*longestStep.Seconds(), "/spot/batch": 0}},
		{"which is there alone", func() { m.record(world(at(26*time.Hour+time.Second), 3, spot)) }, map[string]float64{"/spot/batch": 3}},
	} {
		step.do()
		if diff := cmp.Diff(step.want, series(t, m, "windlass_node_seconds_total")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// However a clock runs, the counter only rises, and by no more than the nodes there are for as long
// as is believed.
func TestNodeSecondsOnlyRise(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, before, last := newMetrics(), 0.0, 0
		now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 30).Draw(rt, "turns") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(rt, "passes")))
			nodes := last
			if rapid.Bool().Draw(rt, "evaluated") {
				nodes = rapid.IntRange(0, 5).Draw(rt, "nodes")
				l := evaluation{snapshot: fleet.Snapshot{Now: now}}
				for i := range nodes {
					l.snapshot.Nodes = append(l.snapshot.Nodes, fleet.Node{Name: fmt.Sprint(i)})
					l.plan.Verdicts = append(l.plan.Verdicts, &verdict.Verdict{Of: verdict.OfNode, Name: fmt.Sprint(i)})
				}
				m.record(l)
			} else {
				m.money.pass(now)
			}
			after := total(series(t, m, "windlass_node_seconds_total"))
			if after < before || after > before+longestStep.Seconds()*float64(last)+1e-3 {
				rt.Fatalf("%v after %v, with %d nodes", after, before, last)
			}
			before, last = after, nodes
		}
	})
}

// How full the nodes of groups are: pods that have ended and nodes of no group do not count, a
// resize does, and what is too much for one node does not fill another.
func TestRequestedRatio(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	spec := func(cpu, memory string) *corev1.PodSpec {
		return &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(cpu, memory)}}}}
	}
	one := spec("1", "1Gi")
	l := evaluation{snapshot: fleet.Snapshot{
		Nodes: []fleet.Node{{Name: "a", Allocatable: list("4", "8Gi")}, {Name: "b", Allocatable: list("4", "8Gi")}, {Name: "mine", Allocatable: list("64", "64Gi")}},
		Pods: []*fleet.Pod{{Node: "a", Spec: one}, {Node: "a", Spec: one}, {Node: "a", Spec: one, Phase: fleet.PodSucceeded}, {Node: "mine", Spec: one}, {Spec: one},
			{Node: "b", Spec: spec("9", "1Gi")}, {Node: "b", Spec: one, Rare: &fleet.Rare{Allocated: list("1", "5Gi")}}},
	}}
	for name, group := range map[string]string{"a": "g", "b": "g", "mine": ""} {
		l.plan.Verdicts = append(l.plan.Verdicts, &verdict.Verdict{Of: verdict.OfNode, Name: name, Group: group})
	}
	m := newMetrics()
	for range 2 { // the second time from what is remembered of specs
		l.snapshot.Now = l.snapshot.Now.Add(addUpEvery)
		m.record(l)
		if diff := cmp.Diff(map[string]float64{"/cpu": 0.75, "/memory": 0.5}, series(t, m, "windlass_requested_ratio")); diff != "" {
			t.Error(diff)
		}
	}
	l.snapshot.Pods, l.snapshot.Nodes = nil, slices.Clip(l.snapshot.Nodes[2:])
	l.snapshot.Now = l.snapshot.Now.Add(addUpEvery - 1)
	m.record(l)
	if got := series(t, m, "windlass_requested_ratio"); len(got) == 0 {
		t.Error("it was added up again at once")
	}
	m.money.pass(l.snapshot.Now.Add(time.Minute)) // a turn that finds nothing changed
	if got := series(t, m, "windlass_requested_ratio"); len(got) > 0 {
		t.Errorf("%v is of nodes that are gone since a minute", got)
	}
	l.snapshot.Now = l.snapshot.Now.Add(-time.Hour) // a clock that was set back
	m.record(l)
	if got := series(t, m, "windlass_requested_ratio"); len(got) > 0 || len(m.money.asks) > 0 {
		t.Errorf("without nodes of groups %v, and %d specs are remembered", got, len(m.money.asks))
	}
}

// Each turn of the loop counts node time, also one that found nothing changed, or failed; whoever
// comes to lead again has not led meanwhile.
func TestTurnsCountNodeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newScaler(settings{}, fake.NewClientset(), nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.DiscardHandler))
		sc.tell(evaluation{snapshot: fleet.Snapshot{Now: sc.now(), Nodes: []fleet.Node{{Name: "n"}}}, plan: plan.Plan{Verdicts: []*verdict.Verdict{{Of: verdict.OfNode, Name: "n"}}}})
		for _, err := range []error{nil, errors.New("the API server is away")} {
			time.Sleep(time.Minute)
			sc.turned(err)
		}
		led, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got := total(series(t, sc.metrics, "windlass_node_seconds_total")); got != 120 {
			t.Errorf("%v s in two minutes, want 120", got)
		}
		time.Sleep(time.Minute)
		cancel()
		if err := sc.lead(led); err != nil {
			t.Fatal(err)
		}
		sc.turned(nil)
		if got := total(series(t, sc.metrics, "windlass_node_seconds_total")); got != 120 {
			t.Errorf("%v s, with a minute of another leader, want 120", got)
		}
	})
}
