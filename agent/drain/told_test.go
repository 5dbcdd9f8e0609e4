package drain_test

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Keepers come and go, more of them than a report lists: each that a report names has its Event
// when it comes, none has another while it stays, and the list is bounded.
func TestToldIsBounded(t *testing.T) {
	w := newWorld()
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	for turn := range 60 {
		app := fmt.Sprintf("app%02d", turn)
		w.budgets["shop/"+app] = &budget{app: app}
		w.addPod(newPod("shop/" + app + "-1"))
		if turn >= 5 { // of six keepers the oldest goes
			w.budgets[fmt.Sprintf("shop/app%02d", turn-5)].allowed = 1
		}
		story := strings.Join(w.run(t, time.Minute), "\n")
		if n := strings.Count(story, "DrainBlocked"); n != 1 || !strings.Contains(story, "blocked by shop/"+app) {
			t.Errorf("budget %d is told of %d times:\n%s", turn, n, story)
		}
		report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
		if err != nil || len(report.Told) > 21 {
			t.Fatalf("%d things are remembered as told, %v", len(report.Told), err)
		}
	}
}

// An older agent has not listed the Events that it wrote, and this one does not see the pods yet.
func TestToldByAnOlderAgent(t *testing.T) {
	w := newWorld()
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	w.node.Annotations[contract.AnnotationDrainReport] = contract.Report{
		Answers: []string{"request:upgrade"}, Phase: contract.PhaseBlocked, Kind: contract.KindRequest, Left: 1,
		BlockedBy: []string{"shop/web"}, Since: contract.At(start), Message: "1 pod left, blocked by shop/web",
	}.String()
	w.restart()
	if story := strings.Join(w.run(t, time.Minute), "\n"); strings.Contains(story, "DrainBlocked") {
		t.Errorf("told of what it does not see:\n%s", story)
	}
}

// However many owners' pods come back, few Events report it: each of as many more as all
// before.
func TestToldOfManyReturns(t *testing.T) {
	for _, owners := range []int{1, 3, 10, 40} {
		w := newWorld()
		w.returns = 20 * time.Second
		w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
		for i := range owners {
			p := newPod(fmt.Sprintf("shop/app%03d-1", i))
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			grace := int64(1 + 3*i%50)
			p.Spec.TerminationGracePeriodSeconds, w.afterEnd = &grace, true
			w.addPod(p)
		}
		story := strings.Join(w.run(t, 10*time.Minute), "\n")
		n := strings.Count(story, "event: ! "+contract.EventDrainBlocked)
		if n < 1 || n > bits.Len(uint(owners)) {
			t.Errorf("pods of %d owners: told of %d times", owners, n)
		}
		report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
		if err != nil || owners > 3 && !strings.HasSuffix(report.Message, " more") {
			t.Errorf("the report says %q, error %v", report.Message, err)
		}
	}
}

// A node that waits for its turn takes pods: one that came this second has not come back, and
// nothing is said of what keeps it.
func TestNewPodWhereADrainWaits(t *testing.T) {
	w := newWorld()
	for _, line := range []string{"policy permit 5m", "notice instance-stop:a in 48h"} {
		if err := w.change(line); err != nil {
			t.Fatal(err)
		}
	}
	p := newPod("shop/web-1")
	p.Created = fleet.SecondOf(w.now)
	w.addPod(p)
	story := strings.Join(w.run(t, 2*time.Second), "\n")
	report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	if err != nil || report.Phase != contract.PhaseWaiting || report.Wants == "" {
		t.Fatalf("the drain does not wait for its turn: %v, error %v", report, err)
	}
	if strings.Contains(story, contract.EventDrainBlocked) || strings.Contains(strings.Join(report.Told, " "), contract.EventDrainBlocked) {
		t.Errorf("told of a pod that came back: %s\n%s", report.Told, story)
	}
}

// A pod may have ended before the answer to its eviction is there: who made it is known all the
// same, and that its successor is to come.
func TestAnswerAfterThePodIsGone(t *testing.T) {
	tries := drain.Tries{}.Send(start, drain.Evict{UID: "a", Maker: "pods of web"})
	gone := func(types.UID) bool { return false }
	tries = tries.Only(gone, start.Add(time.Second)).Learn("a", start.Add(2*time.Second), drain.Answer{Outcome: drain.Accepted}).Only(gone, start.Add(3*time.Second))
	if try := tries.Pods["a"]; try.Maker != "pods of web" || !try.Left.Equal(start.Add(3*time.Second)) {
		t.Errorf("known is %+v", try)
	}
	if tries = tries.Only(gone, start.Add(time.Hour)); len(tries.Pods) > 0 {
		t.Errorf("%d are known after an hour", len(tries.Pods))
	}
}

