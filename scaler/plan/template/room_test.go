package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A new node has the volume drivers that its kind has, each with the least limit, but for one that
// differs; a driver that has not come up on one of them will.
func TestDriversOf(t *testing.T) {
	driver := func(name string, most int32) storagev1.CSINodeDriver {
		return storagev1.CSINodeDriver{Name: name, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(most)}}
	}
	unbounded := storagev1.CSINodeDriver{Name: "efs"}
	unlimited := storagev1.CSINodeDriver{Name: "ebs"}
	like := likeWithFeatures(nil, nil)
	for _, c := range []struct {
		reason string
		of     map[string][]storagev1.CSINodeDriver
		want   []storagev1.CSINodeDriver
	}{
		{"none", nil, nil},
		{"on one of two", map[string][]storagev1.CSINodeDriver{"n1": {driver("ebs", 25)}}, []storagev1.CSINodeDriver{driver("ebs", 25)}},
		{"the least limit", map[string][]storagev1.CSINodeDriver{"n0": {driver("ebs", 39)}, "n1": {driver("ebs", 25)}}, []storagev1.CSINodeDriver{driver("ebs", 25)}},
		{"an odd one", map[string][]storagev1.CSINodeDriver{"n0": {driver("ebs", 25)}, "n1": {driver("ebs", 1)}}, []storagev1.CSINodeDriver{driver("ebs", 25)}},
		{"one that claims to have no end", map[string][]storagev1.CSINodeDriver{"n0": {driver("ebs", 25)}, "n1": {unlimited}}, []storagev1.CSINodeDriver{driver("ebs", 25)}},
		{"by name", map[string][]storagev1.CSINodeDriver{"n0": {unbounded, driver("ebs", 3)}, "n1": {unbounded}},
			[]storagev1.CSINodeDriver{driver("ebs", 3), unbounded}},
		{"of another node", map[string][]storagev1.CSINodeDriver{"other": {driver("ebs", 1)}}, nil},
	} {
		if diff := cmp.Diff(c.want, driversOf(like, c.of)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
	}
}

// Devices are those of the node that reports most: a driver may not have come up on the others yet.
// What is not complete counts for nothing.
func TestRichest(t *testing.T) {
	slice := func(name string, of int64) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Pool: resourcev1.ResourcePool{ResourceSliceCount: of}, Devices: make([]resourcev1.Device, 1),
		}}
	}
	like := likeWithFeatures(nil, nil, nil)
	like[0].Slices = []*resourcev1.ResourceSlice{slice("a", 1)}
	like[1].Slices = []*resourcev1.ResourceSlice{slice("d", 2), slice("c", 2)}
	like[2].Slices = []*resourcev1.ResourceSlice{slice("x", 4), slice("y", 4), slice("z", 4)}
	got := richest(like)
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"c", "d"}, names); diff != "" {
		t.Error(diff)
	}
}
