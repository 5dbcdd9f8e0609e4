package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// A node's clock is off: a request, which the scaler dates, is drained for in time,
// the report has the right time, and pauses are as long as they should be.
func TestClockIsOff(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			story(t, func(w *world) {
				w.sighting = imds.Sighting{Heard: true, Dated: true, ClockAhead: ahead}
				w.addPod("db-1", asksForAMinute)
				w.addPod("web-1", asksForAMinute)
				w.room["db"] = 0
				stop := w.agentWith(checksGrace(t))
				w.after(time.Second)
				began := time.Now().Add(-ahead) // as clocks that are right show it
				request := contract.Request{
					ID: contract.TerminateID(instance), Kind: contract.KindASG, Reason: "Auto Scaling terminates the instance",
					Deadline: contract.At(began.Add(10 * time.Minute)),
				}
				w.annotate(contract.AnnotationDrainRequest, request.String())
				w.after(20 * time.Second)
				r := w.report()
				if r.Phase != contract.PhaseDraining || r.Deadline != request.Deadline || w.deleted() != 1 {
					t.Errorf("%d deletions, report %s", w.deleted(), r)
				}
				if late := r.Since.Sub(began); late.Abs() > time.Second {
					t.Errorf("began at %s, the report says %s", began, r.Since)
				}
				if late := time.Now().Add(-ahead).Sub(r.Renewed.Time); late < -time.Second || late > contract.ReportEvery+time.Second {
					t.Errorf("the report was renewed %s ago", late)
				}

				stop()
				w.writtenAt = nil // each process counts its own
				w.agentWith(checksGrace(t), knowsTheTimeLate)
				w.after(20 * time.Second)
				if r := w.report(); r.Phase != contract.PhaseDraining {
					t.Errorf("after a restart: report %s", r)
				}
				w.allow("db", 1)
				w.after(2 * time.Second)
				if w.deleted() != 2 {
					t.Error("the pod was not evicted within two seconds after its budget had room")
				}
				w.after(2 * time.Minute)
				w.expectDrained()
			})
		})
	}
}

func asksForAMinute(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(60)) }

// checksGrace: the deadline is far away, so each pod is given what it asks for.
func checksGrace(t *testing.T) func(*Agent) {
	return func(a *Agent) {
		evict := a.Evict
		a.Evict = func(ctx context.Context, step drain.Evict) drain.Answer {
			if step.Grace != nil {
				t.Errorf("%s is given %d s", step.Name, *step.Grace)
			}
			return evict(ctx, step)
		}
	}
}

// knowsTheTimeLate has the metadata service answer after a moment.
func knowsTheTimeLate(a *Agent) {
	watch := a.WatchNotices
	a.WatchNotices = func(ctx context.Context, saw func(imds.Sighting)) {
		time.Sleep(clockPatience * 9 / 10) // of virtual time
		watch(ctx, saw)
	}
}

// An agent comes up in mid-drain on a node whose clock is an hour ahead: it judges nothing
// by that clock before the metadata service has given the time, a moment later. A pod that
// has some minutes yet is not evicted against its word.
func TestClockIsAwaited(t *testing.T) {
	story(t, func(w *world) {
		w.sighting = imds.Sighting{Heard: true, Dated: true, ClockAhead: time.Hour}
		w.addPod("db-1", asksForAMinute, func(p *corev1.Pod) { p.Annotations = map[string]string{contract.AnnotationSafeToEvict: "false"} })
		stop := w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, contract.Request{
			ID: contract.TerminateID(instance), Kind: contract.KindASG, Deadline: contract.At(time.Now().Add(-time.Hour).Add(10 * time.Minute)),
		}.String())
		w.after(5 * time.Second)
		stop()
		w.writtenAt = nil // each process counts its own
		w.agentWith(knowsTheTimeLate)
		w.after(5 * time.Second)
		if w.deleted() != 0 || slices.Contains(w.events, "Node "+contract.EventDrainFailed) {
			t.Errorf("%d deletions, told %v, report %s", w.deleted(), w.events, w.report())
		}
		w.after(10 * time.Minute)
		if w.deleted() != 1 {
			t.Errorf("%d deletions when its time was over, report %s", w.deleted(), w.report())
		}
	})
}

