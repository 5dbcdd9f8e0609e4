package evict

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A drain is decided anew for what makes a difference to it, and for nothing else that is
// written about a pod.
func TestChangesThatCount(t *testing.T) {
	changes := 0
	pods := NewPods(func() { changes++ })
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u1", ResourceVersion: "1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	pods.Replace([]corev1.Pod{pod})
	ended := metav1.NewTime(time.Now())
	for _, c := range []struct {
		what   string
		kind   watch.EventType
		change func(*corev1.Pod)
		counts bool
	}{
		{"nothing but its version", watch.Modified, func(p *corev1.Pod) { p.ResourceVersion = "2" }, false},
		{"a mark of its eviction", watch.Modified, func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
		}, false},
		{"its readiness", watch.Modified, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"its annotations", watch.Modified, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, true},
		{"its deletion", watch.Modified, func(p *corev1.Pod) { p.DeletionTimestamp = &ended }, true},
		{"its phase", watch.Modified, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		{"its end", watch.Deleted, func(*corev1.Pod) {}, true},
		{"another of its name", watch.Added, func(p *corev1.Pod) { p.UID = "u2" }, true},
	} {
		before := changes
		c.change(&pod)
		pods.Take(watch.Event{Type: c.kind, Object: pod.DeepCopy()})
		if told := changes > before; told != c.counts {
			t.Errorf("%s: told %v, want %v", c.what, told, c.counts)
		}
	}
}
