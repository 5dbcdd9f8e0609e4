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
		&s.Unjoined, &s.Deserted, &s.Awaited, &s.Returning, &s.Disputed, &s.OwnDrains,
	} {
		if !anyAfter(*dates, now) {
			continue
		}
		*dates = maps.Clone(*dates)
		for key, at := range *dates {
			if at.After(now) {
				(*dates)[key] = now
			}
		}
	}
	return s
}

func anyAfter(dates map[string]time.Time, now time.Time) bool {
	for _, at := range dates {
		if at.After(now) {
			return true
		}
	}
	return false
}
