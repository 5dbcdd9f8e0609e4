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

// Next is the message that a service is owed, and when to ask again where it is owed none yet;
// zero for when something happens. Of several it is the one that changes a message, then the
// oldest.
func Next(s *Service, w Want, state happening.State, now time.Time) (Message, bool, time.Time) {
	if m, due, at := w.digestDue(s, state, now); due {
		return m, true, at
	}
	taken := map[string]bool{}
	by := map[string]happening.Happening{}
	for i := range state.Happenings {
		by[state.Happenings[i].ID] = state.Happenings[i]
	}
	again := w.nextDigest(now)
	for _, p := range s.Messages {
		for _, id := range p.Of {
			taken[id] = true
		}
		m, owed := change(p, by, w.Updates)
		if !owed {
			continue
		}
		at := w.waits(m, now)
		if at.IsZero() {
			return m, true, time.Time{}
		}
		again = soonest(again, at)
	}
	waiting := map[happening.Kind][]happening.Happening{}
	for i := range state.Happenings {
		h := &state.Happenings[i]
		if taken[h.ID] || h.Hidden {
			continue
		}
		ok, at := w.takes(h, now)
		if ok {
			waiting[h.Kind] = append(waiting[h.Kind], *h)
		}
		again = soonest(again, at)
	}
	for _, kind := range happening.Kinds {
		list := waiting[kind]
		if len(list) == 0 {
			continue
		}
		room, at := s.room(kind, now)
		switch {
		case room <= 0:
			again = soonest(again, at)
		case len(list) > room:
			return fresh(list[:min(len(list), mostInOne)]), true, time.Time{}
		default:
			return fresh(list[:1]), true, time.Time{}
		}
	}
	return Message{}, false, again
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
		first = soonest(first, p.Began.Add(window))
	}
	return room, first
}

// soonest is the earlier of two moments, where zero is none.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
