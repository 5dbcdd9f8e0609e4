package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

var terminated = notice.Notice{
	ID: contract.TerminateID(instance), Cause: notice.ASGTerminate, Kind: contract.KindASG, Source: notice.FromTargetState, Reason: "Auto Scaling terminates the instance",
}

func story(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f(w)
		w.checkLaws()
	})
}

func TestNotice(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.addPod("web-2")
		w.addPod("job-1", func(p *corev1.Pod) {
			p.Annotations = map[string]string{contract.AnnotationSafeToEvict: "false"}
		})
		w.agent()
		w.after(time.Minute)
		w.notify(terminated)
		w.after(100 * time.Millisecond)
		if n := w.deleted(); n != 2 {
			t.Errorf("%d evictions accepted 100 ms after the notice, want those of the 2 pods that say nothing", n)
		}
		w.after(40 * time.Second) // the termination has no time
		if r := w.report(); r.Phase != contract.PhaseDrained || !r.AnswersTo(terminated.ID) {
			t.Errorf("report %s", r)
		}
		if kind, _ := contract.Draining(w.node.Spec.Taints); !w.node.Spec.Unschedulable || kind != contract.KindASG {
			t.Errorf("node %+v", w.node.Spec)
		}
		// The Event about the pod comes when there is time for it.
		slices.Sort(w.events)
		want := []string{"Node DrainBlocked", "Node DrainStarted " + terminated.ID, "Node Drained", "Pod EvictionOverridesAnnotation"}
		if diff := cmp.Diff(want, w.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// While there is nothing to do the API server hears nothing, whatever the
// kubelet writes to the Node.
func TestIdle(t *testing.T) {
	story(t, func(w *world) {
		w.agent()
		w.after(time.Second)
		w.reads = 0
		for i := range 100 {
			w.change(func(n *corev1.Node) { n.Labels = map[string]string{"turn": fmt.Sprint(i)} })
			w.after(time.Minute)
		}
		if w.reads+w.writes+w.podLists > 0 {
			t.Errorf("%d reads, %d writes, %d lists of an idle agent", w.reads, w.writes, w.podLists)
		}
	})
}

func TestRequestAndWithdrawal(t *testing.T) {
	story(t, func(w *world) {
		w.change(func(n *corev1.Node) { n.Spec.Unschedulable = true }) // by a person
		w.addPod("web-1")
		before := w.node.DeepCopy()
		w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(5 * time.Second)
		w.expectDrained()
		w.annotate(contract.AnnotationDrainRequest, "")
		w.after(5 * time.Second)
		if diff := cmp.Diff(before.Spec, w.node.Spec); diff != "" {
			t.Errorf("spec (-before +after):\n%s", diff)
		}
		if len(w.node.Annotations)+len(w.node.Labels) > 0 {
			t.Errorf("left behind: %v %v", w.node.Annotations, w.node.Labels)
		}
		if len(w.podWatches) > 0 {
			t.Error("the pods are still watched")
		}
		w.reads = 0
		w.after(time.Hour)
		if w.reads > 0 {
			t.Errorf("%d reads when all was over", w.reads)
		}
	})
}

// The API server is away in mid-drain for twenty seconds.
func TestOutage(t *testing.T) {
	const pods = 2 * firstAtOnce
	story(t, func(w *world) {
		for i := range pods {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		w.slow = 500 * time.Millisecond
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		w.after(900 * time.Millisecond)
		w.set(func() { w.down = true })
		w.after(20 * time.Second)
		if n := w.deleted(); n == 0 || n == pods {
			t.Fatalf("%d pods deleted when the server was lost: not in mid-drain", n)
		}
		w.set(func() { w.down = false })
		w.after(15 * time.Second)
		if r := w.report(); r.Phase != contract.PhaseDrained || w.deleted() != pods {
			t.Errorf("%d deletions, report %s", w.deleted(), r)
		}
	})
}

// The server is away when the notice comes.
func TestNoticeInOutage(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agent()
		w.after(time.Second)
		w.set(func() { w.down = true })
		w.notify(terminated)
		w.after(time.Minute)
		if w.reads > 40 {
			t.Errorf("%d reads in a minute", w.reads)
		}
		w.set(func() { w.down = false })
		w.after(10 * time.Second)
		w.expectDrained()
	})
}

// Others write to the Node all the time; the agent gets through, and undoes
// nothing of theirs.
func TestConflicts(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		for i := range 500 {
			w.change(func(n *corev1.Node) {
				n.Annotations["other"] = fmt.Sprint(i)
				n.Spec.Taints = contract.WithTaint(n.Spec.Taints, corev1.Taint{Key: "other", Value: fmt.Sprint(i), Effect: corev1.TaintEffectNoSchedule})
			})
			w.after(17 * time.Millisecond)
		}
		w.after(10 * time.Second)
		w.expectDrained()
		if w.node.Annotations["other"] != "499" || len(w.node.Spec.Taints) != 2 {
			t.Errorf("%v %v", w.node.Annotations, w.node.Spec.Taints)
		}
	})
}

