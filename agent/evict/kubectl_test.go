package evict

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubectl "k8s.io/kubectl/pkg/drain"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", Controller: new(true)}}
	}
}

func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }

func ended(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func deleting(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func kinds(changes ...func(*corev1.Pod)) []*corev1.Pod {
	var out []*corev1.Pod
	for i, change := range changes {
		out = append(out, pod(string(rune('a'+i)), "1", ready, change))
	}
	return out
}

// The same pods are put to `kubectl drain` and to us. Where the answers differ
// the row says why they should.
func TestSamePodsAsKubectl(t *testing.T) {
	replicaSet, daemonSet := ownedBy("ReplicaSet"), ownedBy("DaemonSet")
	both := func(a, b func(*corev1.Pod)) func(*corev1.Pod) { return func(p *corev1.Pod) { a(p); b(p) } }
	for _, tc := range []struct {
		name   string
		pod    func(*corev1.Pod)
		differ string
	}{
		{"replicated", replicaSet, ""},
		{"of a StatefulSet", ownedBy("StatefulSet"), ""},
		{"of a Job", ownedBy("Job"), ""},
		{"of a controller nobody knows", ownedBy("Sparkle"), ""},
		{"with an emptyDir", both(replicaSet, emptyDir), ""},
		{"of a DaemonSet", daemonSet, ""},
		{"static", mirror, ""},
		{"naked", func(*corev1.Pod) {}, ""},
		{"ended", both(replicaSet, ended), "an ended pod needs no place; its owner may still read its log"},
		{"being deleted", both(replicaSet, deleting), "it was evicted before; its UID gets no second deletion"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := kinds(tc.pod)[0]
			theirs := takenByKubectl(t, p)
			ours := takenByUs(p)
			if tc.differ == "" && theirs != ours {
				t.Errorf("kubectl takes it: %v, we: %v", theirs, ours)
			}
			if tc.differ != "" && theirs == ours {
				t.Errorf("both take it: %v, though the row says they differ: %s", ours, tc.differ)
			}
		})
	}
}

// takenByKubectl asks as people drain for good: --ignore-daemonsets
// --delete-emptydir-data, and without --force, as a drain without hurry is.
func takenByKubectl(t *testing.T, p *corev1.Pod) bool {
	t.Helper()
	daemonSet := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "owner"}}
	var out bytes.Buffer
	helper := kubectl.Helper{
		Ctx: t.Context(), Client: fake.NewClientset(p, daemonSet),
		IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1, Out: &out, ErrOut: &out,
	}
	list, errs := helper.GetPodsForDeletion("n")
	if len(errs) > 0 {
		return false // it would stop here, as we do by Blocked
	}
	return len(list.Pods()) == 1
}

func takenByUs(p *corev1.Pod) bool {
	seen := fleet.PodFrom(lean(p))
	v := drainable.Judge(drainable.Question{Pod: &seen, Now: time.Now(), Policy: drain.DefaultPolicy().Pods})
	return v.Outcome == drainable.Leave
}

// A node is cordoned and uncordoned as kubectl does it: the same spec in the
// end, but for our taint.
func TestCordonAsKubectl(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{
		Taints: []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}},
	}}
	before := fleet.NodeFrom(node)
	for _, cordon := range []bool{true, false} {
		theirs := cordonedByKubectl(t, node, cordon)
		v := drain.View{Now: time.Now(), Node: &before, Heard: true}
		if cordon {
			v.Notices = []notice.Notice{{ID: "x", Kind: contract.KindSpot}}
		}
		ours := before
		if next := drain.Decide(v, drain.DefaultPolicy()); next.Node != nil {
			ours = *next.Node
		}
		before = ours
		if ours.Unschedulable != theirs.Spec.Unschedulable {
			t.Errorf("cordon %v: unschedulable %v, kubectl says %v", cordon, ours.Unschedulable, theirs.Spec.Unschedulable)
		}
		if diff := cmp.Diff(theirs.Spec.Taints, contract.WithoutTaint(ours.Taints, contract.TaintDraining)); diff != "" {
			t.Errorf("cordon %v: taints (-kubectl +ours):\n%s", cordon, diff)
		}
	}
}

func cordonedByKubectl(t *testing.T, node *corev1.Node, cordon bool) *corev1.Node {
	t.Helper()
	client := fake.NewClientset([]runtime.Object{node.DeepCopy()}...)
	helper := &kubectl.Helper{Ctx: context.Background(), Client: client}
	if err := kubectl.RunCordonOrUncordon(helper, node.DeepCopy(), cordon); err != nil {
		t.Fatal(err)
	}
	after, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(after.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "dedicated" }) {
		t.Fatal("the node lost its taint")
	}
	return after
}
