package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// seen makes a watch that has seen some nodes; n1 is of i-1.
func seen(nodes ...*corev1.Node) *watch {
	w := &watch{book: newBook(), cordons: map[string]*corev1.Node{}, nodes: map[string]*nodeLife{}, pods: map[types.UID]*podLife{}}
	for n := range 9 {
		w.book.see(fakeaws.Instance{ID: fmt.Sprintf("i-%d", n), PrivateDNSName: fmt.Sprintf("n%d", n), Group: web})
	}
	for _, n := range nodes {
		w.seeNode(n)
	}
	return w
}

// upNode is Ready, and open to new pods.
func upNode(number int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", number), UID: types.UID(fmt.Sprintf("u%d", number)), Annotations: map[string]string{}},
		Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///a/i-%d", number)},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func TestEndedOnOpenNode(t *testing.T) {
	closed := upNode(1)
	closed.Spec.Unschedulable = true
	notReady := upNode(1)
	notReady.Status.Conditions[0].Status = corev1.ConditionFalse
	gone := seen(upNode(1))
	gone.missNode(upNode(1))
	late := time.Now().Add(2 * sight)
	for _, c := range []struct {
		reason string
		w      *watch
		want   int
	}{
		{"open", seen(upNode(1)), 1},
		{"closed", seen(upNode(1), closed), 0},
		{"opened again", seen(closed, upNode(1)), 1},
		{"not Ready", seen(notReady), 0},
		{"gone", gone, 0},
		{"another node is open", seen(closed, upNode(2)), 0},
	} {
		calls := []fakeaws.Call{{Operation: "TerminateInstanceInAutoScalingGroup", Time: late, Params: map[string]string{"InstanceId": "i-1"}}}
		if got := c.w.breaches(calls, nil, late, nil); len(got) != c.want {
			t.Errorf("%s: %q, want %d", c.reason, got, c.want)
		}
	}
}

// What an agent reported of another drain before it fell silent does not hide the deadline of
// what was asked for since.
func TestGaveUp(t *testing.T) {
	soon, late := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		contract.AnnotationDrainReport:  contract.Report{Phase: contract.PhaseDraining, Kind: contract.KindMaintenance, Deadline: contract.At(late)}.String(),
		contract.AnnotationDrainRequest: contract.Request{Kind: contract.KindASG, By: contract.AppScaler, Deadline: contract.At(soon)}.String(),
	}}}
	if got := gaveUp(n); len(got) != 2 || !got[0].Equal(late) || !got[1].Equal(soon) {
		t.Errorf("given up at %v", got)
	}
}

// Pods that a silent kubelet has not ended are there, whatever the API server says.
func TestStuckPod(t *testing.T) {
	now := time.Now()
	p := podLife{node: "n1", bound: now.Add(-time.Minute)}
	deleted := now.Add(-10 * time.Second)
	if p.there(now, deleted) {
		t.Error("a pod that was deleted is there")
	}
	p.stuck = laws.Span{From: now.Add(-20 * time.Second), To: forever}
	if !p.there(now, deleted) {
		t.Error("a pod that was deleted and is stuck is not there")
	}
	p.stuck.To = now.Add(-5 * time.Second)
	if p.there(now, deleted) {
		t.Error("a pod that was stuck is there still")
	}
}

// A pod that should have ended long ago keeps no hook and no instance, and one that still may
// does, though the watch saw neither asked to end.
func TestOverduePod(t *testing.T) {
	closed := upNode(1)
	closed.Spec.Unschedulable = true
	at := time.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", CreationTimestamp: metav1.NewTime(at.Add(-time.Minute))}, Spec: corev1.PodSpec{NodeName: "n1", TerminationGracePeriodSeconds: new(int64(2))}}
	asked := func(verb, subresource string, code int, at time.Time) (r laws.Request) {
		r.Verb, r.RequestReceivedTimestamp = verb, at
		r.ObjectRef.Resource, r.ObjectRef.Subresource, r.ObjectRef.Name = "pods", subresource, "p"
		r.ResponseStatus.Code = code
		return r
	}
	byKubelet := asked("delete", "", http.StatusOK, at.Add(time.Minute))
	for ago, want := range map[time.Duration]int{drainable.Overtime: 1, drainable.Overtime + 4*time.Second: 0} {
		for _, first := range []laws.Request{asked("delete", "", http.StatusOK, at.Add(-ago)), asked("create", "eviction", http.StatusCreated, at.Add(-ago))} {
			for _, operation := range []string{"CompleteLifecycleAction", "TerminateInstanceInAutoScalingGroup"} {
				for _, bound := range []time.Duration{time.Minute, 10 * time.Second} { // before, and seen late
					w := seen(closed)
					w.seePod(pod)
					w.pods["p"].bound = at.Add(-bound)
					calls := []fakeaws.Call{{Operation: operation, Time: at, Params: map[string]string{"InstanceId": "i-1"}}}
					if got := w.breaches(calls, []laws.Request{first, byKubelet}, at, nil); len(got) != want {
						t.Errorf("%s %s after the pod was asked to end (%s): %q, want %d", operation, ago, first.Verb, got, want)
					}
				}
			}
		}
	}
	// What was asked of a predecessor of its name does not count.
	w := seen(closed)
	w.seePod(pod)
	w.pods["p"].bound = at.Add(-time.Minute)
	calls := []fakeaws.Call{{Operation: "CompleteLifecycleAction", Time: at, Params: map[string]string{"InstanceId": "i-1"}}}
	if got := w.breaches(calls, []laws.Request{asked("delete", "", http.StatusOK, at.Add(-time.Hour)), byKubelet}, at, nil); len(got) != 1 {
		t.Errorf("a predecessor was asked to end: %q, want 1", got)
	}
}

