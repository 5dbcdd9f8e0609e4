package world

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/pkg/contract"
)

// TestAllocatable: figures of real EKS nodes.
// https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config_test.go
func TestAllocatable(t *testing.T) {
	for _, c := range []struct {
		instanceType string
		pods         int64
		milliCPU     int64 // allocatable
		reservedMiB  int64 // kube-reserved and eviction threshold
	}{
		{"m5.large", 29, 1930, 255 + 11*29 + 100},
		{"c5.xlarge", 58, 3920, 255 + 11*58 + 100},
		{"m5.2xlarge", 58, 7910, 255 + 11*58 + 100},
		{"m5.4xlarge", 234, 15890, 255 + 11*234 + 100},
	} {
		t.Run(c.instanceType, func(t *testing.T) {
			figures, ok := catalog.Lookup(c.instanceType)
			if !ok {
				t.Skip("not in the catalog")
			}
			m := nodeOf{instance: cloud.Instance{Type: c.instanceType, MemoryMiB: 7800}, diskGiB: 20}
			capacity := m.capacity(figures)
			left := allocatable(capacity)
			if got := capacity.Pods().Value(); got != c.pods {
				t.Errorf("pods: got %d, want %d", got, c.pods)
			}
			if got := left.Cpu().MilliValue(); got != c.milliCPU {
				t.Errorf("cpu: got %dm, want %dm", got, c.milliCPU)
			}
			if got := (capacity.Memory().Value() - left.Memory().Value()) >> 20; got != c.reservedMiB {
				t.Errorf("memory kept back: got %d MiB, want %d MiB", got, c.reservedMiB)
			}
		})
	}
}

// TestNodeSaysWhatItIs: labels and taints come from the machine, from EKS and
// from the group's tags; a malformed tag gives none.
func TestNodeSaysWhatItIs(t *testing.T) {
	value := "batch"
	m := nodeOf{
		region: "eu-west-1", diskGiB: 20, readyAt: time.Unix(1700000000, 0),
		instance: cloud.Instance{ID: "i-0abc", Type: "m5.large", Zone: "eu-west-1b", ZoneID: "euw1-az2", PrivateDNSName: "ip-10-0-1-7.eu-west-1.compute.internal", Spot: true, MemoryMiB: 7800},
		group: cloud.Group{
			Tags: map[string]string{
				contract.TagTemplateLabel + "team":   "a",
				contract.TagTemplateTaint + "gpu":    "yes:NoSchedule",
				contract.TagTemplateTaint + "broken": "yes",
			},
			EKS: &cloud.Nodegroup{Name: "workers", Labels: map[string]string{"tier": "web"}, Taints: []cloud.Taint{
				{Key: "dedicated", Value: &value, Effect: "NO_EXECUTE"},
				{Key: "bare", Effect: "PREFER_NO_SCHEDULE"},
			}},
		},
	}
	n, err := m.node()
	if err != nil {
		t.Fatal(err)
	}
	if want := "aws:///eu-west-1b/i-0abc"; n.Spec.ProviderID != want {
		t.Errorf("provider id: got %s, want %s", n.Spec.ProviderID, want)
	}
	for key, want := range map[string]string{
		"team": "a", "tier": "web",
		"eks.amazonaws.com/nodegroup":    "workers",
		"eks.amazonaws.com/capacityType": "SPOT",
		corev1.LabelTopologyZone:         "eu-west-1b",
		corev1.LabelInstanceTypeStable:   "m5.large",
		corev1.LabelHostname:             n.Name,
	} {
		if got := n.Labels[key]; got != want {
			t.Errorf("label %s: got %q, want %q", key, got, want)
		}
	}
	want := []corev1.Taint{
		{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoExecute},
		{Key: "bare", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule},
	}
	if diff := cmp.Diff(want, n.Spec.Taints); diff != "" {
		t.Error(diff)
	}
	if c := n.Status.Conditions[0]; c.Type != corev1.NodeReady || c.Status != corev1.ConditionFalse {
		t.Errorf("a new node is %s=%s, want not Ready", c.Type, c.Status)
	}
}

func TestUnknownTypeIsAnError(t *testing.T) {
	if _, err := (nodeOf{instance: cloud.Instance{Type: "m5.gigantic"}}).node(); err == nil {
		t.Error("a machine of an unknown type became a node")
	}
}

// What we say of a node never has the heartbeat of what kwok says in the same second: the controller
// of nodes would not see the difference.
func TestReadinessHasItsOwnHeartbeat(t *testing.T) {
	before := time.Now()
	said := readiness(corev1.ConditionFalse, "KubeletNotReady", "starting")
	if at := said.LastHeartbeatTime.Time; !at.Before(before.Truncate(time.Second)) {
		t.Errorf("heartbeat %s, said at %s", at, before)
	}
	if at := said.LastTransitionTime.Time; at.Before(before) {
		t.Errorf("transition %s, said at %s", at, before)
	}
}
