package fleet

import (
	"maps"
	"time"
)

// NotAhead returns the state with what lies ahead of now, of all since when or when last something was so, cut to
// now: it was read from a clock that has been set right since. The state itself is not changed.
func (s State) NotAhead(now time.Time) State {
	for _, dates := range []*map[string]time.Time{
		&s.Heartbeats, &s.Completed, &s.Held, &s.Pooling, &s.Outlived, &s.Suspending, &s.GrownAt, &s.ShrunkAt, &s.FailedAt,
		&s.Unjoined, &s.Deserted, &s.Awaited, &s.Returning, &s.Disputed, &s.OwnDrains, &s.Recognition.Launched, &s.Recognition.Left,
	} {
		cutDates(dates, now, func(at *time.Time) *time.Time { return at })
	}
	cutDates(&s.Launches, now, func(l *Launch) *time.Time { return &l.At })
	cutDates(&s.Promises, now, func(p *Promise) *time.Time { return &p.At })
	cutDates(&s.CutIn, now, func(c *CutIn) *time.Time { return &c.At })
	cutDates(&s.Recognition.Asked, now, func(a *Asked) *time.Time { return &a.At })
	cutDates(&s.Recognition.Ended, now, func(e *Ended) *time.Time { return &e.At })
	return s
}

// cutDates sets the dates of a map that lie ahead to now, in a copy of it.
func cutDates[V any](of *map[string]V, now time.Time, date func(*V) *time.Time) {
	copied := false
	for key, v := range *of {
		at := date(&v)
		if !at.After(now) {
			continue
		}
		if !copied {
			*of, copied = maps.Clone(*of), true
		}
		*at = now
		(*of)[key] = v
	}
}
