package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// heaviest is the most that the agent may write on a Node: all annotations of an object
// together may have 256 KiB.
const heaviest = 96 << 10

// play lets the world run, and holds what is written on the Node to its bound.
func (w *world) play(t *testing.T, length time.Duration) []string {
	t.Helper()
	request := len(w.node.Annotations[contract.AnnotationDrainRequest])
	lines := w.run(t, length)
	size := -request
	for key, value := range w.node.Annotations {
		size += len(key) + len(value)
	}
	if size > heaviest {
		t.Errorf("%d bytes of annotations", size)
	}
	if value, ok := w.node.Annotations[contract.AnnotationDrainReport]; ok {
		if _, err := contract.ParseReport(value); err != nil {
			t.Errorf("the report cannot be read: %v", err)
		}
	}
	return lines
}

// Whatever people give as a reason, the node is drained, once, and echoes no more than
// can be written; two that differ at their ends are two.
func TestLongReasons(t *testing.T) {
	long := strings.Repeat("because we say so; ", 45<<10/19)
	for _, request := range []string{
		fmt.Sprintf(`{"reason":%q}`, long),
		fmt.Sprintf(`{"reason":%q,"by":%q}`, long[:600], long[:2000]),
		fmt.Sprintf(`{"id":"x","reason":%q}`, long),
	} {
		w := newWorld()
		w.addPod(newPod("shop/web-1"))
		w.node.Annotations[contract.AnnotationDrainRequest] = request
		story := strings.Join(w.play(t, 2*time.Minute), "\n")
		if !w.node.Unschedulable || strings.Count(story, "DrainStarted") != 1 || strings.Count(story, "event: Drained") != 1 {
			t.Fatalf("%d bytes of a request: unschedulable %v, %d bytes of a story: %.300s", len(request), w.node.Unschedulable, len(story), story)
		}
		if len(request) < 40<<10 || strings.Contains(request, `"id"`) {
			continue
		}
		w.node.Annotations[contract.AnnotationDrainRequest] = strings.Replace(request, `; "}`, `!!"}`, 1)
		if story := strings.Join(w.play(t, time.Minute), "\n"); !strings.Contains(story, "request:") {
			t.Errorf("another reason is no other request: %.300s", story)
		}
	}
}

// What a webhook says of each of many pods is cut, in the report, the Events and the
// agent's persisted state.
func TestLongDenials(t *testing.T) {
	w := newWorld()
	long := strings.Repeat("the policy of the platform forbids this; ", 75)
	for i := range 110 {
		p := newPod(fmt.Sprintf("shop/web%d-1", i))
		w.addPod(p)
		uid, _ := w.find(p.Key())
		for range 3 {
			w.tries = w.tries.Send(w.now, drain.Evict{UID: uid})
			w.tries = w.tries.Learn(uid, w.now, drain.Answer{Outcome: drain.Forbidden, Message: long})
		}
		w.denied[uid] = true
		if kept := len(w.tries.Pods[uid].Message); kept > contract.MostText {
			t.Fatalf("%d bytes are kept of what is said of one pod", kept)
		}
	}
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	next := drain.Decide(w.view(), w.policy)
	for _, e := range next.Events {
		if len(e.Message) > 2*contract.MostText {
			t.Errorf("an Event %s has %d bytes", e.Reason, len(e.Message))
		}
	}
	if size := len(next.Report.String()); size > heaviest/4 {
		t.Errorf("a report has %d bytes", size)
	}
	w.play(t, time.Minute)
}

// A request that cannot be read gets one Event, also in a drain whose report has much to
// say.
func TestBadRequestInALongReport(t *testing.T) {
	w := newWorld()
	w.notices = []notice.Notice{{ID: "asg-terminate:i-1", Cause: notice.ASGTerminate, Kind: contract.KindASG, Source: notice.FromTargetState, Reason: strings.Repeat("r", 2000)}}
	for i := range 12 {
		p := newPod(fmt.Sprintf("shop/web%d-1", i))
		w.addPod(p)
		uid, _ := w.find(p.Key())
		w.denied[uid] = true
	}
	w.denial = strings.Repeat("the policy of the platform forbids this; ", 75)
	w.node.Annotations[contract.AnnotationDrainRequest] = `{"` + strings.Repeat("\x01", 4000)
	story := strings.Join(w.play(t, 2*time.Minute), "\n")
	if n := strings.Count(story, contract.EventBadRequest); n != 1 {
		t.Errorf("told %d times", n)
	}
	report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	if err != nil || !strings.Contains(report.Message, "is not valid JSON") {
		t.Errorf("the report does not say so (%v): %s", err, report.Message)
	}
}

// What the metadata service and owners call things may be of any length and number, and dates
// may be any: what the agent writes down of it can be read back, so that a drain goes on and is
// reported once.
func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	event := func(i int, id, after string) string {
		return fmt.Sprintf(`{"EventId":"%s%d","Code":"instance-stop","NotBefore":"2 Jan 2025 10:00:00 GMT","NotAfter":%q,"State":"active"}`, id, i, after)
	}
	events := func(t *testing.T, list ...string) []notice.Notice {
		notices, err := notice.ParseMaintenance(instance, "["+strings.Join(list, ",")+"]")
		if err != nil || len(notices) == 0 {
			t.Fatalf("%d notices, error %v", len(notices), err)
		}
		return notices
	}
	for name, begin := range map[string]func(*testing.T, *world){
		"an event's long id": func(t *testing.T, w *world) { w.notices = events(t, event(1, strings.Repeat("e", 600), "")) },
		"many events": func(t *testing.T, w *world) {
			var list []string
			for i := range 200 {
				list = append(list, event(i, "e", ""))
			}
			w.notices = events(t, list...)
		},
		"an end in the year 9999": func(t *testing.T, w *world) { w.notices = events(t, event(1, "e", "1 Jan 9999 10:00:00 GMT")) },
		"an owner's long name": func(t *testing.T, w *world) {
			w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
			w.returns = time.Second
			p := newPod("shop/mine-1")
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			p.Owner = &metav1.OwnerReference{Kind: "ReplicaSet", Name: strings.Repeat("o", 600), UID: "o"}
			w.addPod(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.addPod(newPod("shop/web-1"))
			begin(t, w)
			story := strings.Join(w.play(t, 20*time.Minute), "\n")
			report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
			if err != nil || report.Kind == "" {
				t.Errorf("a report of kind %q, error %v", report.Kind, err)
			}
			if _, err := contract.ParseNoticed(w.node.Annotations[contract.AnnotationNotices]); err != nil {
				t.Error(err)
			}
			for _, reason := range []string{contract.EventDrainStarted, contract.EventDrainWaiting} {
				if n := strings.Count(story, "event: "+reason); n > 1 {
					t.Errorf("%d × %s", n, reason)
				}
			}
		})
	}
}

// In a dry run pods that come have not come back: the node is open.
func TestDryRunOfNewPods(t *testing.T) {
	w := newWorld()
	w.policy.DryRun = true
	w.addPod(newPod("shop/web-1"))
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	w.run(t, 30*time.Second)
	p := newPod("shop/web-2")
	p.Created = fleet.SecondOf(w.now)
	w.addPod(p)
	w.run(t, 30*time.Second)
	said := w.node.Annotations[contract.AnnotationDryRun]
	if !strings.Contains(said, "evict 2 pods: shop/web-1, shop/web-2") || strings.Contains(said, "came to the node") {
		t.Error(said)
	}
}
