package evict

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	kubectl "k8s.io/kubectl/pkg/drain"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

func ownedBy(kind string) func(*corev1.Pod) { return owned("apps/v1", kind, "owner") }

func owned(version, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, Controller: new(true)}}
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func in(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func deleted(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(-ago))) }
}

func volume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: source}} }
}

// What a drain makes of one pod.
const (
	evicts = "evict"
	skips  = "skip"
	stops  = "stop" // kubectl ends the drain before it began; we report the pod as what blocks
	waits  = "wait"
)

// The same pods are put to `kubectl drain` and to us: as people drain for good
// (without --force) and as a drain without hurry is, and with --force and as a
// drain is for an instance that goes. Where the answers differ the row says why
// they should.
func TestSamePodsAsKubectl(t *testing.T) {
	const ended = "an ended pod needs no place; its owner may still read its log"
	const word = "kubectl does not know the annotation"
	var (
		naked      = func(*corev1.Pod) {}
		replicaSet = ownedBy("ReplicaSet")
		daemonSet  = ownedBy("DaemonSet")
		orphan     = owned("apps/v1", "DaemonSet", "deleted")
		static     = annotated(corev1.MirrorPodAnnotationKey, "x")
		emptyDir   = volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		memory     = volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})
		hostPath   = volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})
	)
	type pair struct{ patient, pressing string }
	same := func(patient, pressing string) [2]pair { return [2]pair{{patient, pressing}, {patient, pressing}} }
	for _, tc := range []struct {
		name string
		pod  []func(*corev1.Pod)
		// want of kubectl, and of us.
		want [2]pair
		// differ is why, where they do.
		differ string
	}{
		{"replicated", with(replicaSet), same(evicts, evicts), ""},
		{"of a StatefulSet", with(ownedBy("StatefulSet")), same(evicts, evicts), ""},
		{"of a Job", with(ownedBy("Job")), same(evicts, evicts), ""},
		{"of a controller nobody knows", with(ownedBy("Sparkle")), same(evicts, evicts), ""},
		{"pending", with(replicaSet, in(corev1.PodPending)), same(evicts, evicts), ""},
		{"with an emptyDir", with(replicaSet, emptyDir), same(evicts, evicts), ""},
		{"with an emptyDir in memory", with(replicaSet, memory), same(evicts, evicts), ""},
		{"with a hostPath", with(replicaSet, hostPath), same(evicts, evicts), ""},
		{"naked", with(naked), same(stops, evicts), ""},
		{"naked, with an emptyDir", with(emptyDir), same(stops, evicts), ""},

		{"of a DaemonSet", with(daemonSet), same(skips, skips), ""},
		{"of a DaemonSet, with an emptyDir", with(daemonSet, emptyDir), same(skips, skips), ""},
		{"of a DaemonSet that was deleted", with(orphan), [2]pair{{stops, evicts}, {skips, skips}},
			"we read no DaemonSet for each of its pods; the garbage collector takes such a pod anyway"},
		{"of a DaemonSet that is no Kubernetes one", with(owned("apps.kruise.io/v1", "DaemonSet", "owner")), [2]pair{{evicts, evicts}, {skips, skips}},
			"what calls itself a DaemonSet brings its pods back as one does"},
		{"of a DaemonSet, and ended", with(daemonSet, in(corev1.PodFailed)), [2]pair{{evicts, evicts}, {skips, skips}}, ended},
		{"static", with(static), same(skips, skips), ""},
		{"static, with an emptyDir", with(static, emptyDir), same(skips, skips), ""},

		{"ended well", with(replicaSet, in(corev1.PodSucceeded)), [2]pair{{evicts, evicts}, {skips, skips}}, ended},
		{"ended badly", with(replicaSet, in(corev1.PodFailed)), [2]pair{{evicts, evicts}, {skips, skips}}, ended},
		{"naked, and ended", with(in(corev1.PodSucceeded)), [2]pair{{evicts, evicts}, {skips, skips}}, ended},
		{"being deleted", with(replicaSet, deleted(0)), [2]pair{{evicts, evicts}, {waits, waits}},
			"it was evicted before; its UID gets no second deletion"},
		{"being deleted for too long", with(replicaSet, deleted(time.Hour)), same(skips, skips), ""},

		{"not safe to evict", with(replicaSet, annotated(contract.AnnotationSafeToEvict, "false")), [2]pair{{evicts, evicts}, {stops, evicts}}, word},
		{"not safe to evict, to Cluster Autoscaler", with(replicaSet, annotated(contract.AnnotationForeignSafeToEvict, "false")), [2]pair{{evicts, evicts}, {stops, evicts}}, word},
		{"to be left until it ends", with(replicaSet, annotated(contract.AnnotationSafeToEvict, "on-completion")), [2]pair{{evicts, evicts}, {waits, evicts}}, word},
		{"not to be disrupted", with(replicaSet, annotated(contract.AnnotationDoNotDisrupt, "true")), [2]pair{{evicts, evicts}, {stops, evicts}}, word},
		{"naked, and safe to evict", with(annotated(contract.AnnotationSafeToEvict, "true")), [2]pair{{stops, evicts}, {evicts, evicts}}, word},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pod("a", "1", append([]func(*corev1.Pod){ready}, tc.pod...)...)
			got := [2]pair{
				{kubectlTakes(t, p, false), kubectlTakes(t, p, true)},
				{weTake(p, drainable.Patient), weTake(p, drainable.Pressing)},
			}
			if got != tc.want {
				t.Errorf("kubectl and we: %v, want %v", got, tc.want)
			}
			if differ := tc.want[0] != tc.want[1]; differ != (tc.differ != "") {
				t.Errorf("they differ: %v, but the row says why: %q", differ, tc.differ)
			}
		})
	}
}

