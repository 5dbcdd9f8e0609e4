// Package delivery decides which service is sent what next: a pure function of the happenings,
// of what each service was sent, and of what people want.
//
//	delivery.go  the nouns, and what was sent
//	next.go      Next: the message that a service is owed
//	routes.go    which happenings a service takes, and when it may be disturbed
//	digest.go    the daily summary
//
// What a service was sent stands in the state, so that a restart repeats at most the message that
// was in flight: it is written after each.
package delivery

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/notifier/happening"
)

// Sent is what services were sent, by the service's name.
type Sent map[string]*Service

// Service is what one was sent.
type Service struct {
	Messages []Posted `json:"messages,omitempty"`
	// Digest is the last one.
	Digest Digest `json:"digest,omitzero"`
	// Serial numbers the messages.
	Serial int `json:"serial,omitempty"`
	// Given counts messages that were given up: the service refused them.
	Given int `json:"given,omitempty"`
	// Refused are the happenings, and the digest, of messages that it refused and gets again.
	Refused map[string]Refusal `json:"refused,omitempty"`
}

// Refusal is how often, and until when it is not tried again.
type Refusal struct {
	Times int       `json:"times"`
	Until time.Time `json:"until"`
}

// Posted is one message that a service has.
type Posted struct {
	// Number tells it from every other of the service.
	Number int `json:"number"`
	// Of are the IDs of the happenings that it is about: several of one kind in a burst.
	Of   []string       `json:"of"`
	Kind happening.Kind `json:"kind"`
	// Began is when it was posted, Ref what the service calls it; empty where that cannot be
	// changed.
	Began time.Time `json:"began"`
	// At is when it was changed last.
	At  time.Time `json:"at,omitzero"`
	Ref string    `json:"ref,omitempty"`
	// Revision is the sum of those of its happenings as it was sent. Ended: so were their ends.
	Revision int  `json:"revision"`
	Ended    bool `json:"ended,omitempty"`
}

// Message is what a service is to be sent.
type Message struct {
	// Of are its happenings, the oldest first; none for a digest.
	Of []happening.Happening
	// Ref is what the service calls the message that this replaces; empty for a new one.
	Ref string
	// Digest is set for a digest.
	Digest *Summary

	number   int // of Posted; 0 for a new one
	revision int
	ended    bool
}

// Ended reports whether there is nothing to come.
func (m Message) Ended() bool { return m.ended }

// Kind of its happenings.
func (m Message) Kind() happening.Kind {
	if len(m.Of) == 0 {
		return ""
	}
	return m.Of[0].Kind
}

// Severity is the greatest of its happenings.
func (m Message) Severity() happening.Severity {
	s := happening.Info
	for i := range m.Of {
		s = max(s, m.Of[i].Severity())
	}
	return s
}

// Done notes that a message was sent, under the name that the service gave it.
func (s *Service) Done(m Message, ref string, now time.Time) {
	for _, key := range m.keys() {
		delete(s.Refused, key)
	}
	if m.Digest != nil {
		s.Digest = Digest{At: m.Digest.Until, Totals: m.Digest.totals}
		return
	}
	if m.number > 0 {
		for i := range s.Messages {
			if p := &s.Messages[i]; p.Number == m.number {
				p.Revision, p.Ended, p.At = m.revision, m.ended, now
				p.Ref = cmp.Or(ref, p.Ref)
			}
		}
		return
	}
	s.Serial++
	p := Posted{Number: s.Serial, Kind: m.Kind(), Began: now, Ref: ref, Revision: m.revision, Ended: m.ended}
	for i := range m.Of {
		p.Of = append(p.Of, m.Of[i].ID)
	}
	s.Messages = append(s.Messages, p)
}

// keys are what refusals of a message are counted by.
func (m Message) keys() []string {
	if m.Digest != nil {
		return []string{aDigest}
	}
	var keys []string
	for i := range m.Of {
		keys = append(keys, m.Of[i].ID)
	}
	return keys
}

// aDigest is the key of digests; no happening has such an ID.
const aDigest = "digest"

// Refuse notes that a message was refused, and holds it until wait has gone by, which is asked
// for the time that it is. It returns that number. What was refused together is sent one by one
// then: one of it may be the culprit.
func (s *Service) Refuse(m Message, now time.Time, wait func(times int) time.Duration) int {
	times := 0
	for _, key := range m.keys() {
		times = max(times, s.Refused[key].Times+1)
	}
	if s.Refused == nil {
		s.Refused = map[string]Refusal{}
	}
	for _, key := range m.keys() {
		s.Refused[key] = Refusal{times, now.Add(wait(times))}
	}
	return times
}

// held is until when something is not tried again; zero where it may be.
func (s *Service) held(now time.Time, keys ...string) time.Time {
	var until time.Time
	for _, key := range keys {
		if at := s.Refused[key].Until; now.Before(at) && at.After(until) {
			until = at
		}
	}
	return until
}

// GaveUp notes that a message was refused for the last time.
func (s *Service) GaveUp(m Message, now time.Time) {
	s.Given++
	s.Done(m, "", now)
}

// Told reports whether a service has heard all of a happening.
func (s *Service) Told(id string) bool {
	return slices.ContainsFunc(s.Messages, func(p Posted) bool { return p.Ended && slices.Contains(p.Of, id) })
}

// Told reports whether nobody who was told of a happening has to hear more of it.
func (s Sent) Told(id string) bool {
	some := false
	for _, service := range s {
		for _, p := range service.Messages {
			if slices.Contains(p.Of, id) {
				if !p.Ended {
					return false
				}
				some = true
			}
		}
	}
	return some
}

// Clone shares nothing with s.
func (s Sent) Clone() Sent {
	out := make(Sent, len(s))
	for name, service := range s {
		c := *service
		c.Messages, c.Refused = slices.Clone(c.Messages), maps.Clone(c.Refused)
		out[name] = &c
	}
	return out
}

// Forget drops the messages about happenings that are no more, and services that are none.
func (s Sent) Forget(state happening.State, services []string) {
	known := map[string]bool{}
	for i := range state.Happenings {
		known[state.Happenings[i].ID] = true
	}
	maps.DeleteFunc(s, func(name string, _ *Service) bool { return !slices.Contains(services, name) })
	for _, service := range s {
		maps.DeleteFunc(service.Refused, func(key string, _ Refusal) bool { return key != aDigest && !known[key] })
		service.Messages = slices.DeleteFunc(service.Messages, func(p Posted) bool {
			return !slices.ContainsFunc(p.Of, func(id string) bool { return known[id] })
		})
	}
}
