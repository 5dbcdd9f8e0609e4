package status

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestNewVerdicts(t *testing.T) {
	bill := Bill{prices.Book{"us-east-1": {"m5.large": 0.1}}, nil, statuspage.Prices{Source: "a list", SpotFactor: 0.5}}
	labels := func(more ...string) map[string]string {
		l := map[string]string{corev1.LabelTopologyRegion: "us-east-1", corev1.LabelInstanceTypeStable: "m5.large"}
		for i := 0; i+1 < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}
		return l
	}
	s := fleet.Snapshot{
		Now: noon,
		Groups: []fleet.Group{{Name: "web", Max: 9, Desired: 5, Spot: true, NodeTemplates: []fleet.NodeTemplate{{PricePerHour: 0.05}}, Instances: []fleet.Instance{
			{ID: "i-1", State: fleet.InService}, {ID: "i-2", State: fleet.InService}, {ID: "i-3", State: fleet.Pending, Protected: true}, {ID: "i-4", State: fleet.TerminatingWait},
		}}},
		Nodes: []fleet.Node{
			{Name: "a", ProviderID: "aws:///z/i-1", Ready: true, Labels: labels()},
			{Name: "b", ProviderID: "aws:///z/i-2", Labels: labels(contract.LabelCapacityType, "ON_DEMAND")},
			{Name: "c", Labels: map[string]string{corev1.LabelInstanceTypeStable: "x99.huge"}},
		},
		State: fleet.State{BackOffs: map[string]fleet.BackOff{
			fleet.BackOffKey("web", "z", "InsufficientInstanceCapacity"): {Until: noon.Add(time.Minute), Cause: "no m5.large in z"},
			fleet.BackOffKey("web", "y", "Over"):                         {Until: noon},
		}},
	}
	blocked := verdict.Say("unneeded since {since}", verdict.Since(noon)).
		Then(verdict.Say("it waits until {why}", verdict.Why(verdict.Say("budget {budgets} lets pod {pod} go", verdict.Budgets([]string{"shop/api"}), verdict.Pod("shop/api-1")))))
	full := verdict.Say("{group}: {why}", verdict.Group("web"), verdict.Why(verdict.Say("group {group} is at its maximum of {max}", verdict.Group("other"), verdict.Max(9))))
	got := NewVerdicts(s, plan.Plan{Verdicts: []*verdict.Verdict{
		{Of: verdict.OfGroup, Name: "web", Reason: verdict.GroupNodesUpcoming, Details: verdict.Quote("2 upcoming")},
		{Of: verdict.OfNode, Name: "a", Group: "web", Reason: verdict.NodeBlocked, Details: blocked},
		{Of: verdict.OfNode, Name: "b", Group: "web", Reason: verdict.NodeUpcoming},
		{Of: verdict.OfNode, Name: "c", Reason: verdict.NodeNotInAnyGroup},
		{Of: verdict.OfPod, Name: "d/p1", Reason: verdict.PodGroupsUnavailable, Details: full},
		{Of: verdict.OfPod, Name: "d/p2", Reason: verdict.PodGroupsUnavailable, Details: full},
	}}, bill)
	inFull := []statuspage.Detail{{Text: "web: group other is at its maximum of 9", Params: map[string]any{"group": "web", "max": 9}}}
	want := statuspage.Verdicts{
		Prices: bill.Prices,
		Groups: []statuspage.Group{{
			Name: "web", Max: 9, Desired: 5, Ready: 1, Upcoming: 4, Terminating: 1, Unprotected: 2, Spot: true, PricePerHour: 0.05,
			BackOffs: []statuspage.BackOff{{Zone: "z", Cause: "no m5.large in z", Until: noon.Add(time.Minute)}},
			Verdict:  statuspage.Verdict{Reason: verdict.GroupNodesUpcoming, Details: []statuspage.Detail{{Text: "2 upcoming", Params: map[string]any{"cause": "2 upcoming"}}}},
		}},
		Nodes: []statuspage.Node{
			{Name: "a", Group: "web", PricePerHour: 0.05, OnDemandPerHour: 0.1, Spot: true, Verdict: statuspage.Verdict{Reason: verdict.NodeBlocked, Details: []statuspage.Detail{
				{Text: "unneeded since 12:00:00", Params: map[string]any{"since": "2026-08-01T12:00:00Z"}},
				{Text: "it waits until budget shop/api lets pod shop/api-1 go", Params: map[string]any{"budgets": []string{"shop/api"}, "pod": "shop/api-1"}},
			}}},
			{Name: "b", Group: "web", PricePerHour: 0.1, Verdict: statuspage.Verdict{Reason: verdict.NodeUpcoming, Details: []statuspage.Detail{}}},
			{Name: "c", Both: true, Verdict: statuspage.Verdict{Reason: verdict.NodeNotInAnyGroup, Details: []statuspage.Detail{}}},
		},
		Pods: []statuspage.Pods{{Count: 2, Names: []string{"d/p1", "d/p2"}, Verdict: statuspage.Verdict{Reason: verdict.PodGroupsUnavailable, Details: inFull}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A node of a group that buys spot and on demand is of neither kind unless its label tells, and
// costs no less than it may.
func TestCapacityOfNodes(t *testing.T) {
	bill := Bill{prices.Book{"us-east-1": {"m5.large": 0.1}}, prices.Spot{{Zone: "us-east-1b", Type: "m5.large"}: 0.07}, statuspage.Prices{SpotFactor: 0.5}}
	onDemand, spot, both := fleet.Group{Name: "g"}, fleet.Group{Name: "g", Spot: true}, fleet.Group{Name: "g", Both: true}
	for _, tc := range []struct {
		name  string
		group fleet.Group
		label string
		zone  string
		want  statuspage.CapacityType
		price float64
	}{
		{"a group on demand", onDemand, "", "us-east-1a", statuspage.OnDemand, 0.1},
		{"a spot group", spot, "", "us-east-1a", statuspage.Spot, 0.05},
		{"a group of both", both, "", "us-east-1a", statuspage.UnknownCapacity, 0.1},
		{"spot in a group of both", both, contract.CapacitySpot, "us-east-1a", statuspage.Spot, 0.05},
		{"on demand in a group of both", both, "ON_DEMAND", "us-east-1a", statuspage.OnDemand, 0.1},
		{"a spot group where EC2 reports a price", spot, "", "us-east-1b", statuspage.Spot, 0.07},
		{"spot in a group of both where it does", both, contract.CapacitySpot, "us-east-1b", statuspage.Spot, 0.07},
		{"not known whether spot where it does", both, "", "us-east-1b", statuspage.UnknownCapacity, 0.1},
		{"on demand where it does", onDemand, "", "us-east-1b", statuspage.OnDemand, 0.1},
		{"a capacity block", both, "CAPACITY_BLOCK", "us-east-1a", statuspage.OnDemand, 0.1},
	} {
		node := fleet.Node{Name: "n", Labels: map[string]string{corev1.LabelTopologyRegion: "us-east-1", corev1.LabelTopologyZone: tc.zone, corev1.LabelInstanceTypeStable: "m5.large"}}
		if tc.label != "" {
			node.Labels[contract.LabelCapacityType] = tc.label
		}
		s := fleet.Snapshot{Groups: []fleet.Group{tc.group}, Nodes: []fleet.Node{node}}
		got := NewVerdicts(s, plan.Plan{Verdicts: []*verdict.Verdict{{Of: verdict.OfNode, Name: "n", Group: "g", Reason: verdict.NodeNeeded}}}, bill)
		n := got.Nodes[0]
		if n.Capacity() != tc.want || n.PricePerHour != tc.price || n.SpotReported != (tc.price == 0.07) || n.Spot != (n.OnDemandPerHour == 0.1) {
			t.Errorf("%s: %+v, want %s for %v", tc.name, n, tc.want, tc.price)
		}
	}
}

// crowded is a cluster of so many nodes, and as many pending pods, with verdicts as they are:
// names of EC2 and of ReplicaSets, pods, budgets, figures and clocks that differ.
func crowded(nodes int) (fleet.Snapshot, plan.Plan) {
	dice := rand.New(rand.NewPCG(1, 2))
	pod := func() string {
		return fmt.Sprintf("team-%d/service-%d-%08x-%05x", dice.IntN(40), dice.IntN(300), dice.Uint32(), dice.Uint32()>>12)
	}
	var s fleet.Snapshot
	var p plan.Plan
	for i := range 30 {
		s.Groups = append(s.Groups, fleet.Group{Name: fmt.Sprintf("eks-workers-%d", i)})
		p.Verdicts = append(p.Verdicts, &verdict.Verdict{Of: verdict.OfGroup, Name: s.Groups[i].Name, Reason: verdict.GroupSteady})
	}
	for i := range nodes {
		name := fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", dice.IntN(8), dice.IntN(256), i%256)
		s.Nodes = append(s.Nodes, fleet.Node{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: []string{"m5.large", "m5.xlarge", "c6i.4xlarge"}[i%3]}})
		v := &verdict.Verdict{Of: verdict.OfNode, Name: name, Group: s.Groups[dice.IntN(30)].Name}
		switch dice.IntN(4) {
		case 0:
			v.Reason, v.Details = verdict.NodeNeeded, verdict.Say("{used} of its {resource} is requested, more than {most}", verdict.Used(fmt.Sprintf("%d%%", dice.IntN(100))), verdict.Resource("cpu"), verdict.Most("50%"))
		case 1:
			key := pod()
			v.Reason, v.Details = verdict.NodeBlocked, verdict.Say("pod {pod} may not leave: budget {budgets} allows no further disruption", verdict.Pod(key), verdict.Budgets([]string{"team-1/service"}))
		case 2:
			v.Reason, v.Details = verdict.NodeNoPlace, verdict.Say("pod {pod} has no other place", verdict.Pod(pod())).Then(verdict.Say("the nearest is {place}: {lack}", verdict.Place(name), verdict.Lack("Insufficient memory")))
		default:
			v.Reason, v.Details = verdict.NodeUnneeded, verdict.Say("unneeded since {since}", verdict.Since(noon.Add(time.Duration(dice.IntN(3600))*time.Second))).Then(verdict.Say("scaled down at {until} if it still is", verdict.Until(noon.Add(time.Hour))))
		}
		p.Verdicts = append(p.Verdicts, v)
	}
	for range nodes {
		p.Verdicts = append(p.Verdicts, &verdict.Verdict{Of: verdict.OfPod, Name: pod(), Reason: verdict.PodGroupsUnavailable,
			Details: verdict.Say("{group}: {why}", verdict.Group(s.Groups[dice.IntN(30)].Name), verdict.Why(verdict.Say("it is at its maximum of {max}", verdict.Max(dice.IntN(9)))))})
	}
	return s, p
}

// 15,000 nodes have room with all that is said of them.
func TestVerdictsOfALargeClusterHaveRoom(t *testing.T) {
	s, p := crowded(15_000)
	packed, err := NewVerdicts(s, p, Bill{Book: prices.Shipped()}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := statuspage.ReadVerdicts(&corev1.ConfigMap{BinaryData: map[string][]byte{statuspage.VerdictsKey: packed}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB", len(packed)>>10)
	if o := read.Omitted; len(read.Nodes) != 15_000 || o.Params+o.Messages+o.Nodes+o.Groups+o.PodClasses > 0 {
		t.Errorf("%d nodes are left, omitted %+v", len(read.Nodes), o)
	}
}

// A tenant whose pending pods are all refused for a reason of their own takes no node its details,
// and no other tenant its place.
func TestPodsOfATenantCostNodesNothing(t *testing.T) {
	s, p := crowded(15_000)
	for i := range 20_000 {
		p.Verdicts = append(p.Verdicts, &verdict.Verdict{Of: verdict.OfPod, Name: fmt.Sprintf("tenant/p-%d", i), Reason: verdict.PodNoGroupFits,
			Details: verdict.Say("{group}: {lack}", verdict.Group("eks-workers-1"), verdict.Lack(fmt.Sprintf("Insufficient example.com/x%x", i*7919)))})
	}
	packed, err := NewVerdicts(s, p, Bill{Book: prices.Shipped()}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := statuspage.ReadVerdicts(&corev1.ConfigMap{BinaryData: map[string][]byte{statuspage.VerdictsKey: packed}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB, %d classes", len(packed)>>10, len(read.Pods))
	if o := read.Omitted; len(read.Nodes) != 15_000 || o.Params+o.Messages+o.Nodes+o.Groups > 0 || o.PodClasses == 0 {
		t.Errorf("%d nodes are left, omitted %+v", len(read.Nodes), o)
	}
	namespaces := map[string]bool{}
	for _, class := range read.Pods {
		namespace, _, _ := strings.Cut(class.Names[0], "/")
		namespaces[namespace] = true
	}
	if len(namespaces) != 41 {
		t.Errorf("pods of %d namespaces are left, want all 40 teams and the tenant", len(namespaces))
	}
}

// docs/reference/verdict-details.md promises sizes.
func TestSizesThatArePromised(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/verdict-details.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("with the first %d names", mostNamed),
		fmt.Sprintf("It has at most %d KiB. 15,000 nodes of which something different is said each, and as many pending\npods, take that", statuspage.MaxVerdictBytes>>10), // TestVerdictsOfALargeClusterHaveRoom
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it does not say %q", want)
		}
	}
}

// What the verdicts cost the scaler, at most every five seconds.
func BenchmarkVerdicts(b *testing.B) {
	for _, nodes := range []int{5_000, 15_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s, p := crowded(nodes)
			bill := Bill{Book: prices.Shipped()}
			b.ReportAllocs()
			for b.Loop() {
				packed, err := NewVerdicts(s, p, bill).Encode()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(packed)>>10), "KiB")
			}
		})
	}
}

// Of a node of another program nothing is taken for certain that its labels do not say.
func TestCapacityOfNodesOfOthers(t *testing.T) {
	for _, tc := range []struct {
		label, kind string
		want        statuspage.CapacityType
	}{
		{"", "", statuspage.UnknownCapacity},
		{contract.LabelKarpenterCapacityType, "spot", statuspage.Spot},
		{contract.LabelKarpenterCapacityType, "on-demand", statuspage.OnDemand},
		{contract.LabelKarpenterCapacityType, "reserved", statuspage.OnDemand},
		{contract.LabelCapacityType, contract.CapacitySpot, statuspage.Spot},
		{contract.LabelCapacityType, "ON_DEMAND", statuspage.OnDemand},
	} {
		line := Bill{}.Of(&fleet.Node{Name: "n", Labels: map[string]string{tc.label: tc.kind}}, nil)
		if got := line.Capacity(); got != tc.want {
			t.Errorf("%s=%s: %s, want %s", tc.label, tc.kind, got, tc.want)
		}
	}
}
