package cluster

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// UrgencyOf a drain that began at since, by the rule that agents have. A deadline that has passed
// overrules the rules that block, as the machine may go at any moment, and makes no pod end before
// its time.
func (d *Cluster) UrgencyOf(kind contract.Kind, since, deadline time.Time) drainable.Urgency {
	if since.After(d.Now) {
		since = d.Now // by a clock that was ahead
	}
	passed := !deadline.IsZero() && !d.ToCome(deadline)
	if passed {
		deadline = time.Time{}
	}
	urgency, rises := drainable.UrgencyAt(d.Now, kind, since, deadline)
	d.Clock.At(rises)
	if passed {
		return max(urgency, drainable.Hurried)
	}
	return urgency
}

// DrainBegan is when the node's drain, of which that report speaks, was asked for or began; where its
// deadline came to be known later, since then. Zero where that is not known.
func (n *Node) DrainBegan(report contract.Report, deadline time.Time) time.Time {
	began := FirstKnown(n.Request.At.Time, report.Since.Time)
	if deadline.IsZero() {
		return began
	}
	if n.Request.Deadline.Time.Equal(deadline) {
		return Later(began, n.Request.At.Time)
	}
	for _, noted := range n.Noticed {
		if noted.Deadline.Time.Equal(deadline) {
			return Later(began, noted.At.Time)
		}
	}
	return began
}

// ToCome reports whether there is a deadline that has not passed. One that has passed with the
// machine still there gives no hint how much longer, so it cuts nothing.
func (d *Cluster) ToCome(deadline time.Time) bool {
	d.Clock.At(deadline)
	return d.Now.Before(deadline)
}

// Nears reports whether no more than this is left before a deadline that is to come.
func (d *Cluster) Nears(deadline time.Time, left time.Duration) bool {
	if !d.ToCome(deadline) {
		return false
	}
	from := deadline.Add(-left)
	d.Clock.At(from)
	return !d.Now.Before(from)
}
