package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// findDeadlines finds when the instance goes, by whichever notice is the first.
func (d *decision) findDeadlines() {
	for _, n := range d.drains {
		announced := contract.At(n.Deadline).Time
		d.announced = notice.Earliest(d.announced, announced)
		d.deadline = notice.Earliest(d.deadline, notice.Earliest(announced, d.guess(n)))
		if announced.After(d.Now) {
			d.toCome = notice.Earliest(d.toCome, announced)
		}
	}
}

// guess is the deadline of a notice that has none though the instance goes: Auto
// Scaling tells the node no time when it ends it or puts it away, so until the
// scaler does, the agent takes one of its own when it first sees the notice, and
// keeps it in the report. It bounds what the drain waits for beside its pods; no
// pod has less time because of it, and no drain fails by it.
func (d *decision) guess(n notice.Notice) time.Time {
	if !n.Deadline.IsZero() || n.Kind != contract.KindASG || d.stays(n) {
		return time.Time{}
	}
	guess := contract.At(d.Now.Add(d.policy.TerminationDrainTime)).Time
	for _, r := range []*contract.Report{d.Unwritten, d.old} {
		switch {
		case r == nil || !r.AnswersTo(n.ID) || r.Deadline.IsZero():
		case r == d.old && d.misdated:
			return notice.Earliest(guess, r.Deadline.Time)
		default:
			return r.Deadline.Time
		}
	}
	return guess
}

// stays says that the instance goes on running whatever becomes of its group.
func (d *decision) stays(n notice.Notice) bool {
	return n.Cause == notice.ASGStandby || n.Cause == notice.ASGDetach
}

// urgency rises as the announced deadline comes near. One that has passed may come at
// any moment; so may, for all that the agent knows, the end of an instance to which
// nobody has given a time. An instance that Auto Scaling lets go on running has time.
func (d *decision) urgency() drainable.Urgency {
	kind := d.winner().Kind
	if d.stays(d.winner()) {
		kind = contract.KindRequest
	}
	urgency, rises := drainable.UrgencyAt(d.Now, kind, d.since(), d.toCome)
	if !rises.IsZero() {
		d.due(rises)
	}
	if d.hasFailed() {
		return max(urgency, drainable.Hurried)
	}
	return urgency
}

// pressing is the time before a deadline in which budgets are asked without pause.
const pressing = 2 * time.Minute

// near says that no more than this is left before the first announced deadline that
// is to come, and otherwise looks again when that is so. One that has passed with the
// machine still there was none: nobody knows how much time there is now.
func (d *decision) near(left time.Duration) bool {
	return !d.toCome.IsZero() && d.due(d.toCome.Add(-left))
}

// hasFailed says that an announced deadline has passed.
func (d *decision) hasFailed() bool { return !d.announced.IsZero() && d.due(d.announced) }

// isLate says that the deadline has passed, be it a guess.
func (d *decision) isLate() bool { return !d.deadline.IsZero() && d.due(d.deadline) }

// spare is what a drain is given beyond what its pods ask for.
const spare = time.Minute

// needs is how long the drain will take if no budget is in its way.
func (d *decision) needs() time.Duration {
	longest := time.Duration(0)
	if !d.PodsKnown {
		longest = corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	for i := range d.Pods {
		if drainable.MustBePlacedAgain(&d.Pods[i]) {
			longest = max(longest, ownGrace(&d.Pods[i]))
		}
	}
	return d.policy.Steps.Reserve(0) + longest + spare
}

// ownGrace is the time that a pod asks for to end.
func ownGrace(pod *fleet.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}
