package story_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/pkg/contract"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestNodeOf(t *testing.T) {
	report := contract.Report{Answers: []string{"x"}, Phase: contract.PhaseDraining, Kind: contract.KindSpot, Left: 3}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "n",
			Labels: map[string]string{corev1.LabelTopologyZone: "eu-west-1a", corev1.LabelInstanceTypeStable: "m5.large"},
			Annotations: map[string]string{
				contract.AnnotationDrainReport: report.String(),
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///eu-west-1a/i-1", Unschedulable: true,
			Taints: []corev1.Taint{contract.DrainingTaint(contract.KindSpot), contract.UnneededTaint(noon)},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	want := story.Node{
		Name: "n", Instance: "i-1", Zone: "eu-west-1a", Type: "m5.large", Ready: true, Unschedulable: true,
		Draining: contract.KindSpot, Unneeded: true, Report: &report,
	}
	if diff := cmp.Diff(want, story.NodeOf(n)); diff != "" {
		t.Error(diff)
	}
	n.Annotations[contract.AnnotationDrainReport] = "not a report at all"
	if got := story.NodeOf(n).Report; got != nil {
		t.Errorf("got %+v of what is no report, want none", got)
	}
}

func TestPodOf(t *testing.T) {
	deleted := metav1.NewTime(noon)
	controller := true
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Reason: reason}
	}
	for _, c := range []struct {
		reason string
		pod    corev1.Pod
		want   story.Pod
	}{
		{
			reason: "a pod without a place",
			pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-1", Labels: map[string]string{story.LabelWorkload: "shop"}},
			},
			want: story.Pod{Name: "shop-1", Workload: "shop"},
		},
		{
			reason: "an evicted pod, in its grace period",
			pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-1", DeletionTimestamp: &deleted, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "shop", Controller: &controller}}},
				Spec:       corev1.PodSpec{NodeName: "n"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
					condition(corev1.PodReady, corev1.ConditionTrue, ""), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI"),
				}},
			},
			want: story.Pod{Name: "shop-1", Workload: "shop", Node: "n", Running: true, Ready: true, Leaving: true, Until: noon, Disrupted: "EvictionByEvictionAPI"},
		},
		{
			reason: "a DaemonSet's pod",
			pod:    corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-1", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: &controller}}}},
			want:   story.Pod{Name: "agent-1", Workload: "agent", DaemonSet: true},
		},
		{
			reason: "a Job's pod that is done",
			pod:    corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-1"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
			want:   story.Pod{Name: "job-1", Workload: "job-1", Ended: true},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if diff := cmp.Diff(c.want, story.PodOf(&c.pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEventOf: only the two programs' Events are of the story.
func TestEventOf(t *testing.T) {
	for source, want := range map[string]bool{contract.AppAgent: true, contract.AppScaler: true, "kubelet": false} {
		e := &corev1.Event{Source: corev1.EventSource{Component: source}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"}, Reason: "R", Message: "m"}
		got, ok := story.EventOf(e)
		if ok != want || ok && (got.Kind != "node" || got.Reason != "R") {
			t.Errorf("%s: got %+v, %v, want it to count: %v", source, got, ok, want)
		}
	}
}
