package drainable_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Each row is what a pod tolerates, and whether kube-scheduler may bind it to a node that
// is cordoned and has our taint.
func TestToleratesDrain(t *testing.T) {
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	cordons := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	drains := corev1.Toleration{Key: contract.TaintDraining, Operator: corev1.TolerationOpEqual, Value: "spot"}
	for _, tc := range []struct {
		name  string
		list  []corev1.Toleration
		words string
	}{
		{"nothing", nil, ""},
		{"everything", []corev1.Toleration{everything}, "{operator: Exists}"},
		{"cordons only", []corev1.Toleration{cordons}, ""},
		{"the taint only", []corev1.Toleration{drains}, ""},
		{"both", []corev1.Toleration{cordons, drains}, "{key: " + contract.TaintDraining + ", operator: Equal, value: spot}"},
		{"what evicts", []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}, ""},
	} {
		p := &fleet.Pod{Spec: &corev1.PodSpec{Tolerations: tc.list}}
		if words, yes := drainable.ToleratesDrain(p); words != tc.words || yes != (tc.words != "") {
			t.Errorf("%s: %v by %q, want %q", tc.name, yes, words, tc.words)
		}
	}
}

// A drain began at 10:00. Each row is a pod of its node, by when it was made, beside one
// that came back, and what becomes of it.
func TestReturns(t *testing.T) {
	closed := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return closed.Add(time.Duration(s) * time.Second) }
	pod := func(made int, change ...func(*fleet.Pod)) *fleet.Pod {
		p := &fleet.Pod{
			Namespace: "shop", Name: "web", Created: fleet.SecondOf(at(made)), Owner: &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web"},
			Spec: &corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		}
		for _, f := range change {
			f(p)
		}
		return p
	}
	plain := func(p *fleet.Pod) { p.Spec = &corev1.PodSpec{} }
	slow := func(p *fleet.Pod) {
		grace := int64(600)
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	other := func(p *fleet.Pod) { p.Owner = &metav1.OwnerReference{Kind: "ReplicaSet", Name: "db"} }
	daemon := func(p *fleet.Pod) { p.Owner = &metav1.OwnerReference{Kind: "DaemonSet", Name: "web"} }
	for _, tc := range []struct {
		name     string
		pod      *fleet.Pod
		beside   []*fleet.Pod
		deadline int
		now      int
		// until is in seconds, and -1 where the pod is not held.
		until int
	}{
		{"older than the drain", pod(-60), nil, 0, 1, -1},
		{"made in the second in which it began", pod(0), nil, 0, 1, 60},
		{"came back", pod(3), nil, 0, 4, 63},
		{"an older one beside one that came back", pod(-60), []*fleet.Pod{pod(3)}, 0, 4, 63},
		{"of another owner", pod(-60, other), []*fleet.Pod{pod(3)}, 0, 4, -1},
		{"was on its way", pod(9, plain), nil, 0, 20, -1},
		{"came past the cordon", pod(10, plain), nil, 0, 20, 70},
		{"of a DaemonSet", pod(30, daemon), nil, 0, 40, -1},
		{"its time has come", pod(3), nil, 0, 63, -1},
		{"came back after five minutes", pod(300), nil, 0, 301, 600},
		{"came back after two days", pod(2 * 86400), nil, 0, 2*86400 + 1, 3 * 86400},
		{"a younger one beside it", pod(3), []*fleet.Pod{pod(300)}, 0, 301, 600},
		{"a deadline is to come", pod(3), nil, 600, 400, 480},
		{"it is near", pod(3), nil, 600, 480, -1},
		{"it is near, and the pod is as young", pod(480), nil, 600, 481, 960},
		{"the API server's clock is behind", pod(476), nil, 600, 481, 952},
		{"an older one beside that", pod(-60), []*fleet.Pod{pod(480)}, 600, 481, -1},
		{"it needs long to end", pod(3, slow), nil, 2000, 1000, 2000 - 600 - 15 - 10},
		{"but half of the time is the drain's", pod(3, slow), nil, 600, 200, 300},
	} {
		r := drainable.Returns{Closed: closed, Now: at(tc.now), Steps: drainable.DefaultSteps()}
		if tc.deadline != 0 {
			r.Deadline = at(tc.deadline)
		}
		r = r.Find(slices.Values(append(tc.beside, tc.pod)))
		got := -1
		if until, held := r.Hold(tc.pod); held {
			got = int(until.Sub(closed) / time.Second)
		}
		if got != tc.until {
			t.Errorf("%s: held until %d, want %d", tc.name, got, tc.until)
		}
	}
}

