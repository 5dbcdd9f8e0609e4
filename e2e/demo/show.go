package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"windlass.dev/windlass/e2e/demo/screen"
	"windlass.dev/windlass/e2e/demo/story"
)

// viewer shows the states of a world, one after the other.
type viewer struct {
	// state is that of now, changed is closed when it is another.
	state   func() story.State
	changed func() <-chan struct{}
	// draw shows a state.
	draw func(story.State) error
	// pause is the least time between two states; clock, if not 0, the most.
	pause, clock time.Duration
}

// run shows states until ctx ends, and then the last one.
func (v viewer) run(ctx context.Context) error {
	for {
		changed := v.changed()
		if err := v.draw(v.state()); err != nil {
			return fmt.Errorf("showing the demo: %w", err)
		}
		if !sleep(ctx, v.pause) || !v.wait(ctx, changed) {
			return v.draw(v.state())
		}
	}
}

// wait returns at the next change, or when the clock must go on; false when
// ctx ended.
func (v viewer) wait(ctx context.Context, changed <-chan struct{}) bool {
	var tick <-chan time.Time
	if v.clock > 0 {
		t := time.NewTimer(v.clock - v.pause)
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-changed:
		return true
	case <-tick:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// logger draws a state as the lines that tell what changed.
func logger(out io.Writer) func(story.State) error {
	var last story.State
	return func(s story.State) error {
		for _, line := range screen.Changes(last, s) {
			if _, err := fmt.Fprintln(out, line); err != nil {
				return err
			}
		}
		last = s
		return nil
	}
}

// colourful reports whether colours are wanted: https://no-color.org
func colourful(env func(string) string) bool {
	return env("NO_COLOR") == "" && env("TERM") != "dumb"
}
