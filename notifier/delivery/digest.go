package delivery

import (
	"time"

	"windlass.dev/windlass/notifier/happening"
)

// Daily is a time of each day.
type Daily struct {
	At   time.Duration // since midnight
	Zone *time.Location
}

// Digest is the last one that a service was sent, and the totals that it began from.
type Digest struct {
	At     time.Time        `json:"at,omitzero"`
	Totals happening.Totals `json:"totals,omitzero"`
}

// Summary is what a digest says: what happened since the last one.
type Summary struct {
	Since, Until       time.Time
	Begun              map[happening.Kind]int
	Notices            map[string]int
	NodesUp, NodesDown int
	// Saved is what the terminated nodes cost in an hour, in US dollars.
	Saved float64
	// BlockedFor is how long drains were blocked that are not any more; Lasting what lasts.
	BlockedFor time.Duration
	Lasting    []happening.Happening
	Shed       int

	totals happening.Totals
}

// digestDue is the digest, if it is time for it.
func (w Want) digestDue(s *Service, state happening.State, now time.Time) (Message, bool, time.Time) {
	if w.Digest == nil {
		return Message{}, false, time.Time{}
	}
	due := w.last(now)
	since := s.Digest.At
	if since.IsZero() {
		since = state.Totals.Since // the first one is about the time since the notifier began
	}
	if since.IsZero() || !since.Before(due) {
		return Message{}, false, time.Time{}
	}
	return Message{Digest: summary(state, s.Digest, since, due), ended: true}, true, time.Time{}
}

// last is when the latest digest was due.
func (w Want) last(now time.Time) time.Time {
	due := at(now, 0, w.Digest.At, w.Digest.Zone)
	if due.After(now) {
		due = at(now, -1, w.Digest.At, w.Digest.Zone)
	}
	return due
}

// nextDigest is when the next one is due; zero for never.
func (w Want) nextDigest(now time.Time) time.Time {
	if w.Digest == nil {
		return time.Time{}
	}
	next := at(now, 0, w.Digest.At, w.Digest.Zone)
	if !next.After(now) {
		next = at(now, 1, w.Digest.At, w.Digest.Zone)
	}
	return next
}

func summary(state happening.State, last Digest, since, until time.Time) *Summary {
	now, was := state.Totals, last.Totals
	sum := &Summary{
		Since: since, Until: until, Begun: less(now.Begun, was.Begun), Notices: less(now.Notices, was.Notices),
		NodesUp: now.NodesUp - was.NodesUp, NodesDown: now.NodesDown - was.NodesDown, Saved: now.Saved - was.Saved,
		BlockedFor: now.BlockedFor - was.BlockedFor, Shed: now.Shed - was.Shed, totals: now,
	}
	for i := range state.Happenings {
		if h := state.Happenings[i]; !h.Over() && !h.Hidden {
			sum.Lasting = append(sum.Lasting, h)
		}
	}
	return sum
}

// less is by how much counts have risen.
func less[K comparable](now, was map[K]int) map[K]int {
	out := map[K]int{}
	for k, n := range now {
		if n > was[k] {
			out[k] = n - was[k]
		}
	}
	return out
}
