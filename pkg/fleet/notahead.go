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
	cutDates(&s.StandIns, now, func(d *LoneDrain) *time.Time { return &d.Excluded })
	cutDates(&s.StandIns, now, func(d *LoneDrain) *time.Time { return &d.Emptied })
	for node, d := range s.StandIns {
		asked := cutDates(&d.Evicted, now, func(e *LoneEviction) *time.Time { return &e.At })
		left := cutDates(&d.Evicted, now, func(e *LoneEviction) *time.Time { return &e.Left })
		if asked || left {
			s.StandIns = maps.Clone(s.StandIns)
			s.StandIns[node] = d
		}
	}
	if r := s.Replacement; r != nil && (r.Found.After(now) || r.Launched.After(now)) {
		cut := *r
		cut.Until = cut.Until.Add(-max(0, r.Launched.Sub(now)))
		for _, at := range []*time.Time{&cut.Found, &cut.Launched} {
			if at.After(now) {
				*at = now
			}
		}
		s.Replacement = &cut
	}
	return s
}

// cutDates sets the dates of a map that lie ahead to now, in a copy of it; it says whether there are any.
func cutDates[V any](of *map[string]V, now time.Time, date func(*V) *time.Time) (copied bool) {
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
	return copied
}