func with(changes ...func(*corev1.Pod)) []func(*corev1.Pod) { return changes }

// kubectlTakes asks as people drain for good: --ignore-daemonsets
// --delete-emptydir-data, and not to wait for what is stuck.
func kubectlTakes(t *testing.T, p *corev1.Pod, force bool) string {
	t.Helper()
	daemonSet := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "owner"}}
	helper := kubectlHelper(t, fake.NewClientset(p, daemonSet))
	helper.Force = force
	list, errs := helper.GetPodsForDeletion("n")
	switch {
	case len(errs) > 0:
		return stops
	case len(list.Pods()) == 0:
		return skips
	}
	return evicts
}

func kubectlHelper(t *testing.T, client kubernetes.Interface) *kubectl.Helper {
	return &kubectl.Helper{
		Ctx: t.Context(), Client: client,
		IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		SkipWaitForDeleteTimeoutSeconds: int(drainable.Overtime / time.Second),
		EvictErrorRetryDelay:            5 * time.Second, // as the command has it; the library has none
		Out:                             io.Discard, ErrOut: io.Discard,
	}
}

func weTake(p *corev1.Pod, urgency drainable.Urgency) string {
	seen := fleet.PodFrom(lean(p))
	v := drainable.Judge(drainable.Question{Pod: &seen, Now: time.Now(), Policy: drain.DefaultPolicy().Rules(&seen, false, false), Urgency: urgency})
	return map[drainable.Outcome]string{drainable.Leave: evicts, drainable.Skip: skips, drainable.Block: stops, drainable.Wait: waits}[v.Outcome]
}

// One pod that may not be moved keeps kubectl from evicting any; we evict the
// others.
func TestOthersLeaveUnlikeKubectl(t *testing.T) {
	replicaSet := ownedBy("ReplicaSet")
	objects := []*corev1.Pod{pod("naked", "1", ready), pod("web-1", "1", ready, replicaSet), pod("web-2", "1", ready, replicaSet)}
	client := fake.NewClientset()
	v := drain.View{Now: time.Now(), PodsKnown: true, Heard: true, Budgets: drainable.NewBudgets(nil)}
	v.Node = &fleet.Node{
		Name: "n", Unschedulable: true, Taints: []corev1.Taint{contract.DrainingTaint(contract.KindRequest)},
		Annotations: map[string]string{contract.AnnotationDrainRequest: "upgrade"},
	}
	for _, p := range objects {
		if err := client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
		v.Pods = append(v.Pods, fleet.PodFrom(lean(p)))
	}
	if err := kubectl.RunNodeDrain(kubectlHelper(t, client), "n"); err == nil || !strings.Contains(err.Error(), "shop/naked") {
		t.Errorf("kubectl drains: %v, want an error about shop/naked", err)
	}
	for _, action := range client.Actions() {
		if action.GetSubresource() == "eviction" {
			t.Errorf("kubectl did %v", action)
		}
	}
	var ours []string
	for _, step := range drain.Decide(v, drain.DefaultPolicy()).Steps {
		ours = append(ours, step.String())
	}
	if diff := cmp.Diff([]string{"evict shop/web-1", "evict shop/web-2"}, ours); diff != "" {
		t.Errorf("we (-want +got):\n%s", diff)
	}
}

// What becomes of a pod after an answer to its eviction.
const (
	goesOn  = "ask again"
	givesUp = "give up"
	isGone  = "gone"
)

