package main

import (
	"math/rand/v2"
	"time"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// overrides are the Events about pods whose own word, or whose budget's, was
// overruled. There may be one for each pod, and each is a write of the API server
// as an eviction is. They are not urgent, so they take a tenth of its time: they
// come when the evictions of this node are through, each after nine times what an
// eviction took.
type overrides struct {
	waiting []kube.Event
	// next is when the next one may be recorded, and pause what passes between two.
	next  time.Time
	pause time.Duration
}

const (
	// leastWait and mostWait bound the time between two of them.
	leastWait, mostWait = time.Second, 30 * time.Second
	// overrideSpread parts the nodes that are through at one moment.
	overrideSpread = 5 * time.Second
)

// noteOverride keeps the Event that a step deserves which was carried out.
func (l *loop) noteOverride(step drain.Evict) {
	message := step.Override()
	if message == "" {
		return
	}
	l.overrides.waiting = append(l.overrides.waiting, kube.Event{
		Object:  kube.PodReference(step.Namespace, step.Name, string(step.UID)),
		Warning: true,
		Reason:  contract.EventEvictionForced,
		Message: message,
		At:      l.rightTime(),
	})
}

// tellOverride records the next one if it is time for that, and returns when to ask
// again; zero where the end of an eviction is waited for, or nothing.
func (l *loop) tellOverride(now time.Time) time.Time {
	o := &l.overrides
	if l.drain != nil && l.drain.pace.busy() {
		o.pause = min(max(leastWait, 9*l.drain.pace.took), mostWait)
		o.next = now.Add(rand.N(overrideSpread))
		return time.Time{}
	}
	if len(o.waiting) > 0 && !now.Before(o.next) {
		l.Tell(o.waiting[0])
		o.waiting, o.next = o.waiting[1:], now.Add(o.pause)
	}
	if len(o.waiting) == 0 {
		o.waiting = nil
		return time.Time{}
	}
	return o.next
}

// tellOverrides records all that wait, because there is no later.
func (l *loop) tellOverrides() {
	for _, e := range l.overrides.waiting {
		l.Tell(e)
	}
	l.overrides.waiting = nil
}
