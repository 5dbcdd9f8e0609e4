package standin

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// returns is what has come back to the node of what was evicted.
func (x loneDrain) returns() drainable.Returns {
	deadline := x.deadline
	if !x.ToCome(deadline) {
		deadline = time.Time{}
	}
	return drainable.Returns{Closed: x.excludedSince(), Now: x.Now, Deadline: deadline, Steps: x.steps()}.Find(slices.Values(x.node.Pods))
}

// leftAlone says that a pod is not asked to leave now, as its like came back.
func (x loneDrain) leftAlone(p *fleet.Pod, r drainable.Returns) bool {
	until, held := r.Hold(p)
	if held {
		x.Clock.At(until)
	}
	return held
}

// showedSuccessor says that no pod of the same maker was asked a moment ago, of which it is
// not known yet whether its successor comes back.
func (x loneDrain) showedSuccessor(p *fleet.Pod, r drainable.Returns) bool {
	at, ok := r.Next(p)
	if ok {
		x.Clock.At(at)
	}
	return ok && !x.Now.Before(at)
}

// CameBack says what has come to a node that we retire, and will come again; empty where
// nothing has. It counts from when the agent closed the node, or the scaler in its place.
func (d *StandIn) CameBack(n *cluster.Node) string {
	closed := cluster.FirstKnown(n.Report.Excluded.Time, d.Given.Alone[n.Name].Excluded)
	if _, answered := n.Answered(n.Request.ID); !answered {
		closed = d.Given.Alone[n.Name].Excluded
	}
	if closed.IsZero() || !n.Closed() {
		return ""
	}
	return drainable.Returns{Closed: closed, Now: d.Now}.Find(slices.Values(n.Pods)).First()
}
