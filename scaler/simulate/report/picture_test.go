package report_test

import (
	"testing"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// TestPicture: the picture in README is what the program draws of a day of its default run, and
// small.
func TestPicture(t *testing.T) {
	played, err := trace.Generate(trace.Mix{Seed: 1, Days: 1, Pods: 500})
	if err != nil {
		t.Fatal(err)
	}
	got, err := simulate.Run(world.Default(), played, 1, 1, []simulate.Variant{{Name: "default", Policy: policy.DefaultPolicy()}})
	if err != nil {
		t.Fatal(err)
	}
	picture := got.Picture()
	if len(picture) > 60_000 {
		t.Errorf("the picture has %d bytes", len(picture))
	}
	section.HoldFile(t, "../../../docs/simulate.svg", picture)
}
