package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Decide says what to do now. A notice that stands is a drain that goes on,
// whoever began it; where none stands, whatever an earlier drain of ours left
// on the Node is taken away.
func Decide(v View, p Policy) Next {
	if v.Node == nil {
		return Next{}
	}
	d := look(v, p)
	if len(d.notices) == 0 {
		return d.settle()
	}
	return d.drain()
}

// decision is one run of Decide.
type decision struct {
	View
	policy Policy

	// old is the report on the Node; nil where there is none, or none that can
	// be read.
	old    *contract.Report
	served contract.ServedList
	// standing are the notices that stand, the strongest first; notices are those
	// of them to drain for.
	standing []notice.Notice
	notices  []notice.Notice
	// bad is why the drain request cannot be read, nil where it can.
	bad error

	// want is what the Node shall be.
	want   fleet.Node
	events []Event
	wake   time.Time
}

func look(v View, p Policy) *decision {
	d := &decision{View: v, policy: p, want: cloneNode(*v.Node)}
	if report, err := contract.ParseReport(v.Node.Annotations[contract.AnnotationDrainReport]); err == nil {
		d.old = &report
	}
	// What cannot be read is not remembered; it is overwritten by the next entry.
	d.served, _ = contract.ParseServed(v.Node.Annotations[contract.AnnotationServed])
	d.standing = d.listStanding()
	for _, n := range d.standing {
		if d.begins(n) {
			d.notices = append(d.notices, n)
		}
	}
	return d
}

// listStanding finds every notice that stands, wherever it is written.
func (d *decision) listStanding() []notice.Notice {
	all := slices.Clone(d.Notices)
	if value, ok := d.Node.Annotations[contract.AnnotationDrainRequest]; ok {
		request, err := notice.ParseRequest(value)
		if err == nil {
			all = append(all, request)
		}
		d.bad = err
	}
	all = append(all, d.remembered()...)
	if n, ok := d.terminating(all); ok {
		all = append(all, n)
	}
	return notice.Standing(all...)
}

// remembered are notices that the metadata gave to an agent before this one:
// they stand until the metadata are heard to say otherwise.
func (d *decision) remembered() []notice.Notice {
	if d.Heard {
		return nil
	}
	var out []notice.Notice
	for _, id := range d.underWay() {
		if cause, ok := notice.OfMetadata(id); ok {
			n := notice.Notice{ID: id, Cause: cause, Kind: cause.Kind()}
			if d.old != nil {
				n.Reason, n.Deadline = d.old.Reason, d.old.Deadline.Time
			}
			out = append(out, n)
		}
	}
	return out
}