// How long a read took when the agent started says nothing of a drain that comes later: all
// pods are asked to leave in one round.
func TestFirstReadIsSlow(t *testing.T) {
	story(t, func(w *world) {
		const pods = 30
		for i := range pods {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		w.slow = 200 * time.Millisecond
		w.agentWith(func(a *Agent) {
			read, slow := a.ReadNode, time.Second
			a.ReadNode = func(ctx context.Context) (*corev1.Node, error) {
				time.Sleep(slow)
				slow = 0
				return read(ctx)
			}
		})
		w.after(time.Minute)
		w.notify(terminated)
		w.after(3 * w.slow / 2)
		if n := w.deleted(); n != pods {
			t.Errorf("%d of %d pods evicted in one round", n, pods)
		}
	})
}

// The agent is killed again and again.
func TestRestarts(t *testing.T) {
	for _, every := range []time.Duration{3 * time.Millisecond, 11 * time.Millisecond, 70 * time.Millisecond, 1300 * time.Millisecond} {
		story(t, func(w *world) {
			for i := range 40 {
				w.addPod(fmt.Sprintf("web-%d", i))
			}
			w.addPod("db-1")
			w.room["db"] = 0
			w.notify(terminated)
			for range 20 {
				stop := w.agent()
				w.after(every)
				stop()
			}
			w.set(func() { w.room["db"], w.writtenAt = 1, nil })
			w.agent()
			w.after(time.Minute)
			if r := w.report(); r.Phase != contract.PhaseDrained || w.deleted() != 41 {
				t.Errorf("every %s: %d deletions, report %s", every, w.deleted(), r)
			}
			w.writtenAt = nil // each process counts its own
		})
	}
}

func TestManyPods(t *testing.T) {
	const pods = 150
	story(t, func(w *world) {
		for i := range pods {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		w.after(200 * time.Millisecond)
		if n := w.deleted(); n != pods {
			t.Errorf("%d of %d evictions accepted after 200 ms at 10 ms each", n, pods)
		}
		if w.mostAsking != mostAtOnce {
			t.Errorf("%d evictions at one time, want %d", w.mostAsking, mostAtOnce)
		}
		w.after(5 * time.Second)
		w.expectDrained()
	})
}

// Pods that one budget guards are asked for one at a time, and so are those of
// one owner while the budgets are not known. Others are not.
func TestWhoIsAskedForTogether(t *testing.T) {
	const pods = 150
	guard := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	other := guard
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	for _, c := range []struct {
		reason  string
		budgets []policyv1.PodDisruptionBudget
		most    int
	}{
		{"no budget is known", nil, 1},
		{"a budget guards them", []policyv1.PodDisruptionBudget{guard}, 1},
		{"a budget guards others", []policyv1.PodDisruptionBudget{other}, mostAtOnce},
	} {
		t.Run(c.reason, func(t *testing.T) {
			story(t, func(w *world) {
				for i := range pods {
					w.addPod(fmt.Sprintf("web-%d", i))
				}
				w.budgets = c.budgets
				w.agent()
				w.after(time.Second)
				w.notify(terminated)
				w.after(1700 * time.Millisecond)
				if n := w.deleted(); n != pods {
					t.Errorf("%d of %d evictions accepted after 1.7 s at 10 ms each", n, pods)
				}
				if w.mostAsking != c.most {
					t.Errorf("%d evictions at one time, want %d", w.mostAsking, c.most)
				}
			})
		})
	}
}

// The watch is quicker than the answer of a read: what it reported is read again.
func TestChangeOvertakesRead(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agentWith(func(a *Agent) {
			a.ReadNode = func(ctx context.Context) (*corev1.Node, error) {
				node, err := w.readNode(ctx)
				time.Sleep(5 * time.Millisecond) // of virtual time
				return node, err
			}
		})
		w.after(time.Second)
		w.annotate(contract.AnnotationHold, "true")
		time.Sleep(2 * time.Millisecond) // the read is under way
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(time.Minute)
		w.expectDrained()
	})
}