// The same answers of the eviction API are put to kubectl and to us.
func TestSameAnswersAsKubectl(t *testing.T) {
	const mended = "what is wrong may be mended while the drain goes on: it says so, and tries on"
	for _, tc := range []struct {
		name        string
		err         error
		kubectl, we string
		differ      string
	}{
		{"gone", apierrors.NewNotFound(pods, "web-1"), isGone, isGone, ""},
		{"a budget without room", refused(0, "The disruption budget web needs 1 healthy pods and has 1 currently"), goesOn, goesOn, ""},
		{"a busy server", apierrors.NewTooManyRequests("too many requests", 1), goesOn, goesOn, ""},
		{"a namespace that is being deleted",
			withCause(apierrors.NewForbidden(pods, "web-1", errors.New("shop is being terminated")), corev1.NamespaceTerminatingCause, ""), goesOn, goesOn, ""},
		{"another pod of the name", apierrors.NewConflict(pods, "web-1", errors.New("Precondition failed: UID in precondition: a, UID in object meta: b")), givesUp, isGone,
			"kubectl names no UID, so it never gets this"},
		{"the budget was deleted meanwhile", apierrors.NewNotFound(schema.GroupResource{Resource: "poddisruptionbudgets"}, "web"), isGone, goesOn,
			"it is the budget that is gone, and not the pod"},
		{"no right", apierrors.NewForbidden(pods, "web-1", errors.New("no")), givesUp, goesOn, mended},
		{"two budgets", webhook(500, "This pod has more than one PodDisruptionBudget"), givesUp, goesOn, mended},
		{"a webhook that fails", apierrors.NewInternalError(errors.New(`failed calling webhook "guard"`)), givesUp, goesOn, mended},
		{"a webhook that denies", webhook(400, `admission webhook "guard" denied the request`), givesUp, goesOn, mended},
		{"a budget that others write to", apierrors.NewTimeoutError("couldn't update PodDisruptionBudget", 10), givesUp, goesOn, mended},
		{"no server", errors.New("connection refused"), givesUp, goesOn, mended},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := kubectlGoesOn(t, tc.err); got != tc.kubectl {
				t.Errorf("kubectl: %s, want %s", got, tc.kubectl)
			}
			if got := weGoOn(tc.err); got != tc.we {
				t.Errorf("we: %s, want %s", got, tc.we)
			}
			if differ := tc.kubectl != tc.we; differ != (tc.differ != "") {
				t.Errorf("they differ: %v, but the row says why: %q", differ, tc.differ)
			}
		})
	}
}

// kubectlGoesOn answers kubectl's first eviction so, and carries out the second.
func kubectlGoesOn(t *testing.T, answer error) (outcome string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := pod("web-1", "1", ready, ownedBy("ReplicaSet"))
		client := fake.NewClientset(p)
		client.Resources = []*metav1.APIResourceList{
			{GroupVersion: "policy/v1"},
			{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods/eviction", Kind: "Eviction", Group: "policy", Version: "v1"}}},
		}
		asked := 0
		client.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
			if action.GetSubresource() != "eviction" {
				return false, nil, nil
			}
			if asked++; asked == 1 {
				return true, nil, answer
			}
			return true, nil, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), p.Namespace, p.Name)
		})
		err := kubectlHelper(t, client).DeleteOrEvictPods([]corev1.Pod{*p})
		switch {
		case err != nil:
			outcome = givesUp
		case asked > 1:
			outcome = goesOn
		default:
			outcome = isGone
		}
	})
	return outcome
}

// weGoOn says what becomes of a pod whose eviction was answered so: whether drain.Decide
// asks for it again within a minute.
func weGoOn(err error) string {
	start := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	step := drain.Evict{Namespace: "shop", Name: "web-1", UID: "web-1-uid"}
	learned := answer(step, err)
	if learned.Outcome == drain.Gone {
		return isGone
	}
	node := &fleet.Node{Name: "n", Unschedulable: true, Taints: []corev1.Taint{contract.DrainingTaint(contract.KindRequest)}, Annotations: map[string]string{
		contract.AnnotationDrainRequest: "upgrade",
		contract.AnnotationDrainReport: contract.Report{
			Answers: []string{"request:upgrade"}, Kind: contract.KindRequest, Phase: contract.PhaseDraining, Since: contract.At(start), Excluded: contract.At(start),
		}.String(),
	}}
	asked := drain.Decide(drain.View{
		Now: start.Add(time.Minute), Node: node, Heard: true, PodsKnown: true, Tries: drain.Tries{}.Send(start, step).Learn(step.UID, start, learned),
		Pods: []fleet.Pod{fleet.PodFrom(pod("web-1", "1", ready, ownedBy("ReplicaSet")))},
	}, drain.DefaultPolicy())
	if len(asked.Steps) == 1 && asked.Steps[0].UID == step.UID {
		return goesOn
	}
	return givesUp
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
			v.Notices = []notice.Notice{{ID: "asg-terminate:i-1", Cause: notice.ASGTerminate, Kind: contract.KindASG}}
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
