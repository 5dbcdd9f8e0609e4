package drains

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// SeatScalingDown lets the pods of nodes that we scale down keep the places that they were
// promised, before any other pod is looked at. If there is none for one any more, the
// scale-down is cancelled.
func (d *Drains) SeatScalingDown() {
	nodes := slices.Collect(d.In(cluster.ScalingDown))
	if len(nodes) == 0 {
		return
	}
	since := d.UnneededSince()
	for _, n := range nodes {
		d.Spend(n)
	}
	slices.SortStableFunc(nodes, func(a, b *cluster.Node) int {
		return cmp.Or(a.Request.At.Compare(b.Request.At.Time), since[a].Compare(since[b]))
	})
	for _, s := range d.MoveMost(nodes, d.BothWays(d.FindDestinations(since))) {
		d.Cancel(s.Node, verdict.Say("pod {pod} has no other place any more", verdict.Pod(s.Pod.Pod.Key())))
	}
	d.Fit.Stand()
}

// Cancel cancels a scale-down.
func (d *Drains) Cancel(n *cluster.Node, why verdict.Details) {
	if n.Cancelled {
		return
	}
	n.Cancelled = true
	d.Do(action.CancelDrain{Group: n.GroupName(), Node: n.Ref(), ID: n.Request.ID, AgentGone: d.abandoned(n), Why: why.String()})
	n.Say(verdict.NodeScaleDownCancelled, verdict.Say("scale-down is cancelled: {why}", verdict.Why(why)))
}

// abandoned reports whether a node that we scale down has no agent that would undo the drain: none
// is Ready, and our request has not been read, or is no more.
func (d *Drains) abandoned(n *cluster.Node) bool {
	if d.Agents[n.Name] {
		return false
	}
	if report, answered := n.Answered(n.Request.ID); answered {
		return d.Stale(report)
	}
	return !d.Now.Before(d.Heard(n.Request.At.Time).Add(contract.UnresponsiveAfter))
}
