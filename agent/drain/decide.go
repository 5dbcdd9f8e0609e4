package drain

import (
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Decide says what to do now. A notice that stands is a drain that goes on,
// whatever began it; where none stands, whatever an earlier drain of ours left
// on the Node is taken away.
func Decide(v View, p Policy) Next {
	if v.Node == nil {
		return Next{}
	}
	if p.DryRun {
		return rehearse(v, p)
	}
	d := read(v, p)
	if len(d.drains) == 0 {
		return d.rest()
	}
	return d.drain()
}

// decision is one run of Decide.
type decision struct {
	View
	policy Policy
	// sorted are the pods in their order, once they were asked for.
	sorted []*fleet.Pod

	// old is the report on the Node; nil where there is none, or none that can be read;
	// misdated means that it bears moments that are to come. mark is ours on the Node's cordon,
	// nil where there is none. served and noted are what else the Node keeps of notices.
	old      *contract.Report
	misdated bool
	mark     *contract.Cordon
	served   contract.ServedList
	noted    contract.NoticedList
	// known are those of noted, and of the list that the Node has not taken.
	known contract.NoticedList

	// standing are the notices that stand, the strongest first. Of them, drains are
	// those to drain for now, cordons those to cordon for, and fulfilled those that a
	// reboot, or the end of their time, has fulfilled.
	standing, drains, cordons, fulfilled []notice.Notice
	// seen are those that the metadata give, by id, as they give them.
	seen map[string]notice.Notice
	// bad is why the drain request cannot be read, nil where it can.
	bad error
	// deadline is when the instance goes, zero where it stays for as long as the
	// drain takes; announced is the first that somebody has named, and toCome the
	// first of those that have not passed. pause is why no pod is asked to leave yet.
	deadline, announced, toCome time.Time
	pause                       pause
	// returns is what has come back to the node of what was evicted.
	returns drainable.Returns
	// going is what the drain goes by as far as its pods go.
	going drainable.Drain

	// want is what the Node shall be.
	want   fleet.Node
	events []Event
	wake   time.Time
}

// read reads what the Node and the metadata say, and what is to be done about
// each notice. What cannot be read is dropped; it is written anew.
func read(v View, p Policy) *decision {
	d := &decision{View: v, policy: p, want: cloneNode(*v.Node), seen: map[string]notice.Notice{}}
	if report, err := contract.ParseReport(v.Node.Annotations[contract.AnnotationDrainReport]); err == nil {
		d.old = &report
	}
	delete(d.want.Annotations, contract.AnnotationDryRun) // of an agent that was not let
	if value, ours := v.Node.Annotations[contract.AnnotationCordonedBy]; ours {
		mark, _ := contract.ParseCordon(value) // one that cannot be read is ours too
		d.mark = &mark
	}
	d.served, _ = contract.ParseServed(v.Node.Annotations[contract.AnnotationServed])
	d.noted, _ = contract.ParseNoticed(v.Node.Annotations[contract.AnnotationNotices])
	d.correctDates()
	d.known = d.allNoted()
	d.standing = d.listStanding()
	for _, n := range d.standing {
		switch {
		case d.hasRebooted(n), d.isOver(n):
			d.fulfilled = append(d.fulfilled, n)
		case d.isServed(n):
		case d.response(n).Do == notice.Cordon:
			d.cordons = append(d.cordons, n)
		case d.response(n).Do == notice.Drain && d.due(d.begin(n)):
			d.drains = append(d.drains, n)
		}
	}
	d.serve(d.fulfilled)
	d.respectUncordon()
	return d
}

// rest takes away what a drain of ours left, and nothing else; a node for which
// a cordon is enough keeps, or gets, that.
func (d *decision) rest() Next {
	d.forget()
	d.note()
	d.undo()
	next := Next{}
	if d.bad != nil {
		next.Report = d.refuseRequest()
	}
	d.write(&next)
	return next
}

// drain goes on with the drain for d.drains.
func (d *decision) drain() Next {
	d.forget()
	d.note()
	d.findDeadlines()
	d.findReturns()
	d.findGoing()
	tally := d.tally()
	d.pause = d.findPause(tally)
	d.close()
	report := d.report(tally)
	d.announce(&report, tally)
	if report.Phase == contract.PhaseDrained {
		d.serve(d.drains)
	}
	next := Next{WatchPods: true, Report: &report, WatchBudgets: d.refusing()}
	if d.pause.none() && d.mayEvict() {
		next.Steps = d.steps(tally)
	}
	d.write(&next)
	return next
}

// winner is the notice that decides how the drain is done.
func (d *decision) winner() notice.Notice { return d.grounds()[0] }

// continues reports whether the drain on the Node is for one of these notices too.
func (d *decision) continues() bool { return d.isOurs(d.old) }

// isOurs reports whether a report is about a drain for one of these notices.
func (d *decision) isOurs(r *contract.Report) bool {
	return r != nil && slices.ContainsFunc(d.drains, func(n notice.Notice) bool { return r.AnswersTo(n.ID) })
}

// reports are what is written of drains of the node, the latest first: what it has not
// taken yet, then what it bears.
func (d *decision) reports() []*contract.Report {
	return slices.DeleteFunc([]*contract.Report{d.Unwritten, d.old}, func(r *contract.Report) bool { return r == nil })
}

// ownReports are those of them that are about this drain.
func (d *decision) ownReports() []*contract.Report {
	return slices.DeleteFunc(d.reports(), func(r *contract.Report) bool { return !d.isOurs(r) })
}

// since is when the drain began.
func (d *decision) since() time.Time {
	if ours := d.ownReports(); len(ours) > 0 {
		return ours[0].Since.Time
	}
	return contract.At(d.Now).Time
}

// due reports whether a moment has come. If not, the drain is decided again then.
func (d *decision) due(at time.Time) bool {
	if at.After(d.Now) {
		d.wake = notice.Earliest(d.wake, at)
		return false
	}
	return true
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