// Where pods stay beyond their time one after the other, as they all seem to where a loaded server's
// watch is late, the Node is written no more often than a report is renewed, and each that the
// report has room for is in it then.
func TestOverdueOneAfterTheOther(t *testing.T) {
	const pods = 20
	w := newWorld()
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	for i := range pods {
		p := newPod(fmt.Sprintf("shop/app%02d-1", i))
		grace := int64(2 * i)
		p.Spec.TerminationGracePeriodSeconds = &grace
		w.stuck[w.addPod(p)] = true
	}
	writes, told, phase := 0, 0, contract.Phase("")
	var last time.Time
	for w.now.Before(start.Add(3 * time.Minute)) {
		before := w.node.Annotations[contract.AnnotationDrainReport]
		told += strings.Count(strings.Join(w.run(t, time.Second), "\n"), contract.EventPodOverdue)
		after := w.node.Annotations[contract.AnnotationDrainReport]
		for _, pod := range w.pods {
			long := !pod.Deleted.IsZero() && w.now.Sub(pod.Deleted.Time()) > drainable.Overtime+contract.ReportEvery+time.Second
			if long && !strings.Contains(after, pod.Key()) && strings.Count(after, contract.EventPodOverdue) < 10 {
				t.Errorf("%s after its time %s is not reported", w.now.Sub(pod.Deleted.Time())-drainable.Overtime, pod.Key())
			}
		}
		if before == after {
			continue
		}
		writes++
		report, err := contract.ParseReport(after)
		if err != nil {
			t.Fatal(err)
		}
		if report.Phase == phase && report.Left > 0 && w.now.Sub(last) < contract.ReportEvery-time.Second {
			t.Errorf("written again after %s: %s", w.now.Sub(last), report.Message)
		}
		phase, last = report.Phase, w.now
	}
	report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	if err != nil || report.Phase != contract.PhaseDrained || len(report.Overdue) != 10 {
		t.Errorf("it ends with %+v, error %v", report, err)
	}
	if told == 0 || told > 5 || writes > 12 {
		t.Errorf("%d Events tell of them, and %d reports", told, writes)
	}
}

// An Event about a pod beyond its time is recorded once, though the Node is written for other reasons
// before the report is renewed.
func TestOverdueBesideOtherWrites(t *testing.T) {
	w := newWorld()
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	for i := range 2 {
		p, grace := newPod(fmt.Sprintf("shop/app-%d", i)), int64(20*i+5)
		p.Spec.TerminationGracePeriodSeconds = &grace
		w.stuck[w.addPod(p)] = true
	}
	w.denied = map[types.UID]bool{w.addPod(newPod("shop/kept")): true}
	told := 0
	for range 120 {
		told += strings.Count(strings.Join(w.run(t, time.Second), "\n"), contract.EventPodOverdue)
		w.node.Taints = nil // somebody takes it off, again and again
	}
	if told != 2 {
		t.Errorf("%d Events tell of two pods", told)
	}
}

// A pod of whose deletion we heard late is not stuck before its kubelet had its time.
func TestOverdueHeardOfLate(t *testing.T) {
	w := newWorld()
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	p, grace := newPod("shop/app"), int64(5)
	p.Spec.TerminationGracePeriodSeconds = &grace
	uid := w.addPod(p)
	w.stuck[uid] = true
	w.run(t, time.Second)
	const late = 20 * time.Second
	w.ending = map[types.UID]drain.Ending{uid: {Asked: w.now, Heard: w.now.Add(late)}}
	usual := 5*time.Second + drainable.Overtime
	if lines := strings.Join(w.run(t, usual+late-2*time.Second), "\n"); strings.Contains(lines, contract.EventPodOverdue) {
		t.Errorf("it is stuck too soon:\n%s", lines)
	}
	if lines := strings.Join(w.run(t, 2*time.Second+contract.ReportEvery), "\n"); !strings.Contains(lines, contract.EventPodOverdue) {
		t.Errorf("it is not stuck in the end:\n%s", lines)
	}
}