func TestAnonymous(t *testing.T) {
	hidden := upNode(1)
	hidden.Spec.ProviderID = ""
	late := time.Now().Add(2 * sight)
	if !seen(hidden).anonymousAt("i-1", late) {
		t.Error("a Node without a provider id is taken for one that has it")
	}
	calls := []fakeaws.Call{{Operation: "CompleteLifecycleAction", Time: late, Params: map[string]string{"InstanceId": "i-1"}}}
	if broken := seen(upNode(1)).breaches(calls, nil, late, nil); len(broken) != 1 {
		t.Errorf("the hook of an open node is completed: %q", broken)
	}
	if broken := seen(upNode(1), hidden).breaches(calls, nil, late, nil); len(broken) > 0 {
		t.Errorf("the hook of an instance that no Node names is completed: %q", broken)
	}
	told := seen(upNode(1), hidden)
	told.identified("i-1", time.Now())
	if told.anonymousAt("i-1", late) {
		t.Error("a Node that was given its provider id, as the watch has yet to see, is taken for one without")
	}
	if w := seen(hidden, upNode(1)); w.anonymousAt("i-1", late) {
		t.Error("a Node that got its provider id is taken for one without")
	}
}

func TestCrowd(t *testing.T) {
	report := func(number int, change func(*contract.Report)) *corev1.Node {
		n := upNode(number)
		id := fmt.Sprintf("instance-retirement:%d", number)
		r := contract.Report{Answers: []string{id}, Phase: contract.PhaseDraining, Kind: contract.KindMaintenance}
		change(&r)
		n.Annotations[contract.AnnotationDrainReport] = r.String()
		return n
	}
	waits := func(number int) *corev1.Node {
		return report(number, func(r *contract.Report) { r.Phase, r.Wants = contract.PhaseWaiting, r.Answers[0] })
	}
	drains := func(number int) *corev1.Node { return report(number, func(*contract.Report) {}) }
	near := report(3, func(r *contract.Report) { r.Deadline = contract.At(time.Now().Add(time.Minute)) })
	blocked := report(3, func(r *contract.Report) { r.Phase = contract.PhaseBlocked })
	forged := upNode(3)
	forged.Annotations[contract.AnnotationDrainReport] = `{"answers":["asg-terminate:i-3"],"phase":"Draining","kind":"asg","message":"` + hugeMessage[:contract.MostText] + `"}`
	for _, c := range []struct {
		reason string
		nodes  []*corev1.Node
		want   int
	}{
		{"three, of one of which a report was forged while it waited", []*corev1.Node{waits(1), waits(2), waits(3), drains(1), drains(2), forged, drains(3)}, 0},
		{"two", []*corev1.Node{waits(1), waits(2), drains(1), drains(2)}, 0},
		{"three", []*corev1.Node{waits(1), waits(2), waits(3), drains(1), drains(2), drains(3)}, 1},
		{"three, one after the other", []*corev1.Node{waits(1), waits(2), waits(3), drains(1), drains(2), upNode(1), drains(3)}, 0},
		{"three, one near its deadline", []*corev1.Node{waits(1), waits(2), waits(3), drains(1), drains(2), near}, 0},
		{"three, one stuck", []*corev1.Node{waits(1), waits(2), waits(3), drains(1), drains(2), blocked}, 0},
		{"three that need no permit", []*corev1.Node{drains(1), drains(2), drains(3)}, 0},
	} {
		s := &soak{watch: seen(c.nodes...)}
		for i := range 3 {
			s.watch.pods[types.UID(fmt.Sprint(i))] = &podLife{node: fmt.Sprintf("n%d", i+1), bound: time.Now().Add(-time.Minute)}
		}
		got := s.crowded(time.Now())
		if len(got) != c.want || c.want > 0 && !strings.Contains(got[0], "n1 n2 n3") {
			t.Errorf("%s: %q, want %d", c.reason, got, c.want)
		}
		if got := s.crowded(time.Now().Add(-time.Minute)); len(got) > 0 {
			t.Errorf("%s, before it can be told: %q", c.reason, got)
		}
		s.watch.pods["0"].gone = time.Now()
		if got := s.crowded(time.Now()); len(got) > 0 {
			t.Errorf("%s, the first one empty: %q", c.reason, got)
		}
		s.watch.pods["0"].gone = time.Time{}
		s.hampered = []laws.Span{{From: time.Now().Add(-time.Minute), To: forever}}
		if got := s.crowded(time.Now()); len(got) > 0 {
			t.Errorf("%s, while no scaler leads: %q", c.reason, got)
		}
	}
}
