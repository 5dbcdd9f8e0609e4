package plan

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// pressing is the time before a deadline in which nobody is waited for, hurrying that in
// which no pod stays by its own word; it is half of the whole time where that is less.
const pressing, hurrying = 2 * time.Minute, 30 * time.Minute

// urgencyOf the drain of a node, as its agent sees it: what pods say of themselves is
// honoured while there is time.
func (d *decision) urgencyOf(n *node, kind contract.Kind, deadline time.Time) drainable.Urgency {
	hurried := hurrying
	if began := n.drainBegan(); !began.IsZero() {
		hurried = min(hurried, deadline.Sub(began)/2)
	}
	switch {
	case kind == contract.KindSpot || d.nears(deadline, pressing):
		return drainable.Pressing
	case d.nears(deadline, hurried):
		return drainable.Hurried
	}
	return drainable.Patient
}

// drainBegan is when the node's drain was asked for or began; zero where nobody knows.
func (n *node) drainBegan() time.Time {
	a, b := n.request.At.Time, n.report.Since.Time
	if latestLast(a, b) > 0 {
		return b
	}
	return a
}

// toCome says that there is a deadline, and that it has not passed. One that has passed
// with the machine still there was none: what is held beyond it, or serviced later than
// announced, has time.
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
