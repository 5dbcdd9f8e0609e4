package act

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

func outOfServiceTaints(n *corev1.Node) (count int) {
	for _, t := range n.Spec.Taints {
		if t == contract.OutOfServiceTaint() {
			count++
		}
	}
	return count
}

// A node is marked if all is as it was decided at that moment: what speaks against it since
// keeps it from being written.
func TestOutOfService(t *testing.T) {
	ready := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	for _, tc := range []struct {
		name   string
		node   func(*corev1.Node)
		beside []corev1.Node
		ec2    error
		want   Outcome
		marked bool
	}{
		{name: "its machine is down", want: Done, marked: true},
		{name: "EC2 says that it runs", ec2: fmt.Errorf("%w: i-1 is running", asg.ErrChanged), want: Stopped},
		{name: "EC2 does not answer", ec2: &asg.CallError{Class: asg.ErrUnavailable}, want: Failed},
		{name: "it is Ready", node: ready, want: Stopped},
		{name: "it has no volumes", node: func(n *corev1.Node) { n.Status.VolumesAttached = nil }, want: Stopped},
		{name: "it is another machine", node: func(n *corev1.Node) { n.Spec.ProviderID = "aws:///a/i-2" }, want: Stopped},
		{name: "it has registered again", node: func(n *corev1.Node) { n.UID = "uid2" }, want: Stopped},
		{name: "another Node has its id", beside: []corev1.Node{closedNode("n2", "aws:///a/i-1")}, want: Stopped},
		{name: "another Node has its name", beside: []corev1.Node{closedNode("i-1.ec2.internal", "")}, want: Stopped},
		{name: "people were first", node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{contract.OutOfServiceTaint()} }, want: Done},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid1", ResourceVersion: "7"},
				Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-1"},
				Status:     corev1.NodeStatus{VolumesAttached: []corev1.AttachedVolume{{Name: "v"}}},
			}
			if tc.node != nil {
				tc.node(node)
			}
			b := newBedOf(node)
			for i := range tc.beside {
				if err := b.client.Tracker().Add(&tc.beside[i]); err != nil {
					t.Fatal(err)
				}
			}
			b.groups.err = tc.ec2
			mark := action.OutOfService{Group: "web", Node: action.NodeRef{Name: "n1", UID: "uid1"}, Instance: "i-1", Why: "EC2 says that i-1 is stopped"}
			if r := b.one(t, mark); r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			after := b.node(t)
			of, ours := after.Annotations[contract.AnnotationOutOfService]
			if ours != tc.marked || ours && (of != "i-1" || outOfServiceTaints(after) != 1) {
				t.Errorf("taints %v, annotation %q", after.Spec.Taints, of)
			}
			if told := len(b.events.list); tc.want != Failed && (told == 1) != tc.marked {
				t.Errorf("told %q", b.events.list)
			}
		})
	}
}

// A node that turns Ready between our read and our write is not marked.
func TestOutOfServiceIsGuarded(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid1", ResourceVersion: "7"},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-1"},
		Status:     corev1.NodeStatus{VolumesAttached: []corev1.AttachedVolume{{Name: "v"}}},
	}
	b := newBedOf(node)
	b.one(t, action.OutOfService{Group: "web", Node: action.NodeRef{Name: "n1", UID: "uid1"}, Instance: "i-1"})
	guarded := 0
	for _, action := range b.client.Actions() {
		if p, patches := action.(clienttesting.PatchAction); patches && strings.Contains(string(p.GetPatch()), `{"op":"test","path":"/metadata/resourceVersion","value":"7"}`) {
			guarded++
		}
	}
	if guarded != 1 {
		t.Errorf("%d patches that ask for version 7: %v", guarded, b.client.Actions())
	}
}

// What is ours goes, and what is people's stays.
func TestInServiceAgain(t *testing.T) {
	for _, ours := range []bool{true, false} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid1", ResourceVersion: "7"},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-1", Taints: []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}, contract.OutOfServiceTaint()}},
		}
		if ours {
			node.Annotations = map[string]string{contract.AnnotationOutOfService: "i-1"}
		}
		b := newBedOf(node)
		if r := b.one(t, action.InServiceAgain{Group: "web", Node: action.NodeRef{Name: "n1", UID: "uid1"}, Why: "it is Ready again"}); r.Outcome != Done {
			t.Fatalf("%s: %v", r.Outcome, r.Err)
		}
		after := b.node(t)
		_, annotated := after.Annotations[contract.AnnotationOutOfService]
		if (outOfServiceTaints(after) == 0) != ours || annotated || len(after.Spec.Taints) < 1 {
			t.Errorf("ours %v: taints %v, annotated %v", ours, after.Spec.Taints, annotated)
		}
	}
}