// The watch is quicker than the answer of a write: the request that was taken
// back meanwhile is not drained for any more.
func TestChangeOvertakesWrite(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		overtaken := false
		w.agentWith(func(a *Agent) {
			a.WriteNode = func(ctx context.Context, p kube.NodePatch) (*corev1.Node, error) {
				node, err := w.writeNode(ctx, p)
				if w.report().Phase == contract.PhaseDrained && !overtaken {
					overtaken = true
					time.Sleep(time.Millisecond) // the write itself has been reported
					w.annotate(contract.AnnotationDrainRequest, "")
				}
				time.Sleep(5 * time.Millisecond) // of virtual time
				return node, err
			}
		})
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(10 * time.Minute)
		if len(w.node.Annotations) > 0 || w.node.Spec.Unschedulable {
			t.Errorf("ten minutes after it was taken back: %v, unschedulable %v", w.node.Annotations, w.node.Spec.Unschedulable)
		}
	})
}

// Pods whose evictions hang in a webhook do not keep the free ones waiting, though they
// come first by their names.
func TestHangingWebhook(t *testing.T) {
	story(t, func(w *world) {
		w.hangs = map[string]time.Duration{}
		for i := range 12 {
			app := fmt.Sprintf("a%d", i)
			w.addPod(app + "-1")
			w.hangs[app] = 10 * time.Second
		}
		for i := range 30 {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		w.after(7 * time.Second)
		if n := w.deleted(); n != 30 {
			t.Errorf("%d of 30 free pods were evicted in 7 s", n)
		}
		w.set(func() { w.hangs = nil })
		w.after(time.Minute)
		w.expectDrained()
	})
}

// A drain that is taken back stops at once: what waits for its turn is not sent.
func TestTakenBackInMidDrain(t *testing.T) {
	story(t, func(w *world) {
		for i := range 100 {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		w.slow = time.Second
		w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(1500 * time.Millisecond)
		w.annotate(contract.AnnotationDrainRequest, "")
		w.after(time.Minute)
		if n := w.deleted(); n != 2*firstAtOnce { // answers are slow: one more at once for a round
			t.Errorf("%d pods were evicted, want those of the two rounds that were sent", n)
		}
		if w.node.Spec.Unschedulable || len(w.node.Spec.Taints) > 0 || len(w.node.Annotations) > 0 {
			t.Errorf("left behind: %+v %v", w.node.Spec, w.node.Annotations)
		}
	})
}

func TestNodeDeleted(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.room["db"] = 0
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		w.after(5 * time.Second)
		w.deleteNode()
		w.after(time.Second)
		w.reads, w.writes = 0, 0
		w.after(time.Hour)
		if w.reads+w.writes > 0 {
			t.Errorf("%d reads and %d writes of a node that is gone", w.reads, w.writes)
		}
		if w.deleted() > 0 {
			t.Error("a pod was evicted against its budget")
		}
	})
}

