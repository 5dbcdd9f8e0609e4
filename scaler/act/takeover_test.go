package act

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// What was seen goes, and nothing if it has changed: another value, a drain, an instance that goes.
func TestTakeOver(t *testing.T) {
	hard := corev1.Taint{Key: contract.TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule}
	soft := corev1.Taint{Key: contract.TaintDeletionCandidate, Value: "1700000000", Effect: corev1.TaintEffectPreferNoSchedule}
	theirs := corev1.Taint{Key: "team", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		what   string
		change func(*corev1.Node)
		serves error
		want   Outcome
	}{
		{what: "as it was seen", want: Done},
		{what: "tainted anew", change: func(n *corev1.Node) { n.Spec.Taints[1].Value = "1800000000" }, want: Stopped},
		{what: "it is gone", change: func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] }, want: Stopped},
		{what: "a drain was asked for", change: func(n *corev1.Node) { n.Annotations[contract.AnnotationDrainRequest] = "upgrade" }, want: Stopped},
		{what: "the cordon is an agent's", change: func(n *corev1.Node) { n.Annotations[contract.AnnotationCordonedBy] = "{}" }, want: Stopped},
		{what: "its instance goes", serves: asg.ErrChanged, want: Stopped},
	} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid1", ResourceVersion: "7", Annotations: map[string]string{"a": "b"}},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-1", Unschedulable: true, Taints: []corev1.Taint{theirs, hard, soft}},
		}
		if c.change != nil {
			c.change(node)
		}
		b := newBedOf(node)
		b.groups.err = c.serves
		r := b.one(t, action.TakeOver{Group: "web", Node: action.NodeRef{Name: "n1", UID: "uid1"}, Instance: "i-1", Taints: []corev1.Taint{hard, soft}, Uncordon: true})
		after := b.node(t)
		if r.Outcome != c.want || after.Spec.Unschedulable == (c.want == Done) {
			t.Errorf("%s: %s (%v), unschedulable %v", c.what, r.Outcome, r.Err, after.Spec.Unschedulable)
		}
		if c.want == Done && (len(after.Spec.Taints) != 1 || after.Spec.Taints[0].Key != theirs.Key || !strings.Contains(strings.Join(b.events.list, " "), contract.EventTakenOver)) {
			t.Errorf("%s: taints %v, Events %s", c.what, after.Spec.Taints, strings.Join(b.events.list, " "))
		}
	}
}
