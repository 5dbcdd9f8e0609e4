package drain

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// findReturns finds what has come back to the node.
func (d *decision) findReturns() {
	r := drainable.Returns{Closed: d.closed(), Now: d.Now, Deadline: d.toCome, LastCall: d.calls().Last(d.closed()), Steps: d.policy.Steps, Evicted: d.evicted()}
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

// isClosed reports whether the Node keeps new pods away.
func (d *decision) isClosed() bool {
	_, tainted := contract.Draining(d.Node.Taints)
	return tainted && d.Node.Unschedulable
}

// calls are the last calls that the report lists, and the notices whose deadline is the next to
// come.
func (d *decision) calls() (c drainable.Calls) {
	if ours := d.ownReports(); len(ours) > 0 {
		c.Begun = ours[0].LastCalls
	}
	for _, n := range d.drains {
		if !d.toCome.IsZero() && contract.At(n.Deadline).Time.Equal(d.toCome) {
			c.Notices = append(c.Notices, n.ID)
		}
	}
	return c
}

// evicted are the pods that were asked to leave, and whose successors may come. Those that were
// deleted past their budgets were not asked one by one.
func (d *decision) evicted() []drainable.Eviction {
	out := make([]drainable.Eviction, 0, len(d.Tries.Pods))
	for _, try := range d.Tries.Pods {
		if try.Maker != "" && try.Outcome == Accepted && !try.Deleted {
			out = append(out, drainable.Eviction{Maker: try.Maker, At: try.At, Left: try.Left})
		}
	}
	return out
}