// The Node is deleted in mid-drain: its pods leave all the same, each with its
// grace. When it is there again, it is drained and says so.
func TestNodeDeletedAndCreatedAgain(t *testing.T) {
	story(t, func(w *world) {
		for i := range 30 {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		w.slow = 500 * time.Millisecond
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		w.after(700 * time.Millisecond)
		w.deleteNode()
		w.after(10 * time.Second)
		if n := w.deleted(); n != 30 {
			t.Errorf("%d of 30 pods evicted after the Node was deleted", n)
		}
		w.createNode()
		w.addPod("late-1")
		w.after(10 * time.Second)
		if r := w.report(); r.Phase != contract.PhaseDrained || w.deleted() != 31 || !w.node.Spec.Unschedulable {
			t.Errorf("%d deletions, unschedulable %v, report %s", w.deleted(), w.node.Spec.Unschedulable, r)
		}
	})
}

// The Node is deleted while nothing is wrong, and again while it is read; the
// next one is looked at anew.
func TestNodeDeletedWhileIdle(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agentWith(func(a *Agent) {
			a.ReadNode = func(ctx context.Context) (*corev1.Node, error) {
				node, err := w.readNode(ctx)
				time.Sleep(5 * time.Millisecond) // of virtual time
				return node, err
			}
		})
		w.after(time.Minute)
		w.deleteNode()
		w.after(time.Minute)
		w.createNode()
		w.after(2 * time.Millisecond) // the read is under way
		w.deleteNode()
		w.after(time.Minute)
		if w.writes+w.podLists > 0 {
			t.Errorf("%d writes and %d lists, but nobody asked for a drain", w.writes, w.podLists)
		}
		w.createNode()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(time.Minute)
		w.expectDrained()
	})
}

// Whatever keeps an eviction from being done, the pod counts as there, the others
// leave, and when it is mended the drain ends.
func TestEvictionFails(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer drain.Answer
		asked  int // times in a minute, at most
	}{
		{"a right is missing", drain.Answer{Outcome: drain.Forbidden, Message: `pods "db-1" is forbidden: no`}, 10},
		{"two budgets", drain.Answer{Outcome: drain.Failed, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}, 10},
		{"a webhook fails", drain.Answer{Outcome: drain.Failed, Message: `failed calling webhook "guard": context deadline exceeded`}, 10},
		{"the server is too busy", drain.Answer{Outcome: drain.Overloaded, Message: "too many requests"}, 30}, // after a second, and a back-off of the node
		{"the server calls it gone", drain.Answer{Outcome: drain.Gone}, 10},
		{"a budget that is not named", drain.Answer{Outcome: drain.Refused, Message: "no room"}, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			story(t, func(w *world) {
				w.addPod("db-1")
				w.addPod("web-1")
				w.addPod("web-2")
				w.refusals["db"] = tc.answer
				asked := 0
				w.agentWith(func(a *Agent) {
					a.Evict = func(ctx context.Context, step drain.Evict) drain.Answer {
						if step.Name == "db-1" {
							w.set(func() { asked++ })
						}
						return w.evict(ctx, step)
					}
				})
				w.after(time.Second)
				w.annotate(contract.AnnotationDrainRequest, "upgrade")
				w.after(time.Minute)
				r := w.report()
				if !r.Phase.Open() || r.Left != 1 || w.deleted() != 2 {
					t.Errorf("%d deletions, report %s", w.deleted(), r)
				}
				if tc.answer.Message != "" && !strings.Contains(r.Message, tc.answer.Message) {
					t.Errorf("the report does not say %q: %s", tc.answer.Message, r)
				}
				if asked > tc.asked {
					t.Errorf("asked %d times in a minute", asked)
				}
				w.set(func() { delete(w.refusals, "db") })
				w.after(20 * time.Second)
				w.expectDrained()
			})
		})
	}
}

// A pod of a namespace that is being deleted is refused, and goes by itself.
func TestNamespaceTerminating(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.refusals["db"] = drain.Answer{Outcome: drain.Failed, Message: "namespace shop is being terminated"}
		w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(5 * time.Second)
		w.set(func() {
			for _, p := range w.pods {
				w.delete(p, nil)
			}
		})
		w.after(5 * time.Second)
		w.expectDrained()
	})
}

