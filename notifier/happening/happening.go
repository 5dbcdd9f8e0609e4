// Package happening makes of what the API server shows what people want to be notified of: a
// fold of observed worlds into happenings, each with a beginning, phases and an end.
//
//	happening.go  the nouns: Happening, Kind, Severity, State
//	world.go      what is observed: Nodes, Events, the status page
//	fold.go       Fold: one world into the state
//	groups.go     scale-ups, failed launches: Events of groups
//	nodes.go      scale-downs and interruptions: Events of nodes, and the Nodes themselves
//	levels.go     what lasts while it is seen: blocked drains, groups at max, faults
//	cursor.go     which Events were taken in
//	bounds.go     how much is kept
//
// It decides nothing about who is sent what: that is package delivery. Fold has no clock: the
// same worlds make the same state, whatever restarts lie between them.
package happening

import (
	"slices"
	"time"
)

// Kind of a happening.
type Kind string

// Kinds of happenings.
const (
	ScaleUp      Kind = "scale-up"      // a group grows, until its nodes are Ready
	ScaleDown    Kind = "scale-down"    // nodes of a group are drained and terminated
	Interruption Kind = "interruption"  // a notice of EC2 or Auto Scaling, or a person's request
	DrainBlocked Kind = "drain-blocked" // nothing but refused evictions is left
	LaunchFailed Kind = "launch-failed" // a launch has failed, and the group backs off
	AtMax        Kind = "at-max"        // pods are pending that a group at its maximum would take
	Fault        Kind = "fault"         // something is wrong that people have to mend
)

// Kinds lists every kind.
var Kinds = []Kind{ScaleUp, ScaleDown, Interruption, DrainBlocked, LaunchFailed, AtMax, Fault}

// Severity orders happenings by how much they ask for people.
type Severity int

// Severities, the least first.
const (
	Info Severity = iota
	Warning
	Critical
)

// Severities are their names, by value.
var Severities = []string{"info", "warning", "critical"}

func (s Severity) String() string { return Severities[s] }

// Severity of a kind. A drain before an announced deadline is a warning while it lasts: see
// Happening.Severity.
var severities = map[Kind]Severity{
	ScaleUp: Info, ScaleDown: Info, Interruption: Warning, DrainBlocked: Warning, LaunchFailed: Warning, AtMax: Warning, Fault: Warning,
}

// Phase says how far a happening is.
type Phase string

// Phases. Those of nodes are in the order in which a node comes through them: it never goes
// back, whatever is seen first.
const (
	Noticed    Phase = "noticed"    // announced, and nothing is drained yet
	Draining   Phase = "draining"   // pods are asked to leave
	Drained    Phase = "drained"    // no pod is left that must be placed again
	Gone       Phase = "gone"       // the Node is deleted, and no drain of it ended
	Failed     Phase = "failed"     // the drain, or the launch, could not be done
	Cancelled  Phase = "cancelled"  // taken back
	Terminated Phase = "terminated" // the instance is being terminated

	Launching Phase = "launching" // new nodes are awaited
	Ready     Phase = "ready"     // all of them are Ready
	Overdue   Phase = "overdue"   // some were not Ready in time

	Lasting Phase = "lasting" // it is so
	Over    Phase = "over"    // it is so no more
)

// rank is how far a node is.
var rank = map[Phase]int{Noticed: 1, Draining: 2, Gone: 3, Drained: 4, Cancelled: 5, Failed: 6, Terminated: 7}

// final are the phases in which a node's story ends.
func final(kind Kind, p Phase) bool {
	return rank[p] > rank[Draining] && (kind != ScaleDown || p != Drained)
}

// Happening is one thing that people are notified of.
type Happening struct {
	// ID tells it from every other, for ever.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Subject is what of its kind it is about: at most one of a subject lasts at a time.
	Subject string `json:"subject"`
	Phase   Phase  `json:"phase"`
	// Revision rises with each change that people should see.
	Revision int `json:"revision"`
	// Began, and Ended: zero while it lasts. Last is when there was news of it.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	Last  time.Time `json:"last"`
	// Hidden: it has not lasted long enough to be worth a word. Missed is since when a level is
	// not seen any more.
	Hidden bool      `json:"hidden,omitempty"`
	Missed time.Time `json:"missed,omitzero"`

	Group string `json:"group,omitempty"`
	Zone  string `json:"zone,omitempty"`
	Node  string `json:"node,omitempty"`
	// Instance is the node's; Notice the kind of the notice, and Source where it was read.
	Instance string    `json:"instance,omitempty"`
	Notice   string    `json:"notice,omitempty"`
	NoticeID string    `json:"noticeID,omitempty"`
	Source   string    `json:"source,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// From and To are sizes of a group. Count is how many launches, failures, or Events of the
	// same it stands for.
	From  int `json:"from,omitempty"`
	To    int `json:"to,omitempty"`
	Count int `json:"count,omitempty"`
	// Pods counts the pods that it is about, For names some of them, Namespaces theirs.
	Pods       int      `json:"pods,omitempty"`
	For        []string `json:"for,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Names are the first nodes of a scale-down. Members are how far each is, by the hash of its
	// name and the request's id.
	Names   []string         `json:"names,omitempty"`
	Members map[string]Phase `json:"members,omitempty"`
	// Absent are the members that no Node shows any more, since when, in Unix seconds.
	Absent map[string]int64 `json:"absent,omitempty"`
	// Saved is what the terminated nodes cost in an hour, in US dollars; 0 where not known.
	Saved float64 `json:"saved,omitempty"`
	// BlockedBy refuse evictions. Text is the cause or the fault, in words; Until when it is
	// tried again.
	BlockedBy []string  `json:"blockedBy,omitempty"`
	Text      string    `json:"text,omitempty"`
	Until     time.Time `json:"until,omitzero"`
}

