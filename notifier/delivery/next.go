package delivery

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/notifier/happening"
)

const (
	// burst is how many messages of a kind a service gets within window; what comes then waits,
	// and is one message with a count.
	burst  = 5
	window = time.Minute
	// mostInOne is how many happenings one message is about.
	mostInOne = 100
)

// owed is a message that may be sent now.
type owed struct {
	Message
	rank  int
	since time.Time
}

// Ranks of messages, the first first.
const (
	newCritical = iota
	changedCritical
	other
)

// before is the order in which messages are sent: what is critical, and then what has waited
// longest since it was sent or began. So no message that changes all the time keeps others waiting.
func (o owed) before(p owed) bool {
	return cmp.Or(o.rank-p.rank, o.since.Compare(p.since)) < 0
}

// Next is the message that a service is owed, and when to ask again where it is owed none yet;
// zero for when something happens.
func Next(s *Service, w Want, state happening.State, now time.Time) (Message, bool, time.Time) {
	again := w.nextDigest(now)
	if m, due, at := w.digestDue(s, state, now); due {
		held := s.held(now, m.keys()...)
		if held.IsZero() {
			return m, true, at
		}
		again = Soonest(again, held)
	}
	changes, at := changes(s, w, state, now)
	again = Soonest(again, at)
	begun, at := begun(s, w, state, now)
	again = Soonest(again, at)
	all := append(changes, begun...)
	if len(all) == 0 {
		return Message{}, false, again
	}
	first := all[0]
	for _, o := range all[1:] {
		if o.before(first) {
			first = o
		}
	}
	return first.Message, true, time.Time{}
}

// changes are the messages that change others, or say their end.
func changes(s *Service, w Want, state happening.State, now time.Time) (list []owed, again time.Time) {
	by := map[string]happening.Happening{}
	for i := range state.Happenings {
		by[state.Happenings[i].ID] = state.Happenings[i]
	}
	for _, p := range s.Messages {
		m, is := change(p, by, w.Updates)
		if !is {
			continue
		}
		at := w.waits(m, now)
		if at.IsZero() {
			at = s.held(now, m.keys()...)
		}
		if !at.IsZero() {
			again = Soonest(again, at)
			continue
		}
		o := owed{m, other, p.Began}
		if p.At.After(p.Began) {
			o.since = p.At
		}
		if m.Severity() == happening.Critical {
			o.rank = changedCritical
		}
		list = append(list, o)
	}
	return list, again
}

// begun are the messages about what the service has not heard of, one of each kind.
func begun(s *Service, w Want, state happening.State, now time.Time) (list []owed, again time.Time) {
	taken := map[string]bool{}
	for _, p := range s.Messages {
		for _, id := range p.Of {
			taken[id] = true
		}
	}
	waiting := map[happening.Kind][]happening.Happening{}
	for i := range state.Happenings {
		h := &state.Happenings[i]
		if taken[h.ID] || h.Hidden {
			continue
		}
		ok, at := w.takes(h, now)
		if held := s.held(now, h.ID); ok && !held.IsZero() {
			ok, at = false, held
		}
		if ok {
			waiting[h.Kind] = append(waiting[h.Kind], *h)
		}
		again = Soonest(again, at)
	}
	for kind, of := range waiting {
		room, at := s.room(kind, now)
		if room <= 0 {
			again = Soonest(again, at)
			continue
		}
		slices.SortStableFunc(of, func(a, b happening.Happening) int {
			return cmp.Or(int(b.Severity()-a.Severity()), a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
		})
		refused := func(h happening.Happening) bool { return s.Refused[h.ID].Times > 0 }
		n := 1
		if len(of) > room && !refused(of[0]) {
			of = slices.DeleteFunc(of, refused)
			n = min(len(of), mostInOne)
		}
		m := fresh(of[:n])
		o := owed{m, other, m.Of[0].Began}
		if m.Severity() == happening.Critical {
			o.rank = newCritical
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b owed) int {
		return slices.Index(happening.Kinds, a.Kind()) - slices.Index(happening.Kinds, b.Kind())
	})
	return list, again
}

// change is what a message that was sent lacks: every change where the service can change it,
// also one after the end, which a late Event may bring; else the end.
func change(p Posted, by map[string]happening.Happening, updates bool) (Message, bool) {
	changes := updates && p.Ref != ""
	if p.Ended && !changes {
		return Message{}, false
	}
	m := Message{Ref: p.Ref, number: p.Number, ended: true}
	for _, id := range p.Of {
		if h, known := by[id]; known {
			m.Of = append(m.Of, h)
			m.revision += h.Revision
			m.ended = m.ended && h.Over()
		}
	}
	if len(m.Of) == 0 {
		return Message{}, false // there is nothing left to tell
	}
	return m, m.ended && !p.Ended || changes && m.revision != p.Revision
}

func fresh(list []happening.Happening) Message {
	m := Message{Of: slices.Clone(list), ended: true}
	slices.SortStableFunc(m.Of, func(a, b happening.Happening) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	for i := range m.Of {
		m.revision += m.Of[i].Revision
		m.ended = m.ended && m.Of[i].Over()
	}
	return m
}

// room is how many messages of a kind may begin now, and when there is room again.
func (s *Service) room(kind happening.Kind, now time.Time) (int, time.Time) {
	room, first := burst, time.Time{}
	for _, p := range s.Messages {
		if p.Kind != kind || !now.Before(p.Began.Add(window)) {
			continue
		}
		room--
		first = Soonest(first, p.Began.Add(window))
	}
	return room, first
}

// Soonest is the earlier of two moments, where zero is none.
func Soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