// Refused: the report says by whom, and it ends when there is room.
func TestBlocked(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.addPod("web-1")
		w.room["db"] = 0
		w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(30 * time.Second)
		r := w.report()
		if r.Phase != contract.PhaseBlocked || !slices.Equal(r.BlockedBy, []string{"shop/db"}) || r.Left != 1 {
			t.Errorf("report %s", r)
		}
		if age := time.Since(r.Renewed.Time); age > contract.ReportEvery+time.Second {
			t.Errorf("the report was renewed %s ago", age)
		}
		w.set(func() { w.room["db"] = 1 })
		w.after(15 * time.Second)
		w.expectDrained()
	})
}

// Where the API server has no time, the report is renewed less often, once it says so: whether it
// refuses evictions, or reports once, or is slow to take one.
func TestRenewalInACrowd(t *testing.T) {
	for name, c := range map[string]struct {
		late time.Duration // how long a report takes to be written
		busy func(w *world, a *Agent)
	}{
		"refuses": {0, func(w *world, _ *Agent) { w.refusals["db"] = drain.Answer{Outcome: drain.Overloaded} }},
		"refuses reports first": {4 * time.Second, func(w *world, a *Agent) {
			w.room["db"] = 0
			again := false
			a.WriteNode = func(ctx context.Context, patch kube.NodePatch) (*corev1.Node, error) {
				if again = !again; again {
					return nil, apierrors.NewTooManyRequestsError("too many requests")
				}
				return w.writeNode(ctx, patch)
			}
		}},
		"slow": {2 * prompt, func(w *world, a *Agent) {
			w.room["db"] = 0
			a.WriteNode = func(ctx context.Context, patch kube.NodePatch) (*corev1.Node, error) {
				time.Sleep(2 * prompt)
				return w.writeNode(ctx, patch)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.addPod("db-1")
				w.agentWith(func(a *Agent) { c.busy(w, a) })
				w.after(time.Second)
				w.annotate(contract.AnnotationDrainRequest, "upgrade")
				w.after(25 * time.Second)
				before, oldest := w.written(), time.Duration(0)
				for range 5 * int(contract.CrowdedReportEvery/time.Second) {
					w.after(time.Second)
					r := w.report()
					age, most := time.Since(r.Renewed.Time), contract.UnresponsiveAfter/2
					if r.Crowded {
						most = contract.CrowdedReportEvery
					}
					if oldest = max(oldest, age); age > most+c.late+time.Second {
						t.Errorf("the report became %s old: %s", age, r)
					}
				}
				if oldest < contract.CrowdedReportEvery-2*time.Second {
					t.Errorf("no report became older than %s", oldest)
				}
				if n := w.written() - before; n < 4 || n > 6 {
					t.Errorf("%d writes in five times %s", n, contract.CrowdedReportEvery)
				}
			})
		})
	}
}

// While a budget refuses, its namespace is watched: it is asked seldom, and at
// once when it has room. The watch ends with the drain.
func TestRoomIsSeen(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.room["db"] = 0
		asked := 0
		w.agentWith(func(a *Agent) {
			a.Evict = func(ctx context.Context, step drain.Evict) drain.Answer {
				w.set(func() { asked++ })
				return w.evict(ctx, step)
			}
		})
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(5 * time.Minute)
		if asked > 40 {
			t.Errorf("asked %d times in five minutes", asked)
		}
		w.allow("db", 1)
		w.after(time.Second)
		if w.deleted() != 1 {
			t.Error("the pod was not evicted within a second after its budget had room")
		}
		w.after(10 * time.Second)
		w.annotate(contract.AnnotationDrainRequest, "")
		w.after(5 * time.Second)
		if len(w.budgetWatches)+len(w.podWatches) > 0 {
			t.Errorf("%d budget watches and %d pod watches after the drain", len(w.budgetWatches), len(w.podWatches))
		}
	})
}

