package drain

import (
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// findReturns finds what has come back to the node.
func (d *decision) findReturns() {
	r := drainable.Returns{Closed: d.closed(), Now: d.Now, Deadline: d.toCome, LastCall: d.lastCall(), Steps: d.policy.Steps}
	if d.rehearsed != nil {
		d.returns = r.Find(slices.Values([]*fleet.Pod(nil)))
		return
	}
	if !d.isClosed() {
		r.Open = true
		if !d.Unwritable.IsZero() {
			r.Closed = contract.At(d.Unwritable).Time
		}
	}
	d.returns = r.Find(slices.Values(d.sortedPods()))
}

// closed is since when nothing is to come to the node: since the drain keeps load balancers
// away, or since it was cordoned, if that is later. An old report of the same request may
// stand there, and the node have been open since.
func (d *decision) closed() time.Time {
	closed := d.excluded()
	if d.mark != nil && d.mark.At.After(closed) {
		return d.mark.At.Time
	}
	return closed
}

// isClosed says that the Node keeps new pods away.
func (d *decision) isClosed() bool {
	_, tainted := contract.Draining(d.Node.Taints)
	return tainted && d.Node.Unschedulable
}

// leftAlone says that a pod is not asked to leave now, as its like came back.
func (d *decision) leftAlone(p *fleet.Pod) bool {
	until, held := d.returns.Hold(p)
	if held {
		d.due(until)
	}
	return held || d.returns.IsCalled(p) && !d.hasNotedCall()
}

// next are the notices whose deadline is the next to come.
func (d *decision) next() []notice.Notice {
	return slices.DeleteFunc(slices.Clone(d.drains), func(n notice.Notice) bool {
		return d.toCome.IsZero() || !contract.At(n.Deadline).Time.Equal(d.toCome)
	})
}

// lastCalls are those that the report tells.
func (d *decision) lastCalls() contract.LastCalls {
	if ours := d.ownReports(); len(ours) > 0 {
		return ours[0].LastCalls
	}
	return nil
}

// lastCall is the deadline of the last call of the notices that are the next to come; zero
// where one of them has had none. Where a report remembers as many as it can, it does not tell
// which had none. One for a deadline before the node was closed is of an earlier drain.
func (d *decision) lastCall() (deadline time.Time) {
	calls := d.lastCalls()
	for _, n := range d.next() {
		of := calls.Of(n.ID)
		if of.IsZero() && len(calls) >= contract.LastCallsKept {
			continue
		}
		if !of.After(d.closed()) {
			return time.Time{}
		}
		deadline = notice.Earliest(deadline, of.Time)
	}
	return deadline
}

// hasNotedCall says that the last call before the present deadline is written down, so that
// no other follows it.
func (d *decision) hasNotedCall() bool {
	return !d.returns.LastCall.IsZero() && !d.returns.LastCall.After(d.toCome)
}

// noteCalls are the last calls with the one that has come, if one has.
func (d *decision) noteCalls() contract.LastCalls {
	calls := d.lastCalls()
	if slices.ContainsFunc(d.sortedPods(), d.returns.IsCalled) {
		for _, n := range d.next() {
			calls = calls.Add(n.ID, contract.At(d.toCome))
		}
	}
	return calls
}

// awaitsSuccessor says that another pod of the same maker was asked a moment ago, and it is
// not known yet whether its successor comes back.
func (d *decision) awaitsSuccessor(p *fleet.Pod) bool {
	maker := d.returns.Alone(p)
	if maker == "" {
		return false
	}
	at, ok := d.returns.Next(p)
	if !ok {
		return true
	}
	for _, try := range d.Tries.Pods {
		if try.Maker != maker || try.Outcome != Accepted || try.Deleted {
			continue
		}
		from := try.At
		if d.returns.ComesLate(p) && try.Left.After(from) {
			from = try.Left
		}
		if shows := from.Add(d.returns.Shows(p)); shows.After(at) {
			at = shows
		}
	}
	return !d.due(at)
}
