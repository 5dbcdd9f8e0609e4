package drain

import (
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// findDeadlines finds when the instance goes, by whichever notice is the first. One whose moment has passed,
// with the machine still there, says nothing while another is to come.
func (d *decision) findDeadlines() {
	var passed time.Time
	for _, n := range d.grounds() {
		announced := contract.At(n.Deadline).Time
		d.announced = notice.Earliest(d.announced, announced)
		for _, at := range []time.Time{announced, d.guess(n)} {
			if at.After(d.Now) {
				d.deadline = notice.Earliest(d.deadline, at)
			} else {
				passed = notice.Earliest(passed, at)
			}
		}
		if announced.After(d.Now) {
			d.toCome = notice.Earliest(d.toCome, announced)
		}
	}
	if d.deadline.IsZero() {
		d.deadline = passed
	}
}

// guess is the deadline of a notice that has none though the instance goes: Auto
// Scaling gives the node no time when it ends it or puts it away, so until the
// scaler does, the agent takes one of its own when it first sees the notice, and
// keeps it in the report. It bounds what the drain waits for beside its pods; no
// pod has less time because of it, and no drain fails by it.
func (d *decision) guess(n notice.Notice) time.Time {
	if !n.Deadline.IsZero() || n.Kind != contract.KindASG || d.stays(n) {
		return time.Time{}
	}
	guess := contract.At(d.Now.Add(d.policy.TerminationDrainTime)).Time
	for _, r := range d.reports() {
		switch {
		case !r.AnswersTo(n.ID) || r.Deadline.IsZero():
		case r == d.old && d.misdated:
			return notice.Earliest(guess, r.Deadline.Time)
		default:
			return r.Deadline.Time
		}
	}
	return guess
}

// stays reports whether the instance goes on running whatever becomes of its group.
func (d *decision) stays(n notice.Notice) bool {
	return n.Cause == notice.ASGStandby || n.Cause == notice.ASGDetach
}

// urgency is that of the notice which leaves the least time.
func (d *decision) urgency() drainable.Urgency {
	most := drainable.Patient
	for _, n := range d.grounds() {
		most = max(most, d.urgencyOf(n))
	}
	return most
}

// urgencyOf a notice rises as its announced deadline comes near. One that has passed may come
// at any moment; so may, for all that the agent knows, the end of an instance that was given no
// time. There is time while one may still be given, and where Auto Scaling lets the instance go
// on running.
func (d *decision) urgencyOf(n notice.Notice) drainable.Urgency {
	kind := n.Kind
	if d.stays(n) || d.mayBeDated(n) {
		kind = contract.KindRequest
	}
	urgency, rises := drainable.UrgencyAt(d.Now, kind, d.sinceFor(n), contract.At(n.Deadline).Time)
	if !rises.IsZero() {
		d.due(rises)
	}
	return urgency
}

// datedWithin is how long the scaler is given to say when Auto Scaling ends an instance.
// The agent hears first that it does; the scaler reads the group, sees how long its hook
// holds the instance, and asks for the drain with that deadline, in seconds as a rule. A
// pod that forbids its eviction may have an hour then.
const datedWithin = 30 * time.Second

// mayBeDated reports whether the instance goes, and it is too early to conclude that no time
// will be given.
func (d *decision) mayBeDated(n notice.Notice) bool {
	return n.Kind == contract.KindASG && n.Deadline.IsZero() && !d.due(d.knownSince(n).Add(datedWithin))
}

// sinceFor is since when the drain is for a notice: that may come when it has long begun for another.
func (d *decision) sinceFor(n notice.Notice) time.Time {
	if known := d.knownSince(n); known.After(d.since()) && !known.After(d.Now) {
		return known
	}
	return d.since()
}

// knownSince is when an agent of the node, or for a request its author, first spoke of a
// notice.
func (d *decision) knownSince(n notice.Notice) time.Time {
	noted, listed := d.known.Find(n.ID)
	switch {
	case listed && !noted.At.IsZero(): // an older agent noted no date
		return noted.At.Time
	case !n.At.IsZero():
		return n.At
	}
	for _, r := range d.reports() {
		if r.AnswersTo(n.ID) {
			return r.Since.Time
		}
	}
	return d.Now
}

// pressing is the time before a deadline in which budgets are asked without pause.
const pressing = 2 * time.Minute

// near reports whether no more than this is left before the first announced deadline that is to
// come. If not, the drain is decided again then. One that has passed with the machine still
// there was none: how much time there is now is not known.
func (d *decision) near(left time.Duration) bool {
	return !d.toCome.IsZero() && d.due(d.toCome.Add(-left))
}

// hasFailed reports whether an announced deadline has passed, and none is to come.
func (d *decision) hasFailed() bool {
	return !d.announced.IsZero() && d.due(d.announced) && d.isLate()
}

// isLate reports whether the deadline has passed, be it a guess.
func (d *decision) isLate() bool { return !d.deadline.IsZero() && d.due(d.deadline) }

// needs is how long the drain will take if no budget is in its way. While the pods are not
// known, one is taken to be there that says nothing of itself.
func (d *decision) needs() time.Duration {
	pods := d.sortedPods()
	if !d.PodsKnown {
		pods = append(slices.Clone(pods), &fleet.Pod{})
	}
	return d.policy.Steps.Needs(slices.Values(pods))
}
