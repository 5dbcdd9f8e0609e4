package main

import (
	"time"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// overrides are the Events about pods whose own word, or whose budget's, was
// overruled. There may be one for each pod, and each is a write of the API server
// as an eviction is: they wait until the evictions are through.
type overrides struct {
	waiting []kube.Event
	// next is when the next one may be told.
	next time.Time
}

// overridePause is the time between two of them, and crowdedPause where the API
// server had no time for us.
const overridePause, crowdedPause = 200 * time.Millisecond, time.Second

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
	})
}

// tellOverride tells the next one if it is time for that, and returns when to ask
// again; zero where the end of an eviction is waited for, or nothing.
func (l *loop) tellOverride(now time.Time) time.Time {
	o, pause := &l.overrides, overridePause
	if d := l.drain; d != nil {
		if d.pace.busy() {
			return time.Time{}
		}
		if d.pace.crowded {
			pause = crowdedPause
		}
	}
	if len(o.waiting) > 0 && !now.Before(o.next) {
		l.Tell(o.waiting[0])
		o.waiting, o.next = o.waiting[1:], now.Add(pause)
	}
	if len(o.waiting) == 0 {
		o.waiting = nil
		return time.Time{}
	}
	return o.next
}

// tellOverrides tells all that wait, because there is no later.
func (l *loop) tellOverrides() {
	for _, e := range l.overrides.waiting {
		l.Tell(e)
	}
	l.overrides.waiting = nil
}
