package upstream_test

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream"
)

// boards are nodes with 20 devices each, half of them on either of two boards, and a claim for so
// many of these by each request.
func boards(t *testing.T, nodes int, counts ...int64) (*upstream.Filters, []*upstream.Host) {
	t.Helper()
	x := deviceClaim("x")
	x.Spec.Devices.Requests = nil
	for i, n := range counts {
		x.Spec.Devices.Requests = append(x.Spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: fmt.Sprint("r", i), Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n},
		})
	}
	x.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{Requests: []string{"r0"}, MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("gpu.example.com/board"))}}
	d := fleet.Devices{Claims: []*resourcev1.ResourceClaim{x}, Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}}
	f := filters(t, "1.36")
	var names, hosts = make([]string, 20), []*upstream.Host(nil)
	for i := range names {
		names[i] = fmt.Sprint("gpu-", i)
	}
	for i := range nodes {
		s := slice(fmt.Sprint("n", i), names...)
		for j := range s.Spec.Devices {
			s.Spec.Devices[j].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"board": {IntValue: ptr.To(int64(j % 2))}}
		}
		d.Slices = append(d.Slices, s)
	}
	f.Sync(nil, fleet.Storage{}, d)
	for i := range nodes {
		hosts = append(hosts, f.NewHost(node(fmt.Sprint("n", i), "a"), nil, nil))
	}
	return f, hosts
}

// What a node can give is found with the least patience. What a search costs is said, whether it ends or
// not, and is about as much for a thousand nodes as for a few.
func TestSearchForDevicesEnds(t *testing.T) {
	for _, nodes := range []int{1, 600} {
		f, hosts := boards(t, nodes, 10, 10)
		for _, h := range hosts {
			check(t, f, using("p", "x"), h)
		}

		f, hosts = boards(t, nodes, 5, 16)
		var cost int64
		for _, h := range hosts {
			refusals, steps := f.Refusals(using("p", "x"), h)
			if len(refusals) != 1 || steps == 0 {
				t.Fatalf("%d nodes: %+v, %d steps", nodes, refusals, steps)
			}
			cost += steps
		}
		if most := int64(30_000_000); cost > most {
			t.Errorf("%d nodes: to search in vain costs %d steps, more than %d", nodes, cost, most)
		}
	}
	for _, c := range []struct {
		name       string
		count      int64
		fits, free bool
	}{
		{"that finds all at once", 2, true, true},
		{"that ends in vain", 21, false, false},
	} {
		f, hosts := boards(t, 1, c.count)
		if r, steps := f.Refusals(using("p", "x"), hosts[0]); (len(r) == 0) != c.fits || (steps == 0) != c.free {
			t.Errorf("a search %s: %+v, %d steps", c.name, r, steps)
		}
	}
}
