package report

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRank: a run is marked if there is none that is no worse in dollars and evictions and better
// in one; runs come by dollars, and those of equal figures are marked alike.
func TestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Report
		seeds := rapid.IntRange(1, 2).Draw(t, "seeds")
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			var run Run
			for range seeds { // few values, so that some are equal
				run.BySeed = append(run.BySeed, float64(rapid.IntRange(1, 6).Draw(t, "dollars")))
				run.EvictionRates = append(run.EvictionRates, float64(rapid.IntRange(0, 5).Draw(t, "evictions")))
			}
			r.Runs = append(r.Runs, run)
		}
		r.Rank([]string{"expander"})
		for i, run := range r.Runs {
			want := true
			for _, other := range r.Runs {
				a, b := other.mean(), run.mean()
				c, d := other.evictionRate(), run.evictionRate()
				if a <= b && c <= d && (a < b || c < d) {
					want = false
				}
			}
			if run.Unbeaten != want {
				t.Fatalf("run %d of %v: unbeaten %v", i, r.Runs, run.Unbeaten)
			}
			if i > 0 && r.Runs[i-1].mean() > run.mean() {
				t.Fatalf("run %d costs less than the one before: %v", i, r.Runs)
			}
		}
		var table strings.Builder
		if err := r.Table(&table); err != nil {
			t.Fatal(err)
		}
		if page := r.Page(); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Fatalf("coordinates of the page: %s", page)
		}
	})
}