// Severity of a happening.
func (h *Happening) Severity() Severity {
	switch {
	case h.Phase == Failed && h.Kind == Interruption, h.Kind == Interruption && h.Phase == Gone:
		return Critical // pods went down with their node
	case h.Subject == trouble:
		return Critical
	case h.Phase == Overdue, h.Phase == Failed:
		return Warning
	}
	return severities[h.Kind]
}

// Over reports whether it has ended.
func (h *Happening) Over() bool { return !h.Ended.IsZero() }

// Tally counts the members of a scale-down by phase.
func (h *Happening) Tally() map[Phase]int {
	tally := map[Phase]int{}
	for _, p := range h.Members {
		tally[p]++
	}
	return tally
}

// change notes what people should see, at that time.
func (h *Happening) change(at time.Time) {
	h.Revision++
	h.touch(at)
}

func (h *Happening) touch(at time.Time) {
	if at.After(h.Last) {
		h.Last = at
	}
}

// to brings it into a phase.
func (h *Happening) to(p Phase, at time.Time) {
	if h.Phase != p {
		h.Phase = p
		h.change(at)
	}
}

// end ends it in a phase.
func (h *Happening) end(p Phase, at time.Time) {
	h.Phase, h.Ended = p, latest(at, h.Began)
	h.change(at)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// State is what outlives a restart.
type State struct {
	// Happenings, in the order in which they were seen first.
	Happenings []Happening `json:"happenings,omitempty"`
	// Cursors say which Events were taken in, by who wrote them.
	Cursors map[string]Cursor `json:"cursors,omitempty"`
	// Totals count for digests, and never fall.
	Totals Totals `json:"totals"`
	// Serial numbers what has no name of its own.
	Serial int64 `json:"serial,omitempty"`
}

// Totals are counts since the state began.
type Totals struct {
	Since      time.Time      `json:"since,omitzero"`
	Begun      map[Kind]int   `json:"begun,omitempty"`
	NodesUp    int            `json:"nodesUp,omitempty"`
	NodesDown  int            `json:"nodesDown,omitempty"`
	Saved      float64        `json:"saved,omitempty"`
	Notices    map[string]int `json:"notices,omitempty"`
	BlockedFor time.Duration  `json:"blockedFor,omitempty"`
	// Shed counts happenings for which there was no room.
	Shed int `json:"shed,omitempty"`
}

// clone shares nothing with s that Fold writes to.
func (s State) clone() State {
	s.Happenings = slices.Clone(s.Happenings)
	for i := range s.Happenings {
		h := &s.Happenings[i]
		h.Members, h.Absent = cloned(h.Members), cloned(h.Absent)
		h.Names, h.For, h.Namespaces = slices.Clip(h.Names), slices.Clip(h.For), slices.Clip(h.Namespaces)
	}
	s.Cursors = cloned(s.Cursors)
	for writer, c := range s.Cursors {
		s.Cursors[writer] = c.clone()
	}
	s.Totals.Begun, s.Totals.Notices = cloned(s.Totals.Begun), cloned(s.Totals.Notices)
	return s
}

func cloned[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// lasting finds what lasts of a subject.
func (s *State) lasting(kind Kind, subject string) *Happening {
	for i := range s.Happenings {
		if h := &s.Happenings[i]; h.Kind == kind && h.Subject == subject && !h.Over() {
			return h
		}
	}
	return nil
}

// Resume is the state of a process that begins. What was not seen at the end of the last one has
// not been missed since: nobody looked.
func (s State) Resume() State {
	s = s.clone()
	for i := range s.Happenings {
		s.Happenings[i].Missed = time.Time{}
	}
	return s
}
