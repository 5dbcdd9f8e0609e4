package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/simulate/report"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

func generated(t interface{ Fatal(...any) }, seed uint64, days float64, pods int) trace.Trace {
	out, err := trace.Generate(trace.Mix{Seed: seed, Days: days, Pods: pods})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// everything is a report to the last byte.
func everything(t *testing.T, r report.Report) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + r.Page()
}

// TestDeterminism: two runs of one seed are equal to the byte, with failures and interruptions;
// another seed is another time.
func TestDeterminism(t *testing.T) {
	spec := world.Default()
	spec.LaunchFailures, spec.Interruptions = 0.1, 0.2
	for i := range spec.Groups {
		spec.Groups[i].Spot = i%2 == 0
	}
	play := func(seed uint64) string {
		got, err := Run(spec, generated(t, 1, 0.3, 60), seed, 2, policies())
		if err != nil {
			t.Fatal(err)
		}
		return everything(t, got)
	}
	first := play(1)
	if second := play(1); first != second {
		t.Errorf("two runs of one seed (-first +second):\n%s", cmp.Diff(first, second))
	}
	if first == play(2) {
		t.Error("two seeds give the same")
	}
}

// TestBoundLaws: in random worlds in which every launch comes, the bill is never below the
// bound, at no moment, and neither is packing anew.
func TestBoundLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		variant := rapid.SampledFrom(policies()).Draw(t, "policy")
		pods := rapid.IntRange(1, 40).Draw(t, "pods")
		spec := world.Default()
		spec.Groups = spec.Groups[rapid.IntRange(0, 3).Draw(t, "first group"):]
		spec.Scheduler.PodTopologySpread = int64(rapid.IntRange(0, 2).Draw(t, "spread"))
		got, err := Run(spec, generated(t, seed, 0.15, pods), seed, 1, []Variant{variant})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range got.Runs[0].Samples {
			slack := 1e-9 * (1 + s.Dollars)
			if s.Dollars < got.Bound[i]-slack {
				t.Fatalf("after %d s the bill is $%v, less than the bound of $%v", s.At, s.Dollars, got.Bound[i])
			}
		}
		last := len(got.Bound) - 1
		if r := got.Runs[0]; math.Abs(r.Bound-got.Bound[last]) > 1e-9 || r.Dollars > 0 && r.NodeHours <= 0 {
			t.Fatalf("a bound of %v and %v node-hours for $%v", r.Bound, r.NodeHours, r.Dollars)
		}
	})
}

// TestSideBySide: all is done, each once, and no more of it at once than may be.
func TestSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts sync.Mutex
		running, most := 0, 0
		done := make([]int, 7)
		began := time.Now()
		sideBySide(len(done), 3, func(i int) {
			counts.Lock()
			running++
			most = max(most, running)
			counts.Unlock()
			time.Sleep(time.Second)
			counts.Lock()
			running--
			done[i]++
			counts.Unlock()
		})
		if diff := cmp.Diff([]int{1, 1, 1, 1, 1, 1, 1}, done); diff != "" || most != 3 || time.Since(began) != 3*time.Second {
			t.Errorf("%d at once, %s; done (-want +got):\n%s", most, time.Since(began), diff)
		}
	})
}

// BenchmarkDay is a generated day.
func BenchmarkDay(b *testing.B) {
	for _, pods := range []int{100, 500, 2000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			played := generated(b, 1, 1, pods)
			for b.Loop() {
				if _, err := Run(world.Default(), played, 1, 1, policies()[:1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
