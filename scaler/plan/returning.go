package plan

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// returnsWithin is how long a node whose drain was taken back counts as a place
// for pods. An agent undoes a drain in a moment; if neither it nor we have done
// so by then, pods must not go on waiting for this node.
const returnsWithin = 2 * contract.GoneAfter

// undoDrains takes off a node what a drain left there that was taken back. That
// is the agent's to do, so it has time for it: little where none is Ready, and
// as long as a drain may take where one is.
func (d *decision) undoDrains() {
	since := map[string]time.Time{}
	for _, n := range d.in(returning) {
		first, known := d.state.Returning[n.Name]
		if !known {
			first = d.now
		}
		since[n.Name] = first
		d.clock.at(first.Add(returnsWithin))
		due := first.Add(d.undoTime(n))
		if d.now.Before(due) {
			d.clock.at(due)
			continue
		}
		if n.unreadable != nil || n.requested {
			continue // somebody's word stands there, or is taken off first
		}
		n.say(NodeKept, "its drain was taken back, and is undone without its agent")
		ended, _ := d.backInService(n)
		d.do(Keep{Group: n.groupName(), Node: n.ref(), Ended: ended, AgentGone: true, Why: "its drain was taken back, and its agent has not undone it"})
	}
	d.rememberReturns(since)
	d.state.Returning = since
}

// rememberReturns keeps the nodes whose drain was taken back and that are not up yet: for
// as long as that drain is written on them, the memory tells it from one that goes on.
func (d *decision) rememberReturns(since map[string]time.Time) {
	for _, n := range d.in(coming) {
		first, known := d.state.Returning[n.Name]
		if _, back := d.backInService(n); known && back {
			since[n.Name] = first
		}
	}
}

func (d *decision) undoTime(n *node) time.Duration {
	if d.agents[n.Name] {
		return max(d.policy.MaxDrainTime, contract.GoneAfter)
	}
	return contract.GoneAfter
}

// returnsSoon says that pods may count on a node whose drain was taken back.
func (d *decision) returnsSoon(n *node) bool {
	return d.now.Before(d.state.Returning[n.Name].Add(returnsWithin))
}

// stale says that the agent should have renewed its report by now.
func (d *decision) stale(r contract.Report) bool {
	if !r.Phase.Open() {
		return false
	}
	end := d.heard(r.Renewed.Time).Add(contract.GoneAfter)
	if d.now.Before(end) {
		d.clock.at(end)
		return false
	}
	return true
}

// abandoned says that a node that we retire has no agent that would undo the
// drain: none is Ready, and our request has not been heard, or is no more.
func (d *decision) abandoned(n *node) bool {
	if d.agents[n.Name] {
		return false
	}
	if report, answered := n.answered(n.request.ID); answered {
		return d.stale(report)
	}
	return !d.now.Before(d.heard(n.request.At.Time).Add(contract.GoneAfter))
}
