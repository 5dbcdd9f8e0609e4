package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestPodFromReadsTheSchedulersWord(t *testing.T) {
	judged := metav1.NewTime(noon)
	for _, tc := range []struct {
		name, node, reason string
		status             corev1.ConditionStatus
		want               Scheduling
	}{
		{"unschedulable", "", "Unschedulable", corev1.ConditionFalse, Unschedulable},
		{"gated", "", "SchedulingGated", corev1.ConditionFalse, Gated},
		{"the scheduler stumbled", "", "SchedulerError", corev1.ConditionFalse, Unbindable},
		{"something else", "", "Other", corev1.ConditionFalse, Unjudged},
		{"bound since", "n1", "Unschedulable", corev1.ConditionFalse, Unjudged},
		{"placed", "", "", corev1.ConditionTrue, Unjudged},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: tc.node}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: tc.status, Reason: tc.reason, LastTransitionTime: judged}}}}
		got := PodFrom(p)
		if got.Scheduling != tc.want || got.Node != tc.node {
			t.Errorf("%s: %q on %q, want %q", tc.name, got.Scheduling, got.Node, tc.want)
		}
		if (tc.want != Unjudged) != got.Judged.Time().Equal(noon) {
			t.Errorf("%s: judged at %s", tc.name, got.Judged)
		}
		if got.Spec.NodeName != "" || p.Spec.NodeName != tc.node {
			t.Errorf("%s: nodeName %q in the spec, %q in the original", tc.name, got.Spec.NodeName, p.Spec.NodeName)
		}
	}
}

func TestPodFromKnowsItsController(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		DeletionTimestamp: ptr.To(metav1.NewTime(noon)),
		OwnerReferences: []metav1.OwnerReference{
			{Kind: "Friend", Name: "f"}, {Kind: "ReplicaSet", Name: "web-1", Controller: ptr.To(true)}}}}
	got := PodFrom(p)
	if got.Owner == nil || got.Owner.Name != "web-1" || !got.Deleted.Time().Equal(noon) {
		t.Errorf("owner %v, deleted %s", got.Owner, got.Deleted)
	}
}

func TestNodeFrom(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{VolumesAttached: make([]corev1.AttachedVolume, 2), Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}}}
	got := NodeFrom(n)
	if !got.Ready || !got.ReadySince.Equal(noon) {
		t.Errorf("ready %v since %s", got.Ready, got.ReadySince)
	}
	if got.Attached != 2 {
		t.Errorf("%d volumes are attached, want 2", got.Attached)
	}
}

// A budget whose status is behind its spec allows nothing, as the eviction API
// has it.
func TestBudgetFrom(t *testing.T) {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow)},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 3, CurrentHealthy: 4, DesiredHealthy: 1},
	}
	want := Budget{Namespace: "a", Name: "b", Healthy: 4, Desired: 1, AlwaysAllowUnhealthy: true}
	if diff := cmp.Diff(want, BudgetFrom(b)); diff != "" {
		t.Error(diff)
	}
	b.Status.ObservedGeneration, want.Allowed = 2, 3
	if diff := cmp.Diff(want, BudgetFrom(b)); diff != "" {
		t.Error(diff)
	}
}

func TestEqualComparesMeaning(t *testing.T) {
	a := Node{Created: noon, Capacity: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	b := Node{Created: noon.In(time.FixedZone("east", 3600)), Labels: map[string]string{}, Capacity: corev1.ResourceList{"cpu": resource.MustParse("1000m")}}
	if !Equal(a, b) {
		t.Error("the same node differs from itself")
	}
	b.Ready = true
	if Equal(a, b) {
		t.Error("a ready node equals one that is not")
	}
}
