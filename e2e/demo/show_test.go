package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/demo/watch"
)

// TestViewer: many changes at once are shown at once, the clock goes on where
// nothing changes, and the last state is always shown.
func TestViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.New()
		began := time.Now()
		var at []time.Duration
		var last story.State
		v := viewer{
			state: func() (s story.State) {
				w.Look(func(y *story.Story) { s = y.State(time.Now(), story.Act{}) })
				return s
			},
			changed: w.Changed,
			draw: func(s story.State) error {
				at = append(at, time.Since(began))
				last = s
				return nil
			},
			pause: 100 * time.Millisecond, clock: time.Second,
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.run(ctx) }()
		time.Sleep(50 * time.Millisecond)
		for range 5 {
			w.Told("more")
		}
		time.Sleep(1200 * time.Millisecond)
		w.Told("the last word")
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		// At the start, after the burst, a second later, and at the end (where
		// the last change and the end come together and either may be first).
		if len(at) < 4 || at[0] != 0 || at[1] != 100*time.Millisecond || at[2] != 1100*time.Millisecond {
			t.Errorf("pictures at %v, want at 0, 100ms, 1.1s and at the end", at)
		}
		if n := len(last.Feed); n == 0 || last.Feed[n-1].Text != "the last word" {
			t.Errorf("the last picture has %v, want the last word in it", last.Feed)
		}
	})
}

// TestLoggerTellsEachChangeOnce.
func TestLoggerTellsEachChangeOnce(t *testing.T) {
	var out bytes.Buffer
	draw := logger(&out)
	s := story.New(time.Time{})
	for _, desired := range []int{1, 1, 2} {
		s.GroupsSeen([]story.Group{{Name: "web", Desired: desired, Max: 3}})
		if err := draw(s.State(time.Time{}, story.Act{})); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, &out)
	}
}

func TestColourful(t *testing.T) {
	for _, c := range []struct {
		noColor, term string
		want          bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		env := map[string]string{"NO_COLOR": c.noColor, "TERM": c.term}
		if got := colourful(func(key string) string { return env[key] }); got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q: got %v, want %v", c.noColor, c.term, got, c.want)
		}
	}
}
