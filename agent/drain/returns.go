package drain

import (
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// findReturns finds what has come back to the node.
func (d *decision) findReturns() {
	r := drainable.Returns{Closed: d.excluded(), Now: d.Now, Deadline: d.toCome, Steps: d.policy.Steps}
	if d.rehearsed {
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

// isClosed says that the Node keeps new pods away.
func (d *decision) isClosed() bool {
	_, tainted := contract.Draining(d.Node.Taints)
	return tainted && d.Node.Unschedulable
}

// leftAlone says that a pod is not asked to leave now, as its like came back.
func (d *decision) leftAlone(p *fleet.Pod) bool {
	until, held := d.returns.Hold(p)
	if held && !until.IsZero() {
		d.due(until)
	}
	return held
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
