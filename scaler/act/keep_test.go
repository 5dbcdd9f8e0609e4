package act

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// TestKeepUndoesWhatHasEnded: a drain that Auto Scaling brought about is undone when the
// instance is in service again, and nothing on the node names another drain.
func TestKeepUndoesWhatHasEnded(t *testing.T) {
	const warm = "asg-warm:i-1"
	cordon := func(id string) string { return contract.Cordon{By: contract.AppScaler, Notice: id}.String() }
	report := func(kind contract.Kind, ids ...string) map[string]string {
		r := contract.Report{Phase: contract.PhaseDrained, Kind: kind, Answers: ids}
		return map[string]string{contract.AnnotationDrainReport: r.String(), contract.AnnotationCordonedBy: cordon(warm)}
	}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		id          string
		ended       []string
		want        Outcome
	}{
		{"closed by the scaler alone, with the request", with(request(contract.KindASG, warm), contract.AnnotationCordonedBy, cordon(warm)), warm, []string{warm}, Done},
		{"without it", map[string]string{contract.AnnotationCordonedBy: cordon(warm)}, "", []string{warm}, Done},
		{"left by an agent", report(contract.KindASG, warm), "", []string{warm}, Done},
		{"first retired", report(contract.KindASG, "scale-down:i-1:1", warm), "", []string{"scale-down:i-1:1", warm}, Done},
		{"nothing has ended", report(contract.KindASG, warm), "", nil, Stopped},
		{"something else drains it too", report(contract.KindASG, "rebalance:i-1", warm), "", []string{warm}, Stopped},
		{"something stronger drains it", report(contract.KindSpot, warm), "", []string{warm}, Stopped},
		{"cordoned for something else", map[string]string{contract.AnnotationCordonedBy: cordon("rebalance:i-1")}, "", []string{warm}, Stopped},
		{"another request came", request(contract.KindASG, "asg-terminate:i-1"), "", []string{warm}, Stopped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.annotations)
			node := b.node(t)
			node.Spec.Taints = []corev1.Taint{contract.DrainingTaint(contract.KindASG)}
			node.Spec.Unschedulable = true
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			r := b.one(t, action.CancelDrain{Group: "web", Node: n1, ID: tc.id, Ended: tc.ended, AgentGone: true, Why: "it is back"})
			if r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			after := b.node(t)
			if _, tainted := contract.Draining(after.Spec.Taints); tainted == (tc.want == Done) || after.Spec.Unschedulable == (tc.want == Done) {
				t.Errorf("taints %v, unschedulable %v", after.Spec.Taints, after.Spec.Unschedulable)
			}
		})
	}
}

// TestKeepLooksAgain: a request that is about a termination goes only if the instance is in
// service at that moment. The group may have been read before the request was written.
func TestKeepLooksAgain(t *testing.T) {
	const id = "asg-terminate:i-1"
	for _, tc := range []struct {
		name   string
		served error
		want   Outcome
	}{
		{"it is in service", nil, Done},
		{"it is not", fmt.Errorf("%w: i-1 is Terminating:Wait", asg.ErrChanged), Stopped},
		{"AWS does not say", &asg.CallError{Class: asg.ErrUnavailable}, Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(request(contract.KindASG, id))
			b.groups.err = tc.served
			if r := b.one(t, action.CancelDrain{Group: "web", Node: n1, ID: id, Instance: "i-1", Why: "it is back"}); r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			if _, asked := b.node(t).Annotations[contract.AnnotationDrainRequest]; asked == (tc.want == Done) {
				t.Errorf("the request stands: %v", asked)
			}
			if len(b.events.list) > 0 && tc.want == Done {
				t.Errorf("told of %q, which is no scale-down", b.events.list)
			}
		})
	}
}

// TestKeepUndoesForAnAgentThatIsGone: the taint goes, and the cordon and the
// label with it where they are ours; a drain for something else goes on.
func TestKeepUndoesForAnAgentThatIsGone(t *testing.T) {
	report := func(k contract.Kind) string {
		return contract.Report{Phase: contract.PhaseDraining, Kind: k}.String()
	}
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		id          string
		want        Outcome
		open        bool
	}{
		{"with its request", with(request(contract.KindScaleDown, "a"), contract.AnnotationCordonedBy, "{}"), "a", Done, true},
		{"without one", map[string]string{contract.AnnotationCordonedBy: "{}", contract.AnnotationDrainReport: report(contract.KindScaleDown)}, "", Done, true},
		{"but not people's cordon", nil, "", Done, false},
		{"but not for a request of others", with(request(contract.KindScaleDown, "b"), contract.AnnotationCordonedBy, "{}"), "", Stopped, false},
		{"but not a drain for a spot interruption", map[string]string{contract.AnnotationCordonedBy: "{}", contract.AnnotationDrainReport: report(contract.KindSpot)}, "", Stopped, false},
		{"but not after the mark", map[string]string{contract.AnnotationCordonedBy: "{}", contract.AnnotationTerminating: "a"}, "", Stopped, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.annotations)
			node := b.node(t)
			node.Spec.Taints = []corev1.Taint{contract.DrainingTaint(contract.KindScaleDown)}
			node.Spec.Unschedulable = true
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			keep := action.CancelDrain{Group: "web", Node: n1, ID: tc.id, AgentGone: true, Why: "pods wait for it"}
			if r := b.one(t, keep); r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			if tc.want == Done {
				if r := b.one(t, keep); r.Outcome != Done || len(b.events.list) != 1 { // twice is once
					t.Errorf("again %s: %v; told of %q", r.Outcome, r.Err, b.events.list)
				}
			}
			after := b.node(t)
			if _, tainted := contract.Draining(after.Spec.Taints); tainted == (tc.want == Done) {
				t.Errorf("taints %v", after.Spec.Taints)
			}
			if after.Spec.Unschedulable == tc.open {
				t.Errorf("unschedulable %v", after.Spec.Unschedulable)
			}
			if _, reported := after.Annotations[contract.AnnotationDrainReport]; reported && tc.want == Done {
				t.Error("the report is left")
			}
		})
	}
}
