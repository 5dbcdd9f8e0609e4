package hooks

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TakeBackWays cancels our requests by which agents know of a way out of service, where the
// instance is in service again, or soon will be: it has left its warm pool, or Auto Scaling has not
// terminated it after all. They would keep the node closed without end: the agent's own notice has
// ended.
func (d *Hooks) TakeBackWays() {
	for _, n := range d.Nodes {
		if n.Mark != "" || !n.ToldOfWay() || !n.Instance.Live() {
			continue
		}
		n.Cancelled = true
		why := "its instance is not terminated after all"
		if n.Request.ID == contract.WarmID(n.Instance.ID) {
			why = "its instance has left the warm pool"
		}
		keep := action.CancelDrain{Group: n.Group.Name, Node: n.Ref(), ID: n.Request.ID, Why: why}
		if n.Instance.State == fleet.InService {
			keep.Instance = n.Instance.ID
		}
		if ended, back := d.BackInService(n); back && !n.Reported {
			keep.AgentGone, keep.Ended = true, ended // all that stands there is ours
		}
		d.Do(keep)
	}
}

// UndoDrains takes off a node what a cancelled drain left there. That is the agent's to do, so it
// has time for it: little where none is Ready, and as long as a drain may take where one is.
func (d *Hooks) UndoDrains() {
	since := map[string]time.Time{}
	for n := range d.In(cluster.Returning) {
		first, known := d.State.Returning[n.Name]
		if !known {
			first = d.Now
		}
		since[n.Name], n.ReturnsSince = first, first
		d.Clock.At(first.Add(cluster.ReturnsWithin))
		due := first.Add(d.undoTime(n))
		if d.Now.Before(due) {
			d.Clock.At(due)
			continue
		}
		if n.Unreadable != nil || n.Requested {
			continue // a request of others stands there, or is taken off first
		}
		n.Say(verdict.NodeScaleDownCancelled, verdict.Say("its drain was cancelled, and is undone without its agent"))
		ended, _ := d.BackInService(n)
		d.Do(action.CancelDrain{Group: n.GroupName(), Node: n.Ref(), Ended: ended, AgentGone: true, Why: "its drain was cancelled, and its agent has not undone it"})
	}
	d.rememberReturns(since)
	d.State.Returning = since
}

// rememberReturns persists the nodes whose drain was cancelled and that are not up yet: for as long
// as that drain is written on them, the persisted state distinguishes it from one that goes on.
func (d *Hooks) rememberReturns(since map[string]time.Time) {
	for n := range d.In(cluster.Upcoming) {
		first, known := d.State.Returning[n.Name]
		if _, back := d.BackInService(n); known && back {
			since[n.Name] = first
		}
	}
}

func (d *Hooks) undoTime(n *cluster.Node) time.Duration {
	if d.Agents[n.Name] {
		return max(d.Policy.MaxDrainTime, contract.UnresponsiveAfter)
	}
	return contract.UnresponsiveAfter
}
