package evict

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// When a pod is being deleted is known from the moment at which the watch told of it, whatever
// the date in it, until the pod is gone. Of one that a list shows so nobody knows.
func TestEnding(t *testing.T) {
	pods := NewPods(func() {})
	long := metav1.NewTime(time.Now().Add(-time.Minute))
	pod := func(uid types.UID, ends *metav1.Time) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(uid), UID: uid, DeletionTimestamp: ends}}
	}
	pods.Replace([]corev1.Pod{*pod("listed", &long), *pod("told", nil), *pod("missed", nil)})
	began := time.Now()
	pods.Take(watch.Event{Type: watch.Modified, Object: pod("told", &long)})
	pods.Take(watch.Event{Type: watch.Modified, Object: pod("missed", &long)})
	first := pods.Seen().Ending["told"]
	if first.Before(began) || first.After(time.Now()) {
		t.Errorf("told at %s, not after %s", first, began)
	}
	pods.Take(watch.Event{Type: watch.Modified, Object: pod("told", &long)})
	if again := pods.Seen().Ending["told"]; again != first {
		t.Errorf("told again of it: at %s, and not at %s", again, first)
	}
	pods.Take(watch.Event{Type: watch.Deleted, Object: pod("told", &long)})
	pods.Replace([]corev1.Pod{*pod("listed", &long)})
	if left := pods.Seen().Ending; len(left) > 0 {
		t.Errorf("what is kept of pods that are gone, and of a listed one: %v", left)
	}
}
