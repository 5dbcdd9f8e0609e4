package template

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
)

// The sizes that were seen are bounded: what no group uses goes first, and what is
// used stays however many there are.
func TestSeenIsBounded(t *testing.T) {
	types := func(prefix string, n int) map[string]resource.Quantity {
		seen := map[string]resource.Quantity{}
		for i := range n {
			seen[fleet.SeenKey(fmt.Sprintf("%s%04d.large", prefix, i), "")] = resource.MustParse("7Gi")
		}
		return seen
	}
	used := &cluster.Group{Group: &fleet.Group{}}
	for i := range mostSeen + 10 {
		used.NodeTemplates = append(used.NodeTemplates, fleet.NodeTemplate{InstanceType: fmt.Sprintf("m%04d.large", i)})
	}
	for _, c := range []struct {
		reason string
		seen   map[string]resource.Quantity
		groups []*cluster.Group
		want   int
	}{
		{"few", types("m", 10), nil, 10},
		{"many, and nobody uses them", types("m", mostSeen+10), nil, mostSeen},
		{"many, and all are used", types("m", mostSeen+10), []*cluster.Group{used}, mostSeen + 10},
	} {
		d := &Templates{Cluster: &cluster.Cluster{Groups: c.groups}, Outcome: &outcome.Outcome{State: fleet.State{Seen: c.seen}}}
		d.rememberMemory()
		if len(d.State.Seen) != c.want {
			t.Errorf("%s: %d are remembered, want %d", c.reason, len(d.State.Seen), c.want)
		}
	}
}

// The least memory that a type was seen with counts, whole mebibytes of it. What was odd does not last: a
// node that has much less than the others, and one that had. A type is all of its nodes, whatever their image.
func TestSeenIsTheLeast(t *testing.T) {
	of := func(machine, template, memory string) *cluster.Node {
		return &cluster.Node{
			Row:      cluster.NewRow(fleet.Node{Ready: true, Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}, 0),
			Instance: &fleet.Instance{Type: machine, Template: template},
		}
	}
	group := func(image string, nodes ...*cluster.Node) *cluster.Group {
		return &cluster.Group{
			Group: &fleet.Group{Template: "lt-1:1", NodeTemplates: []fleet.NodeTemplate{{InstanceType: "m5.large", Image: image}, {InstanceType: "c5.large", Image: image}}},
			Nodes: nodes,
		}
	}
	const now, before = "lt-1:1", "lt-0:1"
	one := group("ami-1",
		of("m5.large", now, "7700Mi"), of("m5.large", now, "7884601Ki"), of("m5.large", now, "7800Mi"), of("m5.large", now, "4Gi"),
		of("c5.large", now, "8000Mi"), of("c5.large", now, "8000Mi"),
		of("c5.large", before, "7700Mi"), of("c5.large", before, "7700Mi"), of("c5.large", before, "7700Mi"))
	two := group("ami-2", of("c5.large", now, "8000Mi"), of("c5.large", now, "8000Mi"))
	d := &Templates{Cluster: &cluster.Cluster{Groups: []*cluster.Group{one, two}}, Outcome: &outcome.Outcome{State: fleet.State{Seen: map[string]resource.Quantity{
		fleet.SeenKey("m5.large", ""): resource.MustParse("4200Mi"), fleet.SeenKey("m5.large", "ami-1"): resource.MustParse("7698Mi"),
	}}}}
	d.rememberMemory()
	got := map[string]string{}
	for key, q := range d.State.Seen {
		got[key] = q.String()
	}
	want := map[string]string{
		fleet.SeenKey("m5.large", ""): "7699Mi", fleet.SeenKey("m5.large", "ami-1"): "7698Mi",
		fleet.SeenKey("c5.large", ""): "8000Mi", fleet.SeenKey("c5.large", "ami-1"): "8000Mi", fleet.SeenKey("c5.large", "ami-2"): "8000Mi",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Counts of nodes give the same as a list of all nodes.
func TestUsualLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(90, 110), 1, 12).Draw(t, "memory of each node")
		slices.Sort(all)
		counts := map[int64]int{}
		for _, bytes := range all {
			counts[bytes]++
		}
		middle := all[(len(all)-1)/2]
		want := all[slices.IndexFunc(all, func(bytes int64) bool { return float64(bytes) >= (1-noticeable)*float64(middle) })]
		if got := usualLeast(counts); got.Value() != want {
			t.Errorf("%d, want %d", got.Value(), want)
		}
	})
}
