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
	if d.old != nil && d.old.AnswersTo(n.ID) && !d.old.Deadline.IsZero() {
		return d.old.Deadline.Time
	}
	return contract.At(d.Now.Add(d.policy.TerminationDrainTime)).Time
}

// stays says that the instance goes on running whatever becomes of its group.
func (d *decision) stays(n notice.Notice) bool {
	return n.Cause == notice.ASGStandby || n.Cause == notice.ASGDetach
}

// urgency rises when the deadline comes near, whatever the kind. What pods say of
// themselves is honoured where time allows: an event that is announced for next
// week is no reason to overrule them today.
func (d *decision) urgency() drainable.Urgency {
	kind := d.winner().Kind
	goes := kind == contract.KindSpot || kind == contract.KindASG && !d.stays(d.winner())
	switch {
	case d.near(pressing):
		return drainable.Pressing
	case !goes && !d.near(hurrying):
		return drainable.Patient
	}
	return drainable.UrgencyOf(kind, d.deadline)
}

// pressing is the time before a deadline in which nobody is waited for, hurrying
// that in which nobody stays by his own word.
const pressing, hurrying = 2 * time.Minute, 30 * time.Minute

// near says that no more than this is left before the announced deadline, and
// otherwise looks again when that is so. It goes on to say so once the deadline has
// passed: what was to come may come at any moment.
func (d *decision) near(left time.Duration) bool {
	return !d.announced.IsZero() && d.due(d.announced.Add(-left))
}

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
