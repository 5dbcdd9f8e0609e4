package plan

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// returnsWithin is how long a node whose drain was taken back counts as a place
// for pods. An agent undoes a drain in a moment; if neither it nor we have done
// so by then, pods must not go on waiting for this node.
const returnsWithin = 2 * contract.GoneAfter

// takeBackWays takes our requests back by which we told agents of a way out of service,
// where the instance is in service again, or on its way there: it has left its warm pool, or
// Auto Scaling has not terminated it after all. They would keep the node closed for ever: the
// agent's own notice has ended.
func (d *decision) takeBackWays() {
	for _, n := range d.nodes {
		if n.mark != "" || !n.toldOfWay() || !n.instance.Live() {
			continue
		}
		n.kept = true
		why := "its instance is not terminated after all"
		if n.request.ID == contract.WarmID(n.instance.ID) {
			why = "its instance has left the warm pool"
		}
		keep := Keep{Group: n.group.Name, Node: n.ref(), ID: n.request.ID, Why: why}
		if n.instance.State == fleet.InService {
			keep.Instance = n.instance.ID
		}
		if ended, back := d.backInService(n); back && !n.reported {
			keep.AgentGone, keep.Ended = true, ended // all that stands there is ours
		}
		d.do(keep)
	}
}

// toldOfWay says that a request of ours tells of a way out of service that the node's
// instance was on.
func (n *node) toldOfWay() bool {
	return n.instance != nil && n.requested && n.request.By == contract.AppScaler &&
		(n.request.ID == contract.WarmID(n.instance.ID) || n.request.ID == contract.TerminateID(n.instance.ID))
}

// backInService says that a node was drained for a way out of service from which its
// instance has come back, and for nothing else: its agent undoes the drain when it is
// up. The ids are those of all that drained it. A node that serves and is about to go
// looks the same, but that it is not known as one that was out: by our memory, or by a
// request of ours.
func (d *decision) backInService(n *node) (ended []string, back bool) {
	if n.instance == nil || !n.instance.Live() || n.draining() != contract.KindASG {
		return nil, false
	}
	_, pooled := d.given.Unjoined[n.instance.ID]
	_, returning := d.given.Returning[n.Name]
	told := n.toldOfWay()
	if !pooled && !returning && !told || n.unreadable != nil || n.requested && !told {
		return nil, false
	}
	warm, terminate := contract.WarmID(n.instance.ID), contract.TerminateID(n.instance.ID)
	ended = n.drainedFor(warm)
	over := func(id string) bool {
		return id == warm || contract.Retires(id) || id == terminate && (returning || n.requested && n.request.ID == terminate)
	}
	if slices.ContainsFunc(ended, func(id string) bool { return !over(id) }) {
		return nil, false
	}
	return ended, true
}

// drainedFor are the ids that are named on the node as those of its drain, and one more.
func (n *node) drainedFor(id string) []string {
	ids := append([]string{id}, n.report.Answers...)
	if n.requested {
		ids = append(ids, n.request.ID)
	}
	cordon, err := contract.ParseCordon(n.Annotations[contract.AnnotationCordonedBy])
	if err == nil && cordon.Notice != "" {
		ids = append(ids, cordon.Notice)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

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
