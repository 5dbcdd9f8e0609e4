package main

import (
	"time"

	"windlass.dev/windlass/agent/drain"
)

// AWS dates its notices by a clock that is right, and so does the scaler its requests; who
// reads a report compares it with such a clock too. So drain.Decide is given the time of the
// metadata service, and not that of this node, where those differ (imds.Sighting.ClockAhead);
// until that service has answered, the time of the API server, which has what is judged by it.
// The loop keeps its own times by the clock of the node, because the difference may become
// known, or change, at any time: they are converted for a drain.View, and the moment at which
// to wake is converted back.

// ahead is how far this node's clock is ahead of the right one.
func (l *loop) ahead(now time.Time) time.Duration {
	if l.sighting.Dated || l.APITime == nil {
		return l.sighting.ClockAhead
	}
	return now.Sub(l.APITime()).Round(time.Second) // does not tremble
}

// rightTime is the right time, for Events: people compare them with the moments that they name.
func (l *loop) rightTime() time.Time {
	now := time.Now()
	return now.Add(-l.ahead(now))
}

// moved returns a view with every time of the loop's own moved.
func moved(v drain.View, by time.Duration) drain.View {
	if by == 0 {
		return v
	}
	for _, t := range []*time.Time{&v.Now, &v.NotYet, &v.Written, &v.Unwritable, &v.Back} {
		*t = movedTime(*t, by)
	}
	v.Stirred = movedEach(v.Stirred, func(t time.Time) time.Time { return movedTime(t, by) })
	v.Ending = movedEach(v.Ending, func(e drain.Ending) drain.Ending {
		e.Heard, e.Back = movedTime(e.Heard, by), movedTime(e.Back, by)
		return e
	})
	v.Tries.Pods = movedEach(v.Tries.Pods, func(t drain.Try) drain.Try {
		t.At, t.Left = movedTime(t.At, by), movedTime(t.Left, by)
		return t
	})
	v.Tries.Budgets = movedEach(v.Tries.Budgets, func(l drain.Limit) drain.Limit {
		l.At = movedTime(l.At, by)
		return l
	})
	return v
}

// movedEach returns a copy of a map with each value moved.
func movedEach[K comparable, V any](m map[K]V, move func(V) V) map[K]V {
	out := make(map[K]V, len(m))
	for key, value := range m {
		out[key] = move(value)
	}
	return out
}

// movedTime leaves a moment that is not known as it is.
func movedTime(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// clockPatience is how long an agent that comes up waits for the first answer of the metadata
// service, which has the time: a drain that it finds begun is not to be judged by a wrong
// clock.
const clockPatience = time.Second

// awaitsClock says until when; zero where the time is known, or taken to be.
func (l *loop) awaitsClock(now time.Time) time.Time {
	if by := l.begun.Add(clockPatience); !l.sighted && now.Before(by) {
		return by
	}
	return time.Time{}
}