// The difference of the clocks becomes known, or changes, in mid-drain: what has
// been tried is not put off until the time of then comes again.
func TestClockIsCorrectedInMidDrain(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.refusals["db"] = drain.Answer{Outcome: drain.Failed, Message: "etcd is away"}
		w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(5 * time.Second)
		w.see(imds.Sighting{Heard: true, Dated: true, ClockAhead: time.Hour})
		w.after(time.Second)
		w.set(func() { delete(w.refusals, "db") })
		w.after(15 * time.Second)
		if w.deleted() != 1 {
			t.Error("not evicted 15 s after it could be")
		}
	})
}

// The report was written before the difference was known: it is dated anew at once, and
// what waits since then waits no longer for it.
func TestReportIsDatedAnew(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agentWith(func(a *Agent) { a.Policy.LoadBalancerWait = 20 * time.Second })
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(5 * time.Second)
		corrected := time.Now()
		w.see(imds.Sighting{Heard: true, Dated: true, ClockAhead: time.Hour})
		w.after(2 * time.Second)
		r := w.report()
		for what, at := range map[string]contract.Time{"since": r.Since, "renewed": r.Renewed, "excluded": r.Excluded} {
			if off := at.Sub(corrected.Add(-time.Hour)); off.Abs() > 2*time.Second {
				t.Errorf("%s is off by %s: %s", what, off, r)
			}
		}
		w.after(20 * time.Second)
		if w.deleted() != 1 {
			t.Error("not evicted 20 s after the clock was set right")
		}
	})
}

// Events bear the time that their words, and the report, are of.
func TestEventsTellTheRightTime(t *testing.T) {
	const ahead = time.Hour
	story(t, func(w *world) {
		w.sighting = imds.Sighting{Heard: true, Dated: true, ClockAhead: ahead}
		w.addPod("db-1", func(p *corev1.Pod) { p.Annotations = map[string]string{contract.AnnotationSafeToEvict: "false"} })
		var told []kube.Event
		w.agentWith(func(a *Agent) {
			a.Tell = func(e kube.Event) { w.set(func() { told = append(told, e) }) }
		})
		w.after(time.Second)
		began := time.Now().Add(-ahead)
		w.annotate(contract.AnnotationDrainRequest, contract.Request{
			ID: contract.TerminateID(instance), Kind: contract.KindASG, Deadline: contract.At(began.Add(time.Minute)),
		}.String())
		w.after(5 * time.Second)
		reasons := map[string]bool{}
		for _, e := range told {
			reasons[e.Reason] = true
			if off := e.At.Sub(began); off < 0 || off > 5*time.Second {
				t.Errorf("%s is off by %s", e.Reason, off)
			}
		}
		if !reasons[contract.EventDrainStarted] || !reasons[contract.EventEvictionForced] {
			t.Errorf("told: %v", told)
		}
	})
}

// An agent starts anew in mid-drain on a node whose clock is an hour ahead, or behind, and
// the metadata service does not answer: it goes by the API server's clock until that has
// the time, and says of no drain before its time that it has failed.
func TestRestartWithoutMetadata(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			story(t, func(w *world) {
				w.sighting = imds.Sighting{Heard: true, Dated: true, ClockAhead: ahead}
				w.addPod("db-1", asksForAMinute)
				w.room["db"] = 0
				stop := w.agent()
				w.after(time.Second)
				deadline := time.Now().Add(-ahead).Add(10 * time.Minute)
				w.annotate(contract.AnnotationDrainRequest, contract.Request{ID: "r", Deadline: contract.At(deadline)}.String())
				w.after(20 * time.Second)
				stop()
				w.writtenAt = nil // each process counts its own
				stop = w.agentWith(func(a *Agent) {
					a.WatchNotices = func(ctx context.Context, saw func(imds.Sighting)) {
						saw(imds.Sighting{Unclear: []notice.SourceName{notice.FromMaintenance}}) // it was asked, and is silent
						<-ctx.Done()
					}
					a.APITime = func() time.Time { return time.Now().Add(-ahead + 300*time.Millisecond) }
				})
				w.after(5 * time.Minute)
				r := w.report()
				var told []string
				w.set(func() { told = slices.Clone(w.events) })
				if r.Phase != contract.PhaseBlocked || slices.Contains(told, "Node DrainFailed") {
					t.Errorf("told %v, report %s", told, r)
				}
				if late := time.Now().Add(-ahead).Sub(r.Renewed.Time); late < -2*time.Second || late > contract.ReportEvery+2*time.Second {
					t.Errorf("the report was renewed %s ago", late)
				}
				w.after(5 * time.Minute)
				if r := w.report(); r.Phase != contract.PhaseFailed {
					t.Errorf("when the deadline has passed: %s", r)
				}
				stop()
			})
		})
	}
}