// Where people asked for it, a pod that a budget keeps is deleted shortly before
// the instance goes, so that it hears of its end; and an Event says so.
func TestLastChance(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.room["db"] = 0
		w.agentWith(func(a *Agent) {
			a.Policy.Responses[notice.SpotTerminate] = notice.Response{Do: notice.Drain, LastChance: notice.Delete}
		})
		w.after(time.Second)
		w.notify(notice.Notice{
			ID: "spot-terminate:i-1", Cause: notice.SpotTerminate, Kind: contract.KindSpot, Source: notice.FromInstanceAction,
			Reason: "EC2 interrupts the spot instance", Deadline: time.Now().Add(2 * time.Minute),
		})
		w.after(time.Minute)
		if w.deleted() > 0 {
			t.Error("deleted a minute before the deadline")
		}
		w.after(50 * time.Second)
		if w.deleted() != 1 || !slices.Contains(w.events, "Pod "+contract.EventEvictionForced) {
			t.Errorf("%d deletions, events %q", w.deleted(), w.events)
		}
		w.expectDrained()
	})
}

// The node is empty, and drained when its volumes are detached: the kubelet says
// so in the status, of which the watch reports the version only.
func TestVolumesAreWaitedFor(t *testing.T) {
	story(t, func(w *world) {
		w.change(func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "ebs/vol-1"}} })
		w.addPod("db-1", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
		})
		w.agent()
		w.after(time.Second)
		w.notify(terminated)
		w.after(20 * time.Second)
		if r := w.report(); r.Phase == contract.PhaseDrained || r.Left != 0 {
			t.Errorf("with a volume: report %s", r)
		}
		w.change(func(n *corev1.Node) { n.Status.VolumesAttached = nil })
		w.after(2 * time.Second)
		if r := w.report(); r.Phase != contract.PhaseDrained {
			t.Errorf("without one: report %s", r)
		}
	})
}

// The machine comes up again after the reboot for which it was drained. Its agent
// may be there before the kubelet has reported the new boot id, and the metadata may go
// on listing the event.
func TestRebooted(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		stop := w.agent()
		w.after(time.Second)
		w.notify(notice.Notice{
			ID: "instance-reboot:i-1:event-1", Cause: notice.InstanceReboot, Kind: contract.KindMaintenance, Source: notice.FromMaintenance,
			Reason: "the instance is rebooted", Deadline: time.Now().Add(20 * time.Minute),
		})
		w.after(19 * time.Minute)
		w.expectDrained()
		stop()
		w.after(2 * time.Minute)
		w.writtenAt = nil // each process counts its own
		w.agent()
		w.after(10 * time.Second)
		if !w.node.Spec.Unschedulable {
			t.Error("the cordon was undone before the machine had come up")
		}
		w.change(func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" })
		w.after(5 * time.Second)
		if r := w.report(); w.node.Spec.Unschedulable || len(w.node.Spec.Taints) > 0 || r.Phase != "" {
			t.Errorf("%+v, report %s", w.node.Spec, r)
		}
		w.reads, w.writes = 0, 0
		w.after(time.Hour)
		if w.reads+w.writes > 0 {
			t.Errorf("%d reads and %d writes when all was over", w.reads, w.writes)
		}
	})
}

