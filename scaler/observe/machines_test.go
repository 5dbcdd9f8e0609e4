package observe

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// EC2 is asked of machines that may be down and have volumes, or are marked as down. Its
// answer makes another snapshot.
func TestMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := func(name string, ready corev1.ConditionStatus, volumes int, marked bool) *corev1.Node {
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-" + name},
				Status: corev1.NodeStatus{
					Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
					VolumesAttached: make([]corev1.AttachedVolume, volumes),
				},
			}
			if marked {
				n.Annotations = map[string]string{contract.AnnotationOutOfService: "i-" + name}
			}
			return n
		}
		foreign := node("foreign", corev1.ConditionUnknown, 1, false)
		foreign.Spec.ProviderID = "kind://x"
		client := fake.NewClientset(node("serves", corev1.ConditionTrue, 1, false), node("silent", corev1.ConditionUnknown, 1, false), node("broken", corev1.ConditionFalse, 2, false),
			node("empty", corev1.ConditionUnknown, 0, false), node("marked", corev1.ConditionUnknown, 0, true), node("back", corev1.ConditionTrue, 0, true), foreign)
		var asked []string
		var known map[string]fleet.Machine
		fault := ""
		o := watchOver(t, client, func(c *Config) {
			c.OutOfService = true
			c.Machines = func(ids []string) (map[string]fleet.Machine, string) {
				asked = slices.Sorted(slices.Values(ids))
				return known, fault
			}
		})
		look := func() (fleet.Snapshot, uint64) {
			t.Helper()
			s, version, err := o.Snapshot(time.Now(), fleet.State{})
			if err != nil {
				t.Fatal(err)
			}
			return s, version
		}
		look()
		if diff := cmp.Diff([]string{"i-broken", "i-marked", "i-silent"}, asked); diff != "" {
			t.Errorf("asked of (-want +got):\n%s", diff)
		}
		o.config.OutOfService = false
		look()
		if diff := cmp.Diff([]string{"i-marked"}, asked); diff != "" {
			t.Errorf("without the flag, asked of (-want +got):\n%s", diff)
		}
		o.config.OutOfService = true
		_, first := look()
		known = map[string]fleet.Machine{"i-silent": {State: "stopped", Group: "web"}}
		s, second := look()
		if diff := cmp.Diff(known, s.Machines); diff != "" || second == first {
			t.Errorf("version %d after %d (-want +got):\n%s", second, first, diff)
		}
		if _, again := look(); again != second {
			t.Errorf("version %d after %d, and nothing is new", again, second)
		}
		fault = "no right to call ec2:DescribeInstances"
		s, third := look()
		if third == second || !slices.Contains(s.Faults, fault) {
			t.Errorf("version %d after %d, faults %q", third, second, s.Faults)
		}
	})
}
