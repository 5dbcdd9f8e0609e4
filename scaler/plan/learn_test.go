package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// likeWithFeatures are nodes n0, n1, … with these features.
func likeWithFeatures(features ...[]string) []*node {
	var list []*node
	for i, f := range features {
		list = append(list, &node{Node: &fleet.Node{Name: fmt.Sprintf("n%d", i), DeclaredFeatures: f}})
	}
	return list
}

// A new node declares what all of its kind declare.
func TestSharedFeatures(t *testing.T) {
	for _, c := range []struct {
		reason   string
		features [][]string
		want     []string
	}{
		{"one node", [][]string{{"a", "b"}}, []string{"a", "b"}},
		{"the same", [][]string{{"a", "b"}, {"b", "a"}}, []string{"a", "b"}},
		{"one knows less", [][]string{{"a", "b"}, {"b"}}, []string{"b"}},
		{"one is of an older version", [][]string{{"a"}, nil}, nil},
	} {
		if diff := cmp.Diff(c.want, sharedFeatures(likeWithFeatures(c.features...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

// A new node has the volume drivers that its kind has, each with the least limit; a
// driver that has not come up on one of them will.
func TestDriversOf(t *testing.T) {
	driver := func(name string, most int32) storagev1.CSINodeDriver {
		return storagev1.CSINodeDriver{Name: name, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(most)}}
	}
	unbounded := storagev1.CSINodeDriver{Name: "efs"}
	like := likeWithFeatures(nil, nil)
	for _, c := range []struct {
		reason string
		of     map[string][]storagev1.CSINodeDriver
		want   []storagev1.CSINodeDriver
	}{
		{"none", nil, nil},
		{"on one of two", map[string][]storagev1.CSINodeDriver{"n1": {driver("ebs", 25)}}, []storagev1.CSINodeDriver{driver("ebs", 25)}},
		{"the least limit", map[string][]storagev1.CSINodeDriver{"n0": {driver("ebs", 39)}, "n1": {driver("ebs", 25)}}, []storagev1.CSINodeDriver{driver("ebs", 25)}},
		{"by name; without a limit is more than any", map[string][]storagev1.CSINodeDriver{"n0": {unbounded, driver("ebs", 3)}, "n1": {driver("efs", 9)}},
			[]storagev1.CSINodeDriver{driver("ebs", 3), driver("efs", 9)}},
		{"of another node", map[string][]storagev1.CSINodeDriver{"other": {driver("ebs", 1)}}, nil},
	} {
		if diff := cmp.Diff(c.want, driversOf(like, c.of)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

// Devices are those of the node that tells of most: a driver may not have come up on
// the others yet.
func TestRichest(t *testing.T) {
	slice := func(name string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	got := richest(likeWithFeatures(nil, nil, nil), map[string][]*resourcev1.ResourceSlice{
		"n0": {slice("a")}, "n1": {slice("d"), slice("c")}, "other": {slice("x"), slice("y"), slice("z")},
	})
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"c", "d"}, names); diff != "" {
		t.Error(diff)
	}
}

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
	used := &group{Group: &fleet.Group{}}
	for i := range mostSeen + 10 {
		used.Shapes = append(used.Shapes, fleet.Shape{InstanceType: fmt.Sprintf("m%04d.large", i)})
	}
	for _, c := range []struct {
		reason string
		seen   map[string]resource.Quantity
		groups []*group
		want   int
	}{
		{"few", types("m", 10), nil, 10},
		{"many, and nobody uses them", types("m", mostSeen+10), nil, mostSeen},
		{"many, and all are used", types("m", mostSeen+10), []*group{used}, mostSeen + 10},
	} {
		d := &decision{groups: c.groups, state: fleet.State{Seen: c.seen}}
		d.rememberMemory()
		if len(d.state.Seen) != c.want {
			t.Errorf("%s: %d are remembered, want %d", c.reason, len(d.state.Seen), c.want)
		}
	}
}

// The least memory that a type was seen with counts, whole mebibytes of it.
func TestSeenIsTheLeast(t *testing.T) {
	of := func(memory string) *node {
		return &node{
			Node:     &fleet.Node{Ready: true, Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}},
			instance: &fleet.Instance{Type: "m5.large", Template: "lt-1:1"},
		}
	}
	g := &group{
		Group: &fleet.Group{Template: "lt-1:1", Shapes: []fleet.Shape{{InstanceType: "m5.large", Image: "ami-1"}}},
		nodes: []*node{of("7700Mi"), of("7884601Ki"), of("7800Mi")},
	}
	d := &decision{groups: []*group{g}, state: fleet.State{Seen: map[string]resource.Quantity{
		fleet.SeenKey("m5.large", ""): resource.MustParse("7Gi"),
	}}}
	d.rememberMemory()
	got := map[string]string{}
	for key, q := range d.state.Seen {
		got[key] = q.String()
	}
	want := map[string]string{fleet.SeenKey("m5.large", ""): "7Gi", fleet.SeenKey("m5.large", "ami-1"): "7699Mi"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
