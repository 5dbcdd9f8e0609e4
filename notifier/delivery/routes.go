package delivery

import (
	"path"
	"slices"
	"time"

	"windlass.dev/windlass/notifier/happening"
)

// Want is what a service is to be sent.
type Want struct {
	// Updates: what was posted can be changed.
	Updates bool
	// Routes lead to the service. A happening takes any that fits.
	Routes []Route
	// Digest is when it gets the daily summary; nil for never.
	Digest *Daily
}

// Route says which happenings it leads on. What is empty fits all.
type Route struct {
	Kinds      []happening.Kind
	Groups     []string // patterns, as path.Match has them
	Namespaces []string // likewise
	// Severity is the least.
	Severity happening.Severity
	// Quiet is when only what is critical is sent; the rest waits.
	Quiet *Hours
}

// Hours of each day, which may go over midnight.
type Hours struct {
	From, To time.Duration // since midnight
	Zone     *time.Location
}

// takes reports whether a service is to be sent a happening now, and when it may if it is not
// the time.
func (w Want) takes(h *happening.Happening, now time.Time) (bool, time.Time) {
	var again time.Time
	for _, r := range w.Routes {
		if !r.fits(h) {
			continue
		}
		end, quiet := r.Quiet.end(now)
		if !quiet || h.Severity() >= happening.Critical {
			return true, time.Time{}
		}
		again = Soonest(again, end)
	}
	return false, again
}

// waits is until when quiet hours hold an end that is a message of its own; zero where they do
// not. One that changes a message disturbs nobody.
func (w Want) waits(m Message, now time.Time) time.Time {
	var until time.Time
	if m.Ref != "" {
		return until
	}
	for i := range m.Of {
		ok, at := w.takes(&m.Of[i], now)
		if ok {
			return time.Time{}
		}
		until = Soonest(until, at)
	}
	return until
}

// Fits reports whether any route leads a happening to the service, at whatever time.
func (w Want) Fits(h *happening.Happening) bool {
	return slices.ContainsFunc(w.Routes, func(r Route) bool { return r.fits(h) })
}

func (r Route) fits(h *happening.Happening) bool {
	return (len(r.Kinds) == 0 || slices.Contains(r.Kinds, h.Kind)) &&
		h.Severity() >= r.Severity &&
		matches(r.Groups, []string{h.Group}) && matches(r.Namespaces, h.Namespaces)
}

// matches reports whether any pattern matches any name. They were tried when they were read.
func matches(patterns, names []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			ok, _ := path.Match(p, name)
			return ok
		})
	})
}

// end is when the quiet hours are over, if it is quiet now.
func (q *Hours) end(now time.Time) (time.Time, bool) {
	if q == nil || q.From == q.To {
		return time.Time{}, false
	}
	for _, day := range []int{-1, 0} {
		from, to := at(now, day, q.From, q.Zone), at(now, day, q.To, q.Zone)
		if q.To < q.From {
			to = at(now, day+1, q.To, q.Zone)
		}
		if !now.Before(from) && now.Before(to) {
			return to, true
		}
	}
	return time.Time{}, false
}

// at is a time of day, so many days from now, by the clock on the wall.
func at(now time.Time, days int, since time.Duration, zone *time.Location) time.Time {
	year, month, day := now.In(zone).Date()
	return time.Date(year, month, day+days, 0, int(since/time.Minute), 0, 0, zone)
}
