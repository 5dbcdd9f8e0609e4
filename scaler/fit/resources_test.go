package fit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Each row is what one request counts for: as used by the pod, and as needed free. A pod
// asks for itself once, whatever it requests.
func TestAmounts(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	for _, tc := range []struct {
		name         corev1.ResourceName
		request      string
		taken, asked int64
	}{
		{corev1.ResourceCPU, "1500m", 1500, 1500},
		{corev1.ResourceMemory, "1Gi", 1 << 30, 1 << 30},
		{corev1.ResourceMemory, "0", 0, 0},
		{corev1.ResourceMemory, "-5", -5, 0},
		{corev1.ResourceMemory, "2Ei", 2 << 60, most},
		{gpu, "2", 2, 2},
		{"requests.cpu", "2", 0, 0}, // kube-scheduler does not count it
	} {
		n := newNames()
		list := corev1.ResourceList{tc.name: resource.MustParse(tc.request), corev1.ResourcePods: resource.MustParse("7")}
		for what, x := range map[string]struct {
			got  []amount
			want int64
		}{"taken": {n.taken(list), tc.taken}, "asked": {n.asked(list), tc.asked}} {
			got, want := map[int]int64{}, map[int]int64{podCount: 1}
			for _, a := range x.got {
				got[a.resource] = a.n
			}
			if x.want != 0 {
				want[n.of(tc.name)] = x.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s=%s: %s (-want +got):\n%s", tc.name, tc.request, what, diff)
			}
		}
	}
}
