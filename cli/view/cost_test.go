package view

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/statuspage"
)

// A node of which nothing tells whether it is spot counts as neither, at the price on demand, and
// saves nothing.
func TestCostByCapacityType(t *testing.T) {
	w := World{Verdicts: statuspage.Verdicts{Prices: statuspage.Prices{SpotFactor: 0.4}, Nodes: []statuspage.Node{
		{Name: "a", PricePerHour: 0.1}, {Name: "b", PricePerHour: 0.04, OnDemandPerHour: 0.1, Spot: true}, {Name: "c", PricePerHour: 0.2, Both: true},
	}}}
	c := NewCost(w, Rates{Discount: 0.5})
	got := map[string]float64{}
	for _, part := range c.Capacity {
		got[part.Name] = part.DollarsPerHour
	}
	if diff := cmp.Diff(map[string]float64{"on demand": 0.05, "spot": 0.04, "spot or on demand": 0.1}, got); diff != "" || c.SpotSaving != 0.01 {
		t.Errorf("spot saves %v; (-want +got)\n%s", c.SpotSaving, diff)
	}
}

// What would lower the cost is told with what it is worth at the most: nodes that people keep, room
// of the wrong shape, and on demand where spot would do. What is worth little, what nobody can
// change and what is not of Windlass's groups is left out.
func TestLevers(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	w := World{Requested: map[string]corev1.ResourceList{}, Verdicts: statuspage.Verdicts{Prices: statuspage.Prices{SpotFactor: 0.4}}}
	node := func(name, group string, reason statuspage.Reason, price float64, requested corev1.ResourceList) *statuspage.Node {
		w.Nodes = append(w.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: list("10", "100Gi")}})
		w.Requested[name] = requested
		w.Verdicts.Nodes = append(w.Verdicts.Nodes, statuspage.Node{Name: name, Group: group, PricePerHour: price, Verdict: statuspage.Verdict{Reason: reason}})
		return &w.Verdicts.Nodes[len(w.Verdicts.Nodes)-1]
	}
	node("a", "web", "Needed", 1, list("8", "20Gi"))
	node("b", "db", "Needed", 1, list("10", "100Gi")).Both = true
	node("c", "web", "GroupAtMin", 2, list("0", "0"))
	node("d", "", "NotInAnyGroup", 5, list("1", "1Gi"))
	node("e", "web", "Unneeded", 0.5, list("0", "0"))
	node("f", "web", "Held", 0.001, list("0", "0"))
	got := []string{}
	for _, l := range NewCost(w, Rates{}).Levers {
		got = append(got, strings.Join([]string{dollarsOf(l.DollarsPerHour), l.What, l.Do}, " | "))
	}
	want := []string{
		"2.1006 | nodes of groups on demand: 4 | a group that buys spot, for pods that bear interruptions",
		"2 | nodes kept as GroupAtMin: 1 | lower the minimum",
		"0.5 | nodes in use of web: 1, with 20% of cpu and 80% of memory not requested | instances with less memory to a core",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func dollarsOf(sum float64) string { return strconv.FormatFloat(sum, 'f', -1, 64) }