// While the scaler writes that it is not its turn, by a clock that is an hour behind, a drain
// waits and its node is open, also when the agent starts again. It costs a write every two
// minutes. When nothing more is said it begins five minutes later.
func TestWaitsForItsTurn(t *testing.T) {
	const id = "instance-retirement:i-1:event-1"
	story(t, func(w *world) {
		w.addPod("web-1")
		retirement := notice.Notice{
			ID: id, Cause: notice.InstanceRetirement, Kind: contract.KindMaintenance, Source: notice.FromMaintenance,
			Reason: "the machine is degraded", Deadline: time.Now().Add(14 * 24 * time.Hour),
		}
		tell := func() {
			w.change(func(n *corev1.Node) {
				n.Annotations[contract.AnnotationDrainNotYet] = contract.NotYet{ID: id, At: contract.At(time.Now().Add(-time.Hour))}.String()
			})
		}
		stop := w.agent()
		w.after(time.Second)
		w.notify(retirement)
		w.after(time.Second)
		tell()
		w.after(time.Minute)
		w.writes = 0
		for range 60 {
			w.after(2 * time.Minute)
			tell()
		}
		if w.writes > 70 {
			t.Errorf("%d writes in two hours", w.writes)
		}
		stop()
		w.after(3 * time.Minute)
		w.writtenAt = nil // each process counts its own
		w.agent()
		w.notify(retirement)
		w.after(4 * time.Minute)
		if r := w.report(); w.node.Spec.Unschedulable || w.deleted() > 0 || r.Phase != contract.PhaseWaiting {
			t.Errorf("unschedulable %v, %d deletions, report %s", w.node.Spec.Unschedulable, w.deleted(), r)
		}
		w.after(2 * time.Minute)
		w.expectDrained()
	})
}

// A node that is only cordoned is uncordoned by a person: that stands in its spec,
// which the watch does not show, and it is respected.
func TestUncordonedByAPerson(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agentWith(func(a *Agent) {
			a.Policy.Responses[notice.Rebalance] = notice.Response{Do: notice.Cordon}
		})
		w.after(time.Second)
		w.notify(notice.Notice{
			ID: "rebalance:i-1:2030-01-01T00:00:00Z", Cause: notice.Rebalance, Kind: contract.KindRebalance, Source: notice.FromRebalance,
			Reason: "EC2 recommends to rebalance",
		})
		w.after(time.Minute)
		if !w.node.Spec.Unschedulable || w.deleted() > 0 {
			t.Errorf("unschedulable %v, %d deletions", w.node.Spec.Unschedulable, w.deleted())
		}
		w.change(func(n *corev1.Node) { n.Spec.Unschedulable = false })
		w.after(time.Minute)
		if _, marked := w.node.Annotations[contract.AnnotationCordonedBy]; w.node.Spec.Unschedulable || marked {
			t.Errorf("unschedulable %v, our mark stands %v", w.node.Spec.Unschedulable, marked)
		}
		w.reads = 0
		for range 10 {
			w.change(func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning })
			w.after(time.Minute)
		}
		if w.reads > 0 {
			t.Errorf("%d reads when all was over", w.reads)
		}
	})
}

// What deserves an Event for each pod waits until the evictions are through, and
// comes slowly.
func TestOverridesAreToldLater(t *testing.T) {
	const pods = 2 * mostAtOnce
	story(t, func(w *world) {
		for i := range pods {
			w.addPod(fmt.Sprintf("naked%d-1", i), func(p *corev1.Pod) { p.OwnerReferences = nil })
		}
		w.slow = 300 * time.Millisecond
		told := map[time.Time]int{}
		w.agentWith(func(a *Agent) {
			tell := a.Tell
			a.Tell = func(e kube.Event) {
				tell(e)
				if e.Object.Kind != "Pod" {
					return
				}
				if n := w.deleted(); n != pods {
					t.Errorf("an Event about a pod when %d of %d were evicted", n, pods)
				}
				w.set(func() { told[time.Now().Truncate(time.Second)]++ })
			}
		})
		w.after(time.Second)
		w.notify(terminated)
		w.after(10 * time.Minute)
		sum := 0
		for second, n := range told {
			sum += n
			if n > 1 {
				t.Errorf("%d Events in the second at %s", n, second)
			}
		}
		if sum != pods {
			t.Errorf("%d of %d Events", sum, pods)
		}
	})
}

// An agent that ends records the overrides that still wait: the next one does not know of
// them.
func TestOverridesAreToldAtTheEnd(t *testing.T) {
	story(t, func(w *world) {
		for i := range 10 {
			w.addPod(fmt.Sprintf("naked%d-1", i), func(p *corev1.Pod) { p.OwnerReferences = nil })
		}
		stop := w.agent()
		w.after(time.Second)
		w.notify(terminated)
		for w.deleted() < 10 {
			w.after(time.Second)
		}
		told := func() (n int) {
			w.set(func() {
				for _, e := range w.events {
					if e == "Pod "+contract.EventEvictionForced {
						n++
					}
				}
			})
			return n
		}
		if n := told(); n == 10 {
			t.Fatal("all were told of before the agent ended: nothing is tried")
		}
		stop()
		if n := told(); n != 10 {
			t.Errorf("%d of 10 Events", n)
		}
	})
}

