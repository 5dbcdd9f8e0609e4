package drain

import (
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// pause is why no pod is asked to leave yet. The zero value is no pause.
type pause struct {
	// wants is the id that waits for its permit; empty where none does.
	wants string
	// open means that the node goes on taking pods meanwhile.
	open    bool
	message string
}

func (p pause) none() bool { return p.message == "" }

// findPause: first the permit, then the load balancers. An empty node waits for
// neither.
func (d *decision) findPause(t tally) pause {
	if d.PodsKnown && t.Left == 0 {
		return pause{}
	}
	if d.isHearsay() {
		return pause{message: "waiting for the instance metadata to confirm that the announced event is still to come"}
	}
	if until := d.permitBy(); !until.IsZero() && !d.due(until) {
		return pause{wants: d.winner().ID, open: d.staysOpen(), message: d.whyWaits(until)}
	}
	if until := d.balancersBy(); !d.due(until) {
		return pause{message: "waiting until " + clock(until) + " for the load balancers to leave the node out"}
	}
	return pause{}
}

// whyWaits says what a drain without a permit waits for. Until when at the latest does not
// move with each word of the scaler, so that the report need not either.
func (d *decision) whyWaits(until time.Time) string {
	if d.isToldToWait() {
		return "waiting for its turn, which the scaler grants, until " + clock(d.inTime(d.waitsAtMost())) + " at the latest"
	}
	return "waiting for the scaler's permit, until " + clock(until) + " at the latest"
}

// permitBy is until when the drain waits for its permit; zero where it needs none, has it, or
// has begun. It is so that the scaler may launch a replacement first and let few nodes drain at
// a time. A scaler that lives writes that it is not this drain's turn, and then the wait begins
// anew, up to a limit; one that is away holds up no drain.
func (d *decision) permitBy() time.Time {
	if d.begun() || has(d.drains, d.Node.Annotations[contract.AnnotationDrainPermit]) {
		return time.Time{}
	}
	for _, n := range d.grounds() {
		if !d.response(n).Permit {
			return time.Time{}
		}
	}
	from := d.since()
	if d.isToldToWait() && d.NotYet.After(from) {
		from = d.NotYet
	}
	return d.inTime(notice.Earliest(from.Add(d.policy.PermitWait), d.waitsAtMost()))
}

// waitsAtMost is the end of the longest wait. It counts from the beginning that stands in
// the report, and so goes on when the agent starts again.
func (d *decision) waitsAtMost() time.Time { return d.since().Add(d.policy.MaxPermitWait) }

// isToldToWait reports whether the scaler has written that it is not this drain's turn.
func (d *decision) isToldToWait() bool {
	value, told := d.Node.Annotations[contract.AnnotationDrainNotYet]
	if !told || d.NotYet.IsZero() {
		return false
	}
	word, err := contract.ParseNotYet(value)
	return err == nil && has(d.drains, word.ID)
}

// closesBefore is how long before a drain begins by itself, for its deadline's sake, its
// node takes no more pods: they would hardly have started.
const closesBefore = 10 * time.Minute

// staysOpen reports whether the node takes pods while the drain waits for its permit: there is
// time, and an event that is announced for many nodes would close all of them, though only
// a few may drain. What the scaler asked for it has decided.
func (d *decision) staysOpen() bool {
	if slices.ContainsFunc(d.drains, func(n notice.Notice) bool { return n.Source == notice.FromRequest }) {
		return false
	}
	return d.deadline.IsZero() || !d.due(d.deadline.Add(-d.needs()-closesBefore))
}

// balancersBy is until when load balancers are given time to leave the node out. The drain does
// not wait for them on a spot interruption, nor where the Node cannot be written and so cannot
// ask them to.
func (d *decision) balancersBy() time.Time {
	if d.begun() || d.policy.LoadBalancerWait == 0 || !d.isExcluded() && d.isUnwritable() {
		return time.Time{}
	}
	return d.going.BalancersBy(d.excluded(), d.deadline, d.needs())
}

// isExcluded reports whether the Node asks load balancers to leave it out.
func (d *decision) isExcluded() bool {
	_, excluded := d.Node.Labels[contract.LabelExcludeFromLoadBalancers]
	return excluded
}

// excluded is since when the drain keeps load balancers away. Until the Node asks them to, that
// is still to come.
func (d *decision) excluded() time.Time {
	for _, r := range d.ownReports() {
		if told := r == d.old || d.isExcluded(); told && !r.Excluded.IsZero() {
			return r.Excluded.Time
		}
	}
	return contract.At(d.Now).Time
}

// begun reports whether the drain is past its pauses: it does not pause again, also where
// an older agent began it, which recorded neither its Events nor since when load
// balancers are kept away.
func (d *decision) begun() bool {
	if !d.continues() {
		return false
	}
	return d.toldOf(contract.EventDrainStarted) || d.old.Phase != contract.PhaseWaiting ||
		d.old.Wants == "" && d.old.Excluded.IsZero()
}

// toldOf reports whether an Event of the drain on the Node was written.
func (d *decision) toldOf(reason string) bool { return slices.Contains(d.old.Told, reason) }

// inTime is a moment that leaves the drain what it needs before the deadline.
func (d *decision) inTime(at time.Time) time.Time {
	if d.deadline.IsZero() {
		return at
	}
	return notice.Earliest(at, d.deadline.Add(-d.needs()))
}

// uncordonedAfter is how long evictions wait for a Node that cannot be written.
const uncordonedAfter = 5 * time.Second

// isUnwritable reports whether no write has succeeded for so long.
func (d *decision) isUnwritable() bool {
	return !d.Unwritable.IsZero() && d.due(d.Unwritable.Add(uncordonedAfter))
}

// mayEvict: not before new pods are kept away, or those evicted might come
// back. Where that write does not succeed and the instance goes anyway, the pods
// leave all the same.
func (d *decision) mayEvict() bool {
	if d.isClosed() {
		return true
	}
	return !d.deadline.IsZero() && d.isUnwritable()
}
