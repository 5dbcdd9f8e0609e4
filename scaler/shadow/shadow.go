// Package shadow is Windlass without hands: it decides with its own persisted state, and what it
// decides is assumed done. Each evaluation sees the world as it would be then. Where the world goes
// another way, that is recorded, and what was assumed follows the world.
//
//	shadow.go  one evaluation: follow the world, show what is assumed, assume what is decided
//	memory.go  what is assumed, and its bounds
//	follow.go  what is assumed, after the world has gone on
//	assume.go  an action, assumed done
//	overlay.go the world with what is assumed
//	places.go  where pods would be: those of removed nodes, and those that assumed nodes are for
//	lives.go   pods that came and ended, and what groups are made of, as records
//	watch.go   what happened in the world, and the figures of both sides, as records
package shadow

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/shadow/record"
)

// Shadow is one, from its start on. It is for one goroutine.
type Shadow struct {
	// observedOnly: somebody acts on the groups that are not observed, and the world shows what comes
	// of it. Nothing is assumed of these.
	observedOnly bool

	memory Memory
	watch  watch
	lives  lives
	rules  *fit.Rules
	// now is the time of the snapshot that was seen last, world that snapshot, and shown what was
	// made of it.
	now          time.Time
	world, shown fleet.Snapshot
	// moved are pods as they were shown last, by the pod that they were made of: what has not
	// changed is the same from one evaluation to the next.
	moved map[*fleet.Pod]*fleet.Pod
	// revision rises whenever what is assumed changes.
	revision uint64
	records  []record.Record
}

// New is a shadow that goes on with what was assumed before. With observedOnly a scaler acts on all
// groups but those that are observed.
func New(m Memory, observedOnly bool) *Shadow {
	m.fill()
	return &Shadow{memory: m, observedOnly: observedOnly, rules: fit.NewRules(), moved: map[*fleet.Pod]*fleet.Pod{}, watch: newWatch(m.Placed)}
}

// See follows the world and returns it as it would be, had everything been done that was decided.
// What it returns shares with the world what is the same.
func (s *Shadow) See(world fleet.Snapshot) fleet.Snapshot {
	s.now, s.world = world.Now, world
	s.follow()
	s.shown = s.overlay()
	s.record(s.watch.see(s.world, s.shown, s.observedOnly)...)
	s.record(s.lives.see(s.world)...)
	return s.shown
}

// Revision rises whenever what is assumed changes: See shows something else then, though the world
// may be the same.
func (s *Shadow) Revision() uint64 { return s.revision }

// Wake is when time alone changes what is assumed, or a sample is due.
func (s *Shadow) Wake() time.Time {
	wake := s.watch.sampled.Add(record.SampleEvery)
	for _, g := range s.memory.Groups {
		for _, a := range g.Assumed {
			at := a.Ready
			if !s.now.Before(at) {
				at = a.At.Add(followTime)
			}
			if at.After(s.now) && at.Before(wake) {
				wake = at
			}
		}
	}
	return wake
}

// Memory is what is to be kept over a restart. It is not to be changed.
func (s *Shadow) Memory() Memory { return s.memory }

// Records are those since they were taken last.
func (s *Shadow) Records() []record.Record {
	records := s.records
	s.records = nil
	return records
}

func (s *Shadow) record(records ...record.Record) { s.records = append(s.records, records...) }

// diverged records that the world went another way.
func (s *Shadow) diverged(d record.Diverged) {
	s.revision++
	s.record(record.Record{At: s.now, Diverged: &d})
}
