package observe

import (
	"sync"
	"time"
)

// How long a change waits for others, so that one evaluation answers them all.
const (
	// soon is for what somebody waits for: an unschedulable pod, a report.
	soon = 4 * time.Millisecond
	// later is for what may change an answer, but never urgently: at the least, and at the most, see rest.
	later, latest = 200 * time.Millisecond, 2 * time.Second
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
	// evaluation is how long the last one took.
	evaluation time.Duration
}

func newNudger() *nudger { return &nudger{c: make(chan struct{}, 1)} }

// restsPer is how much longer than an evaluation the rest after it is, where nothing is urgent, and
// churnRestsPer where nothing but pods have changed, none of which waits: in a large cluster some
// come or go at each moment, and to look at each would take a whole core.
const restsPer, churnRestsPer = 10, 50

// rest has what is never urgent wait by what an evaluation takes.
func (n *nudger) rest(evaluation time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.evaluation = evaluation
}

func (n *nudger) within(d time.Duration) { n.after(d, restsPer) }

// churn is for pods that come and go and wait for nothing.
func (n *nudger) churn() { n.after(later, churnRestsPer) }

func (n *nudger) after(d time.Duration, rests int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d >= later {
		d = max(d, min(time.Duration(rests)*n.evaluation, latest))
	}
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
