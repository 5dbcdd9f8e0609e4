package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// ReportEvery is how often the agent renews an open report, and UnresponsiveAfter how old a report's
// Renewed may be before its agent counts as gone.
const (
	ReportEvery       = 10 * time.Second
	UnresponsiveAfter = 30 * time.Second
)

// The same of a report that is Crowded, and of an agent whose pod is Ready: when many nodes drain, their
// evictions wait for what their reports take, and a write of a Node takes the API server about as long as
// two evictions. A write that is refused at once, and again, is through in time, and half of the two
// minutes of a spot instance are left where nobody is there any more.
const (
	CrowdedReportEvery       = 40 * time.Second
	CrowdedUnresponsiveAfter = 60 * time.Second
)

// Phase says how far a drain is.
type Phase string

const (
	// PhaseWaiting: the drain waits for a permit, or for pods that leave by
	// themselves. While it waits for a permit the node is open to pods, unless the
	// deadline is near.
	PhaseWaiting Phase = "Waiting"
	// PhaseDraining: pods are being evicted or are ending.
	PhaseDraining Phase = "Draining"
	// PhaseBlocked: nothing but refused evictions is left; BlockedBy names
	// what refuses them.
	PhaseBlocked Phase = "Blocked"
	// PhaseDrained: no pod is left that must be placed again.
	PhaseDrained Phase = "Drained"
	// PhaseFailed: the drain cannot be done; Message says why.
	PhaseFailed Phase = "Failed"
)

// Phases lists every phase.
var Phases = []Phase{PhaseWaiting, PhaseDraining, PhaseBlocked, PhaseDrained, PhaseFailed}

// Counted reports whether the pods have been counted: the first report of a drain may be written before
// they are listed.
func (r Report) Counted() bool { return !r.Phase.Open() || r.Left > 0 || !r.Emptied.IsZero() }

// Open reports whether the drain still goes on.
func (p Phase) Open() bool {
	return p == PhaseWaiting || p == PhaseDraining || p == PhaseBlocked
}

// Report is the value of AnnotationDrainReport.
type Report struct {
	// Answers names the notices and requests that this drain serves.
	Answers []string `json:"answers"`
	Phase   Phase    `json:"phase"`
	// Kind is the strongest kind among the notices served.
	Kind Kind `json:"kind,omitempty"`
	// Reason is why the node drains, in words.
	Reason string `json:"reason,omitempty"`
	// Left counts the pods that must still leave; see Counted.
	Left int `json:"left"`
	// BlockedBy names what refuses evictions: budgets as namespace/name, or
	// pods whose annotation forbids it.
	BlockedBy []string `json:"blockedBy,omitempty"`
	// Owners names who makes the pods that cannot leave, as KIND namespace/name.
	Owners []string `json:"owners,omitempty"`
	// Overdue names pods that are still there though they should have ended long ago, by
	// their deletion and their grace. Nobody waits for them.
	Overdue []string `json:"overdue,omitempty"`
	// Wants is the id for which the drain waits for a permit; empty where it waits
	// for none.
	Wants string `json:"wants,omitempty"`
	// PermitWait is for how many seconds the drain waits for the permit after each
	// NotYet; zero where it waits for none, or its agent does not know NotYet.
	PermitWait int `json:"permitWait,omitempty"`
	// Since is when the drain began, Renewed when the agent last wrote.
	Since   Time `json:"since,omitzero"`
	Renewed Time `json:"renewed,omitzero"`
	// Crowded: the API server has no time, and the report is renewed each CrowdedReportEvery only.
	Crowded bool `json:"crowded,omitempty"`
	// Excluded is since when the drain keeps load balancers away; zero while it waits
	// for its permit.
	Excluded Time `json:"excluded,omitzero"`
	// Emptied is since when no pod is left that needs another place; zero while one
	// is.
	Emptied Time `json:"emptied,omitzero"`
	// Deadline is the one that the agent works to; zero where there is none.
	Deadline Time `json:"deadline,omitzero"`
	// LastCalls are the last calls of the drain that have begun, the latest last.
	LastCalls LastCalls `json:"lastCalls,omitempty"`
	// Version is the agent's.
	Version string `json:"version,omitempty"`
	// Message is one sentence for people.
	Message string `json:"message,omitempty"`
	// Told lists the reasons of the Events that were written of this drain, for
	// DrainBlocked with what blocks: each is written once, however often the agent
	// starts again.
	Told []string `json:"told,omitempty"`
}

// MostLastCalls is how many last calls a report remembers.
const MostLastCalls = 8

// LastCall is when pods that came back to the node were asked once more: shortly before a
// deadline. There is one for each notice, however often its deadline is put off.
type LastCall struct {
	// ID is the notice's.
	ID       string `json:"id"`
	Deadline Time   `json:"deadline"`
}

// LastCalls are those of one drain.
type LastCalls []LastCall

// Of finds the deadline of a notice's last call; zero where it has not begun.
func (l LastCalls) Of(id string) Time {
	for _, c := range l {
		if c.ID == id {
			return c.Deadline
		}
	}
	return Time{}
}

// Add returns the calls with one for a notice, or with its deadline if that is earlier.
func (l LastCalls) Add(id string, deadline Time) LastCalls {
	l = slices.Clone(l)
	for i := range l {
		if l[i].ID == id {
			if deadline.Before(l[i].Deadline.Time) {
				l[i].Deadline = deadline
			}
			return l
		}
	}
	l = append(l, LastCall{ID: id, Deadline: deadline})
	return l[max(0, len(l)-MostLastCalls):]
}

// ParseReport reads the annotation's value. What is longer than any report of an agent is
// an error; of texts for people the rest is cut.
func ParseReport(value string) (Report, error) {
	if err := tooLong(AnnotationDrainReport, len(value), mostReport, "bytes"); err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return Report{}, notJSON(AnnotationDrainReport, value, err)
	}
	if !slices.Contains(Phases, r.Phase) {
		return Report{}, fmt.Errorf("%s has the unknown phase %s: want one of %v", AnnotationDrainReport, quoted(string(r.Phase)), Phases)
	}
	if err := r.bound(); err != nil {
		return Report{}, err
	}
	return r, nil
}

// String prints the annotation's value, with texts as ParseReport reads them.
func (r Report) String() string { return encode(r.fit()) }

// AnswersTo reports whether this report is about the notice or request id.
func (r Report) AnswersTo(id string) bool { return slices.Contains(r.Answers, id) }
