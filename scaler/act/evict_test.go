package act

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/plan/action"
)

func evict(name string) action.Evict {
	return action.Evict{Group: "web", Node: n1, Pod: action.PodRef{Namespace: "default", Name: name, UID: "u"}, Why: "its agent is gone"}
}

// answering lets the API server answer every eviction with err, and keeps what it was
// sent.
func (b *bed) answering(err func() error) *[]*policyv1.Eviction {
	var sent []*policyv1.Eviction
	b.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent = append(sent, action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction))
		return true, nil, err()
	})
	return &sent
}

// deniedBy is what the API server answers when an admission webhook denies a request with
// that code.
func deniedBy(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "guard.example.com" denied the request: no`,
	}}
}

// Only a pod that is not there any more has left; whatever else the server answers, it is
// there.
func TestEvict(t *testing.T) {
	twoBudgets := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "This pod has more than one PodDisruptionBudget",
	}}
	for _, tc := range []struct {
		name string
		err  error
		want Outcome
	}{
		{"accepted", nil, Done},
		{"gone", apierrors.NewNotFound(corev1.Resource("pods"), "a"), Done},
		{"its budget is gone", apierrors.NewNotFound(policyv1.Resource("poddisruptionbudgets"), "a"), Failed},
		{"another pod of the name", apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("the UID in the precondition (u) does not match the UID in record (v)")), Done},
		{"a conflict of versions", apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("the object has been modified")), Failed},
		{"a webhook denies it with the code of another pod", deniedBy(http.StatusConflict, metav1.StatusReasonConflict), Failed},
		{"or of a pod that is gone", deniedBy(http.StatusNotFound, metav1.StatusReasonNotFound), Failed},
		{"its budget forbids it", apierrors.NewTooManyRequests("budget", 10), Stopped},
		{"denied", apierrors.NewForbidden(corev1.Resource("pods"), "a", nil), Failed},
		{"it has two budgets", twoBudgets, Failed},
		{"a webhook fails", apierrors.NewInternalError(errors.New("failed calling webhook")), Failed},
		{"the server is slow", apierrors.NewTimeoutError("slow", 1), Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(nil)
			sent := b.answering(func() error { return tc.err })
			grace := int64(5)
			action := evict("a")
			action.Grace = &grace
			r := b.one(t, action)
			if r.Outcome != tc.want {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			if len(*sent) != 1 || *(*sent)[0].DeleteOptions.Preconditions.UID != types.UID("u") || *(*sent)[0].DeleteOptions.GracePeriodSeconds != 5 {
				t.Errorf("sent %+v", *sent)
			}
			if told := len(b.events.list) > 0; told != (tc.want == Failed) {
				t.Errorf("events %q", b.events.list)
			}
		})
	}
}

// hangingPods are those behind a webhook that never answers.
type hangingPods struct{ corev1client.PodInterface }

func (hangingPods) EvictV1(ctx context.Context, _ *policyv1.Eviction) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hangingPods) Pods(string) corev1client.PodInterface { return hangingPods{} }

// Evictions that hang hold the next evaluation up for seconds, however many they are.
func TestEvictionsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		b.Pods = hangingPods{}
		var actions []action.Action
		for i := range 100 {
			actions = append(actions, evict(fmt.Sprintf("p%d", i)))
		}
		began := time.Now()
		results := b.Do(t.Context(), actions)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the look took %s", took)
		}
		if r := results[0]; r.Outcome != Failed {
			t.Errorf("%s: %v", r.Outcome, r.Err)
		}
	})
}

// A pod's own word against eviction is overruled on record.
func TestEvictAgainstAWord(t *testing.T) {
	b := newBed(nil)
	b.answering(func() error { return nil })
	action := evict("a")
	action.Overrides = drainable.RuleNotSafeToEvict
	if r := b.one(t, action); r.Outcome != Done {
		t.Fatal(r.Err)
	}
	want := []string{contract.EventEvictionForced + " a: evicted despite NotSafeToEvictAnnotation: its agent is gone"}
	if diff := cmp.Diff(want, b.events.list); diff != "" {
		t.Error(diff)
	}
}

// A refusal and a failure back off for longer and longer, each pod by itself, and the pod is
// asked for again.
func TestEvictPauses(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		asked []time.Duration
	}{
		"refused": {apierrors.NewTooManyRequests("budget", 10), []time.Duration{0, 100, 300, 700, 1500}},
		"denied":  {apierrors.NewForbidden(corev1.Resource("pods"), "a", nil), []time.Duration{0, 1000, 3000, 7000, 15000}},
		"failing": {apierrors.NewInternalError(errors.New("etcd")), []time.Duration{0, 1000, 3000, 7000, 15000}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(nil)
				began := time.Now()
				var asked []time.Duration
				b.answering(func() error {
					asked = append(asked, time.Since(began)/time.Millisecond)
					return tc.err
				})
				for len(asked) < len(tc.asked) {
					if r := b.one(t, evict("a")); r.Outcome == Done {
						t.Fatal("it counts as gone")
					}
					time.Sleep(100 * time.Millisecond)
				}
				if diff := cmp.Diff(tc.asked, asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A pod that the server deletes is not asked for again before there was time to see that,
// however often an evaluation decides it. Another pod of its name is another pod.
func TestEvictOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		sent := b.answering(func() error { return nil })
		for range 5 {
			b.one(t, evict("a"))
			time.Sleep(100 * time.Millisecond)
		}
		if len(*sent) != 1 {
			t.Errorf("asked %d times", len(*sent))
		}
		other := evict("a")
		other.Pod.UID = "v"
		if r := b.one(t, other); r.Outcome != Done || len(*sent) != 2 {
			t.Errorf("its successor: %s, asked %d times", r.Outcome, len(*sent))
		}
		time.Sleep(afterEviction)
		if r := b.one(t, evict("a")); r.Outcome != Done || len(*sent) != 3 {
			t.Errorf("after a while: %s, asked %d times", r.Outcome, len(*sent))
		}
	})
}

// The server takes its time over each eviction; those of one node do not wait for each other,
// and many of them do not hold up an evaluation.
func TestEvictionsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		b.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		b.Pods = slowPods{b.Pods}
		var actions []action.Action
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			actions = append(actions, evict(name))
		}
		began := time.Now()
		b.Do(t.Context(), actions)
		if took := time.Since(began); took != slowEviction {
			t.Errorf("eight evictions took %s", took)
		}
		for range 5 {
			actions = append(actions, actions...)
		}
		for i := range actions {
			x := actions[i].(action.Evict)
			x.Pod.Name += string(rune('0' + i/8))
			actions[i] = x
		}
		began = time.Now()
		results := b.Do(t.Context(), actions)
		if took := time.Since(began); took > action.TraitsOf(action.Evict{}).Budget+slowEviction {
			t.Errorf("%d evictions held the look up for %s", len(actions), took)
		}
		if last := results[len(results)-1]; last.Outcome != Paused || last.Err != nil {
			t.Errorf("the last of them: %s %v", last.Outcome, last.Err)
		}
		b.Do(t.Context(), nil) // the rest of the plan, in which there is nothing to do
		if due := b.Due(time.Now()); !due.Equal(time.Now()) {
			t.Errorf("the next look is due at %s", due)
		}
	})
}

func cordon(id string) action.Cordon {
	return action.Cordon{Group: "web", Node: n1, ID: id, Kind: contract.KindASG, Why: "its agent has not answered"}
}

func TestCordon(t *testing.T) {
	b := newBed(request(contract.KindASG, "asg-terminate:i-1"))
	for range 2 { // twice is once
		if r := b.one(t, cordon("asg-terminate:i-1")); r.Outcome != Done {
			t.Fatal(r.Err)
		}
	}
	node := b.node(t)
	mark, err := contract.ParseCordon(node.Annotations[contract.AnnotationCordonedBy])
	if err != nil || mark.By != contract.AppScaler || mark.Notice != "asg-terminate:i-1" {
		t.Errorf("mark %+v: %v", mark, err)
	}
	if kind, _ := contract.Draining(node.Spec.Taints); !node.Spec.Unschedulable || kind != contract.KindASG {
		t.Errorf("unschedulable %v, tainted for %q", node.Spec.Unschedulable, kind)
	}
	if node.Labels[contract.LabelExcludeFromLoadBalancers] != "true" || node.Annotations[contract.AnnotationExcluded] != "asg-terminate:i-1" {
		t.Errorf("labels %v", node.Labels)
	}
	if patches := patchesOf(b); patches != 1 {
		t.Errorf("%d patches", patches)
	}

	// The undo of a scale-down that is cancelled finds it.
	if r := b.one(t, action.CancelDrain{Group: "web", Node: n1, ID: "asg-terminate:i-1", AgentGone: true}); r.Outcome != Stopped {
		t.Errorf("a termination is taken back: %v", r.Err)
	}
}

func patchesOf(b *bed) int {
	n := 0
	for _, a := range b.client.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

// The node gets the taint for kube-proxy where that is asked for, once, and where it has
// none; the undo removes our taint and no other.
func TestCordonTellsKubeProxy(t *testing.T) {
	const id = "scale-down:i-1:1"
	theirs := corev1.Taint{Key: contract.TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule}
	for _, tc := range []struct {
		name                  string
		asked                 bool
		before, during, after []corev1.Taint
	}{
		{"not asked for", false, nil, nil, nil},
		{"asked for", true, nil, []corev1.Taint{contract.KubeProxyTaint()}, nil},
		{"theirs stands there", true, []corev1.Taint{theirs}, []corev1.Taint{theirs}, []corev1.Taint{theirs}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(request(contract.KindScaleDown, id))
			node := b.node(t)
			node.Spec.Taints = tc.before
			if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			kubeProxys := func() (list []corev1.Taint) {
				for _, taint := range b.node(t).Spec.Taints {
					if taint.Key == contract.TaintToBeDeleted {
						list = append(list, taint)
					}
				}
				return list
			}
			x := cordon(id)
			x.Kind, x.KubeProxy = contract.KindScaleDown, tc.asked
			for range 2 {
				if r := b.one(t, x); r.Outcome != Done {
					t.Fatal(r.Err)
				}
			}
			if diff := cmp.Diff(tc.during, kubeProxys()); diff != "" {
				t.Errorf("while it drains (-want +got):\n%s", diff)
			}
			if r := b.one(t, action.CancelDrain{Group: "web", Node: n1, ID: id, AgentGone: true}); r.Outcome != Done {
				t.Fatal(r.Err)
			}
			if diff := cmp.Diff(tc.after, kubeProxys()); diff != "" {
				t.Errorf("after the undo (-want +got):\n%s", diff)
			}
		})
	}
}

// The mark of a termination is reason enough: what it was drained for may have ended.
func TestCordonOfMarked(t *testing.T) {
	b := newBed(map[string]string{contract.AnnotationTerminating: "never-ready:i-1"})
	if r := b.one(t, cordon("never-ready:i-1")); r.Outcome != Done {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	if r := b.one(t, cordon("asg-terminate:i-1")); r.Outcome != Stopped {
		t.Errorf("for another drain %s: %v", r.Outcome, r.Err)
	}
}

// A cordon and a label of people stay theirs; and no drain that is over is begun again.
func TestCordonOfPeople(t *testing.T) {
	b := newBed(map[string]string{contract.AnnotationDrainReport: contract.Report{Phase: contract.PhaseDraining, Answers: []string{"a", "b"}}.String()})
	node := b.node(t)
	node.Spec.Unschedulable = true
	node.Labels = map[string]string{contract.LabelExcludeFromLoadBalancers: "yes"}
	if _, err := b.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := b.one(t, cordon("b")); r.Outcome != Done {
		t.Fatal(r.Err)
	}
	node = b.node(t)
	_, marked := node.Annotations[contract.AnnotationCordonedBy]
	_, excluded := node.Annotations[contract.AnnotationExcluded]
	if marked || excluded || node.Labels[contract.LabelExcludeFromLoadBalancers] != "yes" || len(node.Spec.Taints) != 1 {
		t.Errorf("annotations %v, labels %v, taints %v", node.Annotations, node.Labels, node.Spec.Taints)
	}
	if r := b.one(t, cordon("c")); r.Outcome != Stopped {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

func TestPermit(t *testing.T) {
	waiting := func(wants string) map[string]string {
		return map[string]string{contract.AnnotationDrainReport: contract.Report{Phase: contract.PhaseWaiting, Answers: []string{"a"}, Wants: wants}.String()}
	}
	for _, tc := range []struct {
		name     string
		standing map[string]string
		want     Outcome
		stands   string
		news     int
	}{
		{"its agent waits", waiting("a"), Done, "a", 1},
		{"it stands there already", with(waiting("a"), contract.AnnotationDrainPermit, "a"), Done, "a", 0},
		{"an older one stands there", with(waiting("a"), contract.AnnotationDrainPermit, "b"), Done, "a", 1},
		{"its agent wants another", waiting("b"), Stopped, "", 0},
		{"its agent has begun", waiting(""), Stopped, "", 0},
		{"its drain is over", nil, Stopped, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.standing)
			r := b.one(t, action.Permit{Group: "web", Node: n1, ID: "a"})
			if r.Outcome != tc.want {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			if got := b.node(t).Annotations[contract.AnnotationDrainPermit]; got != tc.stands {
				t.Errorf("permit %q", got)
			}
			if len(b.events.list) != tc.news {
				t.Errorf("events %q", b.events.list)
			}
		})
	}
}

// A scale-down is decided, so its permit comes with its request, and goes with it. What Auto
// Scaling takes needs none.
func TestRetirePermits(t *testing.T) {
	for kind, want := range map[contract.Kind]string{contract.KindScaleDown: "a", contract.KindASG: ""} {
		b := newBed(nil)
		if r := b.one(t, retire(kind, "a")); r.Outcome != Done {
			t.Fatal(r.Err)
		}
		if got := b.node(t).Annotations[contract.AnnotationDrainPermit]; got != want {
			t.Errorf("%s: permit %q", kind, got)
		}
		if n := patchesOf(b); n != 1 {
			t.Errorf("%s: %d patches", kind, n)
		}
	}
	b := newBed(nil)
	b.one(t, retire(contract.KindScaleDown, "a"))
	b.one(t, action.CancelDrain{Group: "web", Node: n1, ID: "a", AgentGone: true})
	if annotations := b.node(t).Annotations; len(annotations) != 0 {
		t.Errorf("left are %v", annotations)
	}
}