// The metadata service's time is better than the API server's.
func TestMetadataTellTheTime(t *testing.T) {
	story(t, func(w *world) {
		w.sighting = imds.Sighting{Heard: true, Dated: true, ClockAhead: time.Minute}
		w.agentWith(func(a *Agent) { a.APITime = func() time.Time { return time.Now().Add(-time.Hour) } })
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.after(5 * time.Second)
		if off := time.Now().Add(-time.Minute).Sub(w.report().Since.Time); off < 0 || off > 10*time.Second {
			t.Errorf("the drain began %s ago: %s", off, w.report())
		}
	})
}

// A request is dated by a clock that is ahead of this node's: it is served once, however
// often others write to the Node.
func TestRequestOfTheFuture(t *testing.T) {
	story(t, func(w *world) {
		w.agent()
		w.after(time.Second)
		w.annotate(contract.AnnotationDrainRequest, contract.Request{
			ID: contract.WarmID(instance), Kind: contract.KindASG, At: contract.At(time.Now().Add(time.Hour)),
		}.String())
		w.after(10 * time.Second)
		if r := w.report(); r.Phase != contract.PhaseDrained {
			t.Fatalf("report %s", r)
		}
		w.set(func() { w.writes = 0 })
		for i := range 60 {
			w.change(func(n *corev1.Node) { n.Annotations["other"] = fmt.Sprint(i) })
			w.after(time.Second)
		}
		if n := w.written(); n > 0 {
			t.Errorf("%d writes in a minute after it was drained", n)
		}
	})
}

// An agent that hears nothing of the metadata service begins without.
func TestClockIsNotTold(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.annotate(contract.AnnotationDrainRequest, "upgrade")
		w.agentWith(func(a *Agent) {
			a.WatchNotices = func(ctx context.Context, _ func(imds.Sighting)) { <-ctx.Done() }
		})
		w.after(clockPatience + 100*time.Millisecond)
		if w.deleted() != 1 {
			t.Errorf("nothing was done within %s", clockPatience)
		}
	})
}

// The agent hears the API server's clock from whatever that answers.
func TestConnectHearsTheTime(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer api.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, clock, err := connect(config{nodeName: nodeName, kubeconfig: kubeconfig}, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Node(t.Context()); err == nil {
		t.Error("the server has no Node, and the client has one")
	}
	if ahead := time.Since(clock.Now()); ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("this clock is ahead by %s, want an hour", ahead)
	}
}

// When the watch told that a pod is being deleted is by this node's clock, and when that was
// asked for by the API server's: the one is moved, the other is not.
func TestEndingByTheRightClock(t *testing.T) {
	asked := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	ends := metav1.NewTime(asked.Add(30 * time.Second))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	l := &loop{Agent: &Agent{}, drain: &underWay{pods: evict.NewPods(func() {})}}
	l.node.raw = &corev1.Node{}
	l.drain.pods.Replace([]corev1.Pod{*pod})
	began := time.Now()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &ends, new(int64(30))
	l.drain.pods.Take(watch.Event{Type: watch.Modified, Object: pod})
	const ahead = time.Hour
	e := moved(l.view(time.Now()), -ahead).Ending["u"]
	if heard := e.Heard.Add(ahead); heard.Before(began) || heard.After(time.Now()) || !e.Asked.Equal(asked) {
		t.Errorf("heard at %s, asked for at %s; want an hour before %s, and %s", e.Heard, e.Asked, began, asked)
	}
}
