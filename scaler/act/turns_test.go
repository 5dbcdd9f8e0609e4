package act

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
)

// A drain is asked to wait on only while it waits for that permit, without an Event each
// time; the permit removes the annotation.
func TestNotYet(t *testing.T) {
	waiting := map[string]string{contract.AnnotationDrainReport: contract.Report{Phase: contract.PhaseWaiting, Answers: []string{"a"}, Wants: "a"}.String()}
	b := newBed(waiting)
	if r := b.one(t, action.NotYet{Group: "web", Node: n1, ID: "b", Why: "others drain"}); r.Outcome != Stopped {
		t.Errorf("for another drain %s: %v", r.Outcome, r.Err)
	}
	b = newBed(waiting)
	if r := b.one(t, action.NotYet{Group: "web", Node: n1, ID: "a", Why: "others drain"}); r.Outcome != Done {
		t.Fatalf("%s: %v", r.Outcome, r.Err)
	}
	word, err := contract.ParseNotYet(b.node(t).Annotations[contract.AnnotationDrainNotYet])
	if err != nil || word.ID != "a" || word.At.IsZero() || word.Why != "others drain" {
		t.Errorf("%s, %v", word, err)
	}
	if len(b.events.list) != 0 {
		t.Errorf("events %q", b.events.list)
	}
	if r := b.one(t, action.Permit{Group: "web", Node: n1, ID: "a"}); r.Outcome != Done {
		t.Fatalf("%s: %v", r.Outcome, r.Err)
	}
	if word, left := b.node(t).Annotations[contract.AnnotationDrainNotYet]; left {
		t.Errorf("permitted, and %s is left", word)
	}
}

// Only the cordon of an agent for that recommendation is taken off, and nothing with it:
// by its mark the agent sees that somebody else has decided.
func TestRelease(t *testing.T) {
	mark := func(by, notice string) map[string]string {
		return map[string]string{contract.AnnotationCordonedBy: contract.Cordon{By: by, Notice: notice}.String()}
	}
	for _, tc := range []struct {
		name     string
		standing map[string]string
		taints   []corev1.Taint
		want     Outcome
	}{
		{"of its agent", mark(contract.AppAgent, "rebalance:1"), nil, Done},
		{"for another recommendation", mark(contract.AppAgent, "rebalance:2"), nil, Stopped},
		{"of the scaler", mark(contract.AppScaler, "rebalance:1"), nil, Stopped},
		{"of people", nil, nil, Stopped},
		{"nobody can read whose", map[string]string{contract.AnnotationCordonedBy: "x"}, nil, Stopped},
		{"its drain waits", with(mark(contract.AppAgent, "rebalance:1"), contract.AnnotationDrainReport, "{}"), nil, Stopped},
		{"it drains now", mark(contract.AppAgent, "rebalance:1"), []corev1.Taint{contract.DrainingTaint(contract.KindSpot)}, Stopped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.standing)
			node := b.node(t)
			node.Spec.Unschedulable, node.Spec.Taints = true, tc.taints
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			r := b.one(t, action.Release{Group: "web", Node: n1, ID: "rebalance:1", Why: "a pod waits"})
			if r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			after := b.node(t)
			if after.Spec.Unschedulable == (tc.want == Done) {
				t.Errorf("unschedulable %v", after.Spec.Unschedulable)
			}
			if after.Annotations[contract.AnnotationCordonedBy] != tc.standing[contract.AnnotationCordonedBy] {
				t.Errorf("the mark is %q", after.Annotations[contract.AnnotationCordonedBy])
			}
			if told := len(b.events.list) > 0; told != (tc.want == Done) {
				t.Errorf("events %q", b.events.list)
			}
		})
	}
}
