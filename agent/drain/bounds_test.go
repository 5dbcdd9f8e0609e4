package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// heaviest is the most that the agent may write on a Node: all annotations of an object
// together may have 256 KiB.
const heaviest = 48 << 10

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
// agent's memory.
func TestLongDenials(t *testing.T) {
	w := newWorld()
	long := strings.Repeat("the policy of the platform forbids this; ", 75)
	for i := range 110 {
		p := newPod(fmt.Sprintf("shop/web%d-1", i))
		w.addPod(p)
		uid, _ := w.find(p.Key())
		for range 3 {
			w.tries = w.tries.Send(drain.Evict{UID: uid}, w.now)
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

// A request that cannot be read is told of once, also in a drain whose report has much to
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
