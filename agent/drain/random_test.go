package drain_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// TestRandom lets a node live through an hour of whatever can happen to it: pods
// come and go, budgets refuse and heal, people ask and think better of it, the
// API server is away, the agent is killed. No law is ever broken; at the end,
// with budgets that let it, a drain that is asked for ends, and without one
// nothing of ours is left and a person's cordon stands where it stood.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.node.Unschedulable = rapid.Bool().Draw(t, "cordoned by a person")
		human := w.node.Unschedulable
		story := func(line string) {
			t.Logf("%s %s", w.now.Format(time.TimeOnly), line)
			if err := w.change(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "budgets") {
			app := rapid.SampledFrom(apps).Draw(t, "app")
			story(fmt.Sprintf("budget shop/b%d %s allowed=%d heals=%ds", i, app,
				rapid.IntRange(1, 2).Draw(t, "allowed"), rapid.IntRange(1, 60).Draw(t, "heals")))
		}
		for range rapid.IntRange(1, 30).Draw(t, "turns") {
			randomTurn(t, w, story)
			w.run(t, time.Duration(rapid.IntRange(0, 90_000).Draw(t, "ms"))*time.Millisecond)
		}
		story("up")
		story("writable")
		story("hears")
		if rapid.Bool().Draw(t, "ends drained") {
			endDrained(t, w, story)
			return
		}
		endBare(t, w, human, story)
	})
}

// A failing case is printed with its seed; files would lie among the stories.
func init() { _ = flag.Set("rapid.nofailfile", "true") }

var apps = []string{"web", "db", "job"}

func randomTurn(t *rapid.T, w *world, story func(string)) {
	switch rapid.IntRange(0, 12).Draw(t, "turn") {
	case 12:
		story("budgets " + rapid.SampledFrom([]string{"hidden", "seen"}).Draw(t, "budgets"))
	case 0, 1, 2:
		app := rapid.SampledFrom(apps).Draw(t, "app")
		story(fmt.Sprintf("pod shop/%s-%d grace=%d %s", app, rapid.IntRange(1, 3).Draw(t, "n"), rapid.IntRange(0, 200).Draw(t, "grace"),
			rapid.SampledFrom([]string{"", "", "", "critical", "daemon", "mirror", "naked", "safe=false", "safe=on-completion", "ended"}).Draw(t, "what")))
	case 3:
		if len(w.notices) == 0 {
			story(fmt.Sprintf("spot in %ds", rapid.IntRange(0, 120).Draw(t, "left")))
		}
	case 4:
		if len(w.notices) == 0 {
			story("terminated")
		}
	case 5:
		story("no-notice")
	case 6:
		story("request " + rapid.SampledFrom([]string{"upgrade", "two words", `{"id":"r","kind":"scale-down"}`, `{"id":"asg-terminate:i-1","kind":"asg"}`}).Draw(t, "request"))
	case 7:
		story("no-request")
	case 8:
		story("restart")
	case 9:
		story("hears")
	case 10:
		story(rapid.SampledFrom([]string{"down", "up"}).Draw(t, "server"))
	case 11:
		story(rapid.SampledFrom([]string{"unwritable", "writable"}).Draw(t, "node"))
	}
}

// endDrained asks for a drain that overrides what pods say, and expects its end.
func endDrained(t *rapid.T, w *world, story func(string)) {
	story("no-notice")
	story("terminated")
	w.run(t, 2*time.Hour)
	report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	if err != nil {
		t.Fatalf("no report at the end: %v", err)
	}
	if report.Phase != contract.PhaseDrained || !report.AnswersTo(contract.TerminateID(instance)) {
		t.Fatalf("the drain did not end: %s", report)
	}
	if !w.node.Unschedulable {
		t.Fatalf("drained, but schedulable")
	}
}

func endBare(t *rapid.T, w *world, human bool, story func(string)) {
	story("no-notice")
	story("no-request")
	w.run(t, time.Hour)
	for _, s := range servedOf(t, w) {
		if _, metadata := notice.OfMetadata(s.ID); !metadata || !s.Withdrawn {
			t.Fatalf("remembers %+v", s)
		}
	}
	delete(w.node.Annotations, contract.AnnotationServed)
	want := "bare"
	if human {
		want = "unschedulable"
	}
	if got := describeNode(w.node); len(got) != 1 || got[0] != want {
		t.Fatalf("left on the node: %q, want %s", got, want)
	}
}

func servedOf(t *rapid.T, w *world) contract.ServedList {
	list, err := contract.ParseServed(w.node.Annotations[contract.AnnotationServed])
	if err != nil {
		t.Fatalf("%v", err)
	}
	return list
}
