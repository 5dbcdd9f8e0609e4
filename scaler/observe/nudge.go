package observe

import (
	"sync"
	"time"
)

// How long a change waits for others, so that one evaluation answers them all.
const (
	// soon is for what somebody waits for: an unschedulable pod, a report.
	soon = 10 * time.Millisecond
	// later is for what may change an answer, but never urgently.
	later = 200 * time.Millisecond
	// seldom is for what is only logged.
	seldom = 10 * time.Second
)

// nudger gathers changes. The first of a burst starts the clock; a more urgent
// one shortens it; none lengthens it.
type nudger struct {
	c chan struct{}

	mu  sync.Mutex
	due time.Time // zero while nothing is due
	t   *time.Timer
}

func newNudger() *nudger { return &nudger{c: make(chan struct{}, 1)} }

func (n *nudger) within(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := time.Now().Add(d)
	if !n.due.IsZero() && !due.Before(n.due) {
		return
	}
	if n.t != nil {
		n.t.Stop()
	}
	n.due = due
	n.t = time.AfterFunc(d, n.fire)
}

func (n *nudger) fire() {
	n.mu.Lock()
	n.due = time.Time{}
	n.mu.Unlock()
	select {
	case n.c <- struct{}{}:
	default: // one is waiting to be received already
	}
}
