package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// Keepers come and go, more of them than are remembered: each that a report names has its
// Event when it comes, none has another while it stays, and what is remembered is bounded.
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
		if n := strings.Count(story, "DrainBlocked"); n != 1 || !strings.Contains(story, "kept by shop/"+app) {
			t.Errorf("budget %d is told of %d times:\n%s", turn, n, story)
		}
		report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
		if err != nil || len(report.Told) > 21 {
			t.Fatalf("%d things are remembered as told, %v", len(report.Told), err)
		}
	}
}

// An older agent has not written down what it told, and this one does not see the pods yet.
func TestToldByAnOlderAgent(t *testing.T) {
	w := newWorld()
	w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
	w.node.Annotations[contract.AnnotationDrainReport] = contract.Report{
		Answers: []string{"request:upgrade"}, Phase: contract.PhaseBlocked, Kind: contract.KindRequest, Left: 1,
		BlockedBy: []string{"shop/web"}, Since: contract.At(start), Message: "1 pod left, kept by shop/web",
	}.String()
	w.restart()
	if story := strings.Join(w.run(t, time.Minute), "\n"); strings.Contains(story, "DrainBlocked") {
		t.Errorf("told of what it does not see:\n%s", story)
	}
}
