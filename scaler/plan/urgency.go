package plan

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// urgencyOf a drain that began at since, by the rule that agents have. A deadline that has
// passed overrules the rules that block, as the machine may go at any moment, and makes
// nobody end before his time.
func (d *decision) urgencyOf(kind contract.Kind, since, deadline time.Time) drainable.Urgency {
	passed := !deadline.IsZero() && !d.toCome(deadline)
	if passed {
		deadline = time.Time{}
	}
	urgency, rises := drainable.UrgencyAt(d.now, kind, since, deadline)
	d.clock.at(rises)
	if passed {
		return max(urgency, drainable.Hurried)
	}
	return urgency
}

// drainBegan is when the node's drain, of which that report speaks, was asked for or
// began; zero where nobody knows.
func (n *node) drainBegan(report contract.Report) time.Time {
	return firstKnown(n.request.At.Time, report.Since.Time)
}

// toCome says that there is a deadline, and that it has not passed. One that has passed
// with the machine still there gives no hint how much longer, so it cuts nothing.
func (d *decision) toCome(deadline time.Time) bool {
	d.clock.at(deadline)
	return d.now.Before(deadline)
}

// nears says that no more than this is left before a deadline that is to come.
func (d *decision) nears(deadline time.Time, left time.Duration) bool {
	if !d.toCome(deadline) {
		return false
	}
	from := deadline.Add(-left)
	d.clock.at(from)
	return !d.now.Before(from)
}
