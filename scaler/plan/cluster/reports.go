package cluster

import (
	"reflect"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Heard is from when on silence counts after a last report of that time. What was reported while
// the API server was away was not read.
func (d *Cluster) Heard(last time.Time) time.Time {
	if d.Back.After(last) {
		return d.Back
	}
	return last
}

// FirstKnown is the earlier of two moments that may be unknown; zero where both are.
func FirstKnown(a, b time.Time) time.Time {
	if LatestLast(a, b) > 0 {
		return b
	}
	return a
}

func Earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Words are what scaler, agent and people wrote on a node. A value that does not parse counts as
// absent: the agent reports a bad request to people, and a report that cannot be parsed answers
// nothing. The node's verdict names those.
type Words struct {
	Requested bool
	Reported  bool
	Request   contract.Request
	Report    contract.Report
	// Unreadable is what is wrong with the request, if one stands there that cannot be parsed.
	Unreadable error
	// NotYet is what we last wrote to a drain that waits; zero without one.
	NotYet contract.NotYet
	// Noticed are the notices that the agent has written down, and Garbled is what is
	// wrong with what it wrote.
	Noticed contract.NoticedList
	Garbled verdict.Details
	// Mark is the request whose termination has begun; empty before.
	Mark string
	// OutOfService: we have marked its machine as down, and Down is the id of that instance.
	OutOfService bool
	Down         string
}

// nothing is written on most nodes, and there are thousands.
var nothing = &Words{}

func wordsOf(annotations map[string]string) *Words {
	var w Words
	if value, ok := annotations[contract.AnnotationDrainRequest]; ok {
		r, err := contract.ParseRequest(value)
		w.Request, w.Requested, w.Unreadable = r, err == nil, err
	}
	if value, ok := annotations[contract.AnnotationDrainReport]; ok {
		r, err := contract.ParseReport(value)
		w.Report, w.Reported = r, err == nil
		w.garble(err)
	}
	if value, told := annotations[contract.AnnotationDrainNotYet]; told {
		w.NotYet, _ = contract.ParseNotYet(value) // one that cannot be parsed is none
	}
	noticed, err := contract.ParseNoticed(annotations[contract.AnnotationNotices])
	w.Noticed = noticed
	w.garble(err)
	w.Mark = annotations[contract.AnnotationTerminating]
	w.Down, w.OutOfService = annotations[contract.AnnotationOutOfService]
	if reflect.ValueOf(w).IsZero() {
		return nothing
	}
	return &w
}

// Answered is the report, if it is about that request or notice.
func (n *Node) Answered(id string) (contract.Report, bool) {
	if !n.Reported || !n.Report.AnswersTo(id) {
		return contract.Report{}, false
	}
	return n.Report, true
}

// garble notes that what an agent wrote on the node cannot be read.
func (w *Words) garble(err error) {
	if err != nil {
		w.Garbled = w.Garbled.Then(verdict.Quote(err.Error()))
	}
}

// Draining is why the node drains, in the strongest word that is known.
func (n *Node) Draining() contract.Kind { return n.DrainingBy(n.Report) }

// DrainingBy is the same where that report is what is known of the agent.
func (n *Node) DrainingBy(report contract.Report) contract.Kind {
	taint, _ := contract.Draining(n.Taints)
	kind := taint
	for _, k := range []contract.Kind{n.Request.Kind, report.Kind} {
		if k.Strength() > kind.Strength() {
			kind = k
		}
	}
	return kind
}

// Stale reports whether the agent should have renewed its report by now.
func (d *Cluster) Stale(r contract.Report) bool {
	if !r.Phase.Open() {
		return false
	}
	end := d.Heard(r.Renewed.Time).Add(contract.UnresponsiveAfter)
	if d.Now.Before(end) {
		d.Clock.At(end)
		return false
	}
	return true
}

// Progress is how far the drain for that id is, for a verdict.
func (n *Node) Progress(id string) verdict.Details { return verdict.Progress(n.Answered(id)) }
