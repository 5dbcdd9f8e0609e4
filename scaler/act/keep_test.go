package act

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan"
)

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
			keep := plan.Keep{Group: "web", Node: n1, ID: tc.id, AgentGone: true, Why: "pods wait for it"}
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