// underWay lists the ids that the drain on the Node is for.
func (d *decision) underWay() []string {
	var ids []string
	if d.old != nil {
		ids = append(ids, d.old.Answers...)
	}
	if value, ok := d.Node.Annotations[contract.AnnotationCordonedBy]; ok {
		if mark, err := contract.ParseCordon(value); err == nil && mark.Notice != "" {
			ids = append(ids, mark.Notice)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// terminating makes a notice of the mark of no return, so that such a drain
// goes on even if its request is gone. Its own notice, if it stands, says more.
func (d *decision) terminating(standing []notice.Notice) (notice.Notice, bool) {
	id, marked := d.Node.Annotations[contract.AnnotationTerminating]
	stands := slices.ContainsFunc(standing, func(n notice.Notice) bool { return n.ID == id })
	if !marked || stands {
		return notice.Notice{}, false
	}
	n := notice.Notice{ID: id, Cause: notice.Request, Kind: contract.KindScaleDown, Source: notice.FromRequest, Reason: "the instance is being terminated"}
	if kind, ok := contract.Draining(d.Node.Taints); ok && kind.Strength() > 0 {
		n.Kind = kind
	}
	if d.old != nil && d.old.AnswersTo(id) {
		n.Deadline = d.old.Deadline.Time
	}
	return n, true
}

// begins says whether a standing notice is one to drain for: unless it was
// served already and its drain is over.
func (d *decision) begins(n notice.Notice) bool {
	served, ok := d.served.Find(n.ID)
	if !ok || served.Withdrawn || n.Kind.Strength() > served.Kind.Strength() {
		return true
	}
	if d.Node.Annotations[contract.AnnotationTerminating] == n.ID {
		return true
	}
	return slices.Contains(d.underWay(), n.ID)
}

// settle takes away what a drain of ours left, and nothing else.
func (d *decision) settle() Next {
	d.undo()
	var report *contract.Report
	if d.bad != nil {
		report = d.refuseRequest()
	}
	next := Next{Report: report}
	d.write(&next)
	return next
}

func (d *decision) undo() {
	undone := d.restore()
	d.forget()
	if d.old != nil && d.old.Phase != contract.PhaseFailed || undone {
		d.events = append(d.events, Event{
			Reason:  contract.EventDrainUndone,
			Message: "nothing asks for the drain any more; what it did to the node is undone",
		})
	}
}

// refuseRequest reports a request that nobody can read.
func (d *decision) refuseRequest() *contract.Report {
	report := contract.Report{
		Answers: []string{},
		Phase:   contract.PhaseFailed,
		Since:   contract.At(d.Now),
		Version: d.policy.Version,
		Message: d.bad.Error(),
	}
	if d.old != nil && d.old.Phase == report.Phase && d.old.Message == report.Message {
		report.Since = d.old.Since
		return &report
	}
	d.complain()
	return &report
}

func (d *decision) complain() {
	d.events = append(d.events, Event{Warning: true, Reason: contract.EventBadRequest, Message: d.bad.Error()})
}

// drain goes on with the drain for d.notices.
func (d *decision) drain() Next {
	d.forget()
	d.cordon()
	deadline := d.deadline()
	tally := d.look(deadline)
	report := d.report(deadline, tally)
	if report.Phase == contract.PhaseDrained {
		d.remember()
	}
	d.announce(report)
	next := Next{WatchPods: true, Report: &report}
	if d.mayEvict(deadline) {
		next.Steps = d.steps(tally, deadline)
	}
	d.write(&next)
	return next
}

// winner is the notice that decides how the drain is done.
func (d *decision) winner() notice.Notice { return d.notices[0] }

// continues says that the drain on the Node is for one of these notices too.
func (d *decision) continues() bool {
	return d.old != nil && slices.ContainsFunc(d.notices, func(n notice.Notice) bool { return d.old.AnswersTo(n.ID) })
}

// deadline is when the instance goes, by whichever notice is the first; zero
// where it stays for as long as the drain takes.
func (d *decision) deadline() time.Time {
	var earliest time.Time
	for _, n := range d.notices {
		earliest = notice.Earliest(earliest, d.deadlineOf(n))
	}
	return contract.At(earliest).Time
}

// deadlineOf a notice. Auto Scaling tells the node no time, so the agent takes
// one of its own when it first sees the notice, and keeps it in the report.
func (d *decision) deadlineOf(n notice.Notice) time.Time {
	if !n.Deadline.IsZero() || n.Kind != contract.KindASG {
		return n.Deadline
	}
	if d.old != nil && d.old.AnswersTo(n.ID) && !d.old.Deadline.IsZero() {
		return d.old.Deadline.Time
	}
	return d.Now.Add(d.policy.TerminationDrainTime)
}

// urgency rises when the deadline comes near, whatever the kind.
func (d *decision) urgency(deadline time.Time) drainable.Urgency {
	if d.near(deadline, pressing) {
		return drainable.Pressing
	}
	return drainable.UrgencyOf(d.winner().Kind, deadline)
}

// pressing is the time before a deadline in which nobody is waited for.
const pressing = 2 * time.Minute

// near says that no more than this is left before a deadline, and otherwise
// looks again when that is so.
func (d *decision) near(deadline time.Time, left time.Duration) bool {
	if deadline.IsZero() {
		return false
	}
	from := deadline.Add(-left)
	if d.Now.Before(from) {
		d.wakeAt(from)
		return false
	}
	return true
}

// uncordonedAfter is how long evictions wait for a Node that cannot be written.
const uncordonedAfter = 5 * time.Second

// mayEvict: not before new pods are kept away, or those evicted might come
// back. Where the API server refuses that write and the instance goes anyway,
// the pods leave all the same.
func (d *decision) mayEvict(deadline time.Time) bool {
	if _, tainted := contract.Draining(d.Node.Taints); tainted && d.Node.Unschedulable {
		return true
	}
	if d.Unwritable.IsZero() || deadline.IsZero() {
		return false
	}
	due := d.Unwritable.Add(uncordonedAfter)
	if d.Now.Before(due) {
		d.wakeAt(due)
		return false
	}
	return true
}

// wakeAt asks to be asked again no later than at.
func (d *decision) wakeAt(at time.Time) { d.wake = notice.Earliest(d.wake, at) }

// announce tells what is new about the drain since the report on the Node.
func (d *decision) announce(r contract.Report) {
	if d.bad != nil && (d.old == nil || !strings.Contains(d.old.Message, d.bad.Error())) {
		d.complain()
	}
	if !d.continues() {
		d.tell(false, contract.EventDrainStarted, fmt.Sprintf("draining (%s): %s", r.Kind, r.Reason))
	} else if d.old.Kind != r.Kind && r.Left > 0 {
		d.tell(false, contract.EventDrainStarted, fmt.Sprintf("the drain goes on (%s, was %s): %s", r.Kind, d.old.Kind, r.Reason))
	}
	before := contract.Report{}
	if d.continues() {
		before = *d.old
	}
	if r.Phase == contract.PhaseDrained && before.Phase != r.Phase {
		d.tell(false, contract.EventDrained, fmt.Sprintf("drained in %s (%s)", r.Renewed.Sub(r.Since.Time), r.Kind))
	}
	known := func(name string) bool { return slices.Contains(before.BlockedBy, name) }
	if slices.ContainsFunc(r.BlockedBy, func(name string) bool { return !known(name) }) {
		d.tell(true, contract.EventDrainBlocked, r.Message)
	}
}

func (d *decision) tell(warning bool, reason, message string) {
	d.events = append(d.events, Event{Warning: warning, Reason: reason, Message: message})
}

func cloneNode(n fleet.Node) fleet.Node {
	n.Annotations = maps.Clone(n.Annotations)
	n.Labels = maps.Clone(n.Labels)
	n.Taints = slices.Clone(n.Taints)
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	return n
}
