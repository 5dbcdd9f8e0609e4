package evict

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/pkg/contract"
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
		{"an annotation of others", watch.Modified, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		{"one of ours", watch.Modified, func(p *corev1.Pod) { p.Annotations[contract.AnnotationSafeToEvict] = "false" }, true},
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

// When we heard that a pod is being deleted is kept from the first word of it, from a watch or
// a list, until the pod is gone. When it was asked for goes by the time to end that it was
// given, and not by that of its spec. Of one that was deleted before it was seen nobody knows.
func TestEnding(t *testing.T) {
	pods := NewPods(func() {})
	asked := time.Now().Add(-time.Minute).Truncate(time.Second)
	pod := func(uid types.UID, given int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(uid), UID: uid}}
		p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		if given >= 0 {
			ends := metav1.NewTime(asked.Add(time.Duration(given) * time.Second))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &ends, &given
		}
		return p
	}
	pods.Replace([]corev1.Pod{*pod("before", 5), *pod("told", -1), *pod("listed", -1)})
	began := time.Now()
	check := func(uid types.UID) {
		t.Helper()
		e := pods.Seen().Ending[uid]
		if e.Heard.Before(began) || e.Heard.After(time.Now()) || !e.Asked.Equal(asked) {
			t.Errorf("%s: heard at %s, want since %s; asked for at %s, want %s", uid, e.Heard, began, e.Asked, asked)
		}
	}
	pods.Take(watch.Event{Type: watch.Modified, Object: pod("told", 120)})
	check("told")
	first := pods.Seen().Ending["told"]
	pods.Take(watch.Event{Type: watch.Modified, Object: pod("told", 1)}) // shortened
	if again := pods.Seen().Ending["told"]; again != first {
		t.Errorf("told again of it: %v, and not %v", again, first)
	}
	pods.Replace([]corev1.Pod{*pod("before", 5), *pod("listed", 0)})
	check("listed")
	if all := pods.Seen().Ending; len(all) != 1 {
		t.Errorf("kept: %v, want of the listed one", all)
	}
	pods.Take(watch.Event{Type: watch.Deleted, Object: pod("listed", 0)})
	if all := pods.Seen().Ending; len(all) > 0 {
		t.Errorf("kept of pods that are gone: %v", all)
	}
}
