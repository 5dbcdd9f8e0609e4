package main

import (
	"errors"
	"time"

	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/pkg/kube"
)

// traffic is how the requests of one kind go: the reads of the Node, or the writes
// to it. One is under way at a time.
type traffic struct {
	// began is when the one under way was sent; zero while none is.
	began time.Time
	// failures in a row, and when the first of them was sent.
	failures int
	failing  time.Time
	// again is when the next may be sent after a failure.
	again time.Time
}

func (t *traffic) underWay() bool { return !t.began.IsZero() }

func (t *traffic) begin(now time.Time) { t.began = now }

// succeed and fail note how the one under way has ended.
func (t *traffic) succeed() { *t = traffic{} }

// fail makes the next try wait: not at all after a first failure that was a
// change by somebody else, and longer each time.
func (t *traffic) fail(now time.Time, err error) {
	if t.failures == 0 {
		t.failing = t.began
	}
	t.failures++
	t.began = time.Time{}
	if errors.Is(err, kube.ErrChanged) && t.failures == 1 {
		return
	}
	t.again = now.Add(evict.Pause(t.failures, err))
}

// forget is for when there is nothing to do: what failed before is no longer
// wanted.
func (t *traffic) forget() { t.failures, t.failing, t.again = 0, time.Time{}, time.Time{} }

// free reports whether one may be sent now.
func (t *traffic) free(now time.Time) bool { return !t.underWay() && !now.Before(t.again) }

// wake is when the next may be sent; zero where that is not a matter of time.
func (t *traffic) wake(now time.Time) time.Time {
	if t.underWay() || !t.again.After(now) {
		return time.Time{}
	}
	return t.again
}