// Whatever happens at whatever moment of a drain, it ends, and no pod is deleted
// twice on the way.
func TestAtAnyMoment(t *testing.T) {
	for _, tc := range []struct {
		name string
		// happens returns when it is over.
		happens func(w *world, stop func())
	}{
		{"the API server is away", func(w *world, _ func()) {
			w.set(func() { w.down = true })
			w.after(20 * time.Second)
			w.set(func() { w.down = false })
		}},
		{"the agent is restarted", func(w *world, stop func()) {
			stop()
			w.writtenAt = nil // each process counts its own
			w.agent()
		}},
		{"the agent is restarted while the API server is away", func(w *world, stop func()) {
			w.set(func() { w.down = true })
			w.after(time.Second)
			stop()
			w.writtenAt = nil
			w.agent()
			w.after(20 * time.Second)
			w.set(func() { w.down = false })
		}},
		{"the Node is deleted, and created again", func(w *world, _ func()) {
			w.deleteNode()
			w.after(3 * time.Second)
			w.createNode()
		}},
		{"the Node is deleted, and created again for another agent", func(w *world, stop func()) {
			w.deleteNode()
			w.after(3 * time.Second)
			stop()
			w.writtenAt = nil
			w.createNode()
			w.agent()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for moment := time.Duration(0); moment < 3*time.Second; moment += 73 * time.Millisecond {
				story(t, func(w *world) {
					for i := range 12 {
						w.addPod(fmt.Sprintf("web%d-1", i))
					}
					w.addPod("db-1")
					w.addPod("db-2")
					w.room["db"] = 1
					w.slow = 200 * time.Millisecond
					stop := w.agent()
					w.after(time.Second)
					w.notify(terminated)
					w.after(moment)
					tc.happens(w, stop)
					w.after(10 * time.Second)
					w.allow("db", 1)
					w.after(time.Minute)
					if r := w.report(); r.Phase != contract.PhaseDrained || w.deleted() != 14 || !w.node.Spec.Unschedulable {
						t.Errorf("at %s: %d of 14 deletions, unschedulable %v, report %s", moment, w.deleted(), w.node.Spec.Unschedulable, r)
					}
				})
			}
		})
	}
}

// What is seen of pods while a node drains is gathered into one pass; an answer is not waited with.
func TestWaitGathers(t *testing.T) {
	for about, c := range map[string]struct {
		took   time.Duration // what an eviction took; zero before the first
		answer time.Duration // when one comes; zero for never
		want   time.Duration
	}{
		"before the first eviction": {took: 0, want: 0},
		"while pods leave":          {took: prompt, want: gatherFor},
		"beside an answer":          {took: prompt, answer: gatherFor / 4, want: gatherFor / 4},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &loop{ctx: t.Context(), do: make(chan func()), nudge: make(chan struct{}, 1), drain: &underWay{pace: pace{took: c.took}}}
				began, answered := time.Now(), false
				l.nudge <- struct{}{}
				go func() {
					time.Sleep(gatherFor / 2)
					select {
					case l.nudge <- struct{}{}:
					default:
					}
				}()
				if c.answer > 0 {
					time.AfterFunc(c.answer, func() { l.post(func() { answered = true }) })
				}
				if !l.wait(time.Time{}) {
					t.Error("it ends")
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("a pass after %s, want %s", took, c.want)
				}
				if answered != (c.answer > 0) {
					t.Errorf("answered: %t", answered)
				}
				if c.want == gatherFor && len(l.nudge) > 0 {
					t.Error("what came meanwhile is another pass")
				}
				time.Sleep(gatherFor)
			})
		})
	}
}