// While a pod of the same maker leaves, the next one is asked when its successor would have shown up,
// and where that comes only after it, not before it has left.
func TestReturnsNext(t *testing.T) {
	closed := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	now := closed.Add(time.Minute)
	pod := func(kind, of, name string, made time.Duration) *fleet.Pod {
		return &fleet.Pod{
			Namespace: "shop", Name: name, Created: fleet.SecondOf(closed.Add(made)), Owner: &metav1.OwnerReference{Kind: kind, Name: of},
			Spec: &corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		}
	}
	leaving := func(p *fleet.Pod, asked time.Time) *fleet.Pod {
		p.Deleted = fleet.SecondOf(asked.Add(drainable.GraceOf(p)))
		return p
	}
	asked := now.Add(-2 * time.Second)
	for _, tc := range []struct {
		name   string
		kind   string
		beside []*fleet.Pod
		at     time.Time
		never  bool
	}{
		{"alone", "ReplicaSet", nil, now, false},
		{"beside one that leaves", "ReplicaSet", []*fleet.Pod{leaving(pod("ReplicaSet", "web", "web-1", -time.Hour), asked)}, asked.Add(drainable.ShowsWithin), false},
		{"the latest counts", "ReplicaSet", []*fleet.Pod{
			leaving(pod("ReplicaSet", "web", "web-1", -time.Hour), asked), leaving(pod("ReplicaSet", "web", "web-2", -time.Hour), asked.Add(-time.Second)),
		}, asked.Add(drainable.ShowsWithin), false},
		{"beside one of another maker", "ReplicaSet", []*fleet.Pod{leaving(pod("ReplicaSet", "db", "db-1", -time.Hour), asked)}, now, false},
		{"of a StatefulSet", "StatefulSet", []*fleet.Pod{leaving(pod("StatefulSet", "web", "web-1", -time.Hour), asked)}, time.Time{}, true},
		{"one came back", "ReplicaSet", []*fleet.Pod{leaving(pod("ReplicaSet", "web", "web-1", -time.Hour), asked), pod("ReplicaSet", "web", "web-2", 30*time.Second)}, time.Time{}, true},
	} {
		of := pod(tc.kind, "web", "web-0", -time.Hour)
		r := drainable.Returns{Closed: closed, Now: now, Steps: drainable.DefaultSteps()}.Find(slices.Values(append(tc.beside, of)))
		if at, ok := r.Next(of); ok == tc.never || !at.Equal(tc.at) {
			t.Errorf("%s: at %s, %t, want %s, %t", tc.name, at, ok, tc.at, !tc.never)
		}
	}
}

// What is said of pods that came back names the first of them, how it came, and what helps.
func TestReturnsInWords(t *testing.T) {
	closed := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	pod := func(name string, made time.Duration, tolerations ...corev1.Toleration) *fleet.Pod {
		return &fleet.Pod{
			Namespace: "shop", Name: name, Created: fleet.SecondOf(closed.Add(made)), Owner: &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web"},
			Spec: &corev1.PodSpec{Tolerations: tolerations},
		}
	}
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	for _, tc := range []struct {
		open bool
		pod  *fleet.Pod
		want string
	}{
		{false, pod("web-0", -time.Minute, everything), ""},
		{false, pod("web-1", time.Minute, everything), "pod shop/web-1 came to the node while it drains, by its toleration {operator: Exists, effect: NoSchedule}: narrow"},
		{false, pod("web-1", time.Minute), "pod shop/web-1 came to the node while it drains, past the cordon: find out which"},
		{true, pod("web-1", time.Minute), "pod shop/web-1 came to the node while it drains, as the node cannot be cordoned: the agent's log"},
	} {
		for _, list := range [][]*fleet.Pod{{tc.pod, pod("web-2", 2*time.Minute, everything)}, {pod("web-2", 2*time.Minute, everything), tc.pod}} {
			if tc.want == "" {
				list = []*fleet.Pod{tc.pod}
			}
			r := drainable.Returns{Closed: closed, Open: tc.open, Now: closed.Add(time.Hour)}.Find(slices.Values(list))
			if got := r.First(); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("says %q, want %q", got, tc.want)
			}
		}
	}
}

// What is kept of a pod's tolerations answers as all of them would, and is two at most.
func TestTolerationsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(rapid.Custom(func(t *rapid.T) corev1.Toleration {
			return corev1.Toleration{
				Key:      rapid.SampledFrom([]string{"", "gpu", contract.TaintDraining, corev1.TaintNodeUnschedulable}).Draw(t, "key"),
				Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", corev1.TolerationOpExists}).Draw(t, "operator"),
				Value:    rapid.SampledFrom([]string{"", "spot", "asg"}).Draw(t, "value"),
				Effect:   rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}).Draw(t, "effect"),
			}
		})).Draw(t, "tolerations")
		kept := drainable.TolerationsAsked(all)
		if len(kept) > 2 {
			t.Errorf("%d are kept", len(kept))
		}
		pod := func(of []corev1.Toleration) *fleet.Pod { return &fleet.Pod{Spec: &corev1.PodSpec{Tolerations: of}} }
		wantText, want := drainable.ToleratesDrain(pod(all))
		if text, got := drainable.ToleratesDrain(pod(kept)); got != want || text != wantText {
			t.Errorf("by what is kept: %v %s; by all: %v %s", got, text, want, wantText)
		}
	})
}
