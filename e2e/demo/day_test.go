package main

import (
	"os"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/demo/play"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestDay plays the whole day on a real control plane, without the pauses that
// a viewer needs: what make demo shows comes true.
func TestDay(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	acts := play.Day()
	for i := range acts {
		acts[i].Lasts = 0
	}
	err := inWorld(t.Context(), t.TempDir(), daySpec(), os.Stderr, func(w *world.World) error {
		s, stop, err := watched(t.Context(), w)
		if err != nil {
			return err
		}
		defer stop()
		if err := play.Run(t.Context(), s, acts); err != nil {
			return err
		}
		s.Look(func(y *story.Story) {
			for _, fault := range y.Summary(time.Now()).Faults {
				t.Error(fault)
			}
			for _, g := range y.State(time.Now(), story.Act{}).Groups {
				if g.Verdict == verdict.GroupHookMisconfigured {
					t.Errorf("group %s is not set up as the docs advise", g.Name)
				}
			}
		})
		for _, crash := range crashes(w.Exits()) {
			t.Error(crash)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
