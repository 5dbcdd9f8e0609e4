package view

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// A pod of a DaemonSet leaves where it asks for that, as agents have it without flags.
func TestPodsOfDaemonSets(t *testing.T) {
	for asks, want := range map[string]drainable.Outcome{"": drainable.Skip, "true": drainable.Leave} {
		isController := true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "logs-1", Annotations: map[string]string{contract.AnnotationEvictDaemonSetPod: asks},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "logs", Controller: &isController}},
		}}
		if got := NewJudge(time.Now(), nil).Of(pod); got.Outcome != want {
			t.Errorf("asks %q: %+v, want %s", asks, got, want)
		}
	}
}
