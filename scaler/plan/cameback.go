package plan

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// returns is what has come back to the node of what was evicted.
func (x loneDrain) returns() drainable.Returns {
	deadline := x.deadline
	if !x.toCome(deadline) {
		deadline = time.Time{}
	}
	return drainable.Returns{Closed: x.excludedSince(), Now: x.now, Deadline: deadline, Steps: x.steps()}.Find(slices.Values(x.node.pods))
}

// leftAlone says that a pod is not asked to leave now, as its like came back.
func (x loneDrain) leftAlone(p *fleet.Pod, r drainable.Returns) bool {
	until, held := r.Hold(p)
	if held {
		x.clock.at(until)
	}
	return held
}

// showedSuccessor says that no pod of the same maker was asked a moment ago, of which it is
// not known yet whether its successor comes back.
func (x loneDrain) showedSuccessor(p *fleet.Pod, r drainable.Returns) bool {
	at, ok := r.Next(p)
	if ok {
		x.clock.at(at)
	}
	return ok && !x.now.Before(at)
}

// cameBack says what has come to a node that we retire, and will come again; empty where
// nothing has. It counts from when the agent closed the node, or the scaler in its place.
func (d *decision) cameBack(n *node) string {
	closed := firstKnown(n.report.Excluded.Time, d.given.Alone[n.Name].Excluded)
	if _, answered := n.answered(n.request.ID); !answered {
		closed = d.given.Alone[n.Name].Excluded
	}
	if closed.IsZero() || !n.closed() {
		return ""
	}
	return drainable.Returns{Closed: closed, Now: d.now}.Find(slices.Values(n.pods)).First()
}
