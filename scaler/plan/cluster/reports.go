package cluster

import (
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

// read takes what scaler, agent and people wrote on the node. A value that does not parse counts as
// absent: the agent reports a bad request to people, and a report that cannot be parsed answers
// nothing. The node's verdict names those.
func (n *Node) read() {
	if value, ok := n.Annotations[contract.AnnotationDrainRequest]; ok {
		r, err := contract.ParseRequest(value)
		n.Request, n.Requested, n.Unreadable = r, err == nil, err
	}
	if value, ok := n.Annotations[contract.AnnotationDrainReport]; ok {
		r, err := contract.ParseReport(value)
		n.Report, n.Reported = r, err == nil
		n.garble(err)
	}
	if value, told := n.Annotations[contract.AnnotationDrainNotYet]; told {
		n.NotYet, _ = contract.ParseNotYet(value) // one that cannot be parsed is none
	}
	noticed, err := contract.ParseNoticed(n.Annotations[contract.AnnotationNotices])
	n.Noticed = noticed
	n.garble(err)
	n.Mark = n.Annotations[contract.AnnotationTerminating]
}

// Answered is the report, if it is about that request or notice.
func (n *Node) Answered(id string) (contract.Report, bool) {
	if !n.Reported || !n.Report.AnswersTo(id) {
		return contract.Report{}, false
	}
	return n.Report, true
}

// garble notes that what an agent wrote on the node cannot be read.
func (n *Node) garble(err error) {
	if err != nil {
		n.Garbled = n.Garbled.Then(verdict.Quote(err.Error()))
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
