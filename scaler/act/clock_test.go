package act

import (
	"errors"
	"testing"
	"time"

	"windlass.dev/windlass/scaler/plan/action"
)

// A back-off ends where the clock was set back: none is longer than the longest.
func TestBackOffsEndThoughTheClockIsSetBack(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	a := &Actor{}
	beat := action.Heartbeat{Group: "web", Hook: "windlass", Instance: "i-1"}
	a.backOffs.note(beat, Result{Action: beat, Outcome: Failed, Err: errors.New("no answer"), Ended: now.Add(time.Hour)})
	if _, runs := a.backOffs.runs(beat, now.Add(time.Hour)); !runs {
		t.Error("what failed is tried again at once")
	}
	if _, runs := a.backOffs.runs(beat, now); runs {
		t.Error("an hour before it failed it is not tried")
	}
	if due := a.Due(now); !due.IsZero() {
		t.Errorf("a back-off is awaited until %s", due)
	}
}
