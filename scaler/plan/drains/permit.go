package drains

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TakeTurns finds out which of the drains that wait may be next, so that nodes are launched for
// their pods and not for those of all others at once: as many as there is room for beside the
// drains under way, the earliest deadline first, then those that wait the longest.
func (d *Drains) TakeTurns() {
	var asking []*cluster.Node
	for n := range d.In(cluster.Draining) {
		if n.AsksPermit() && n.Unhurried() && !d.TooLate(n) {
			asking = append(asking, n)
		}
	}
	slices.SortStableFunc(asking, func(a, b *cluster.Node) int {
		return cmp.Or(cluster.LatestLast(a.Report.Deadline.Time, b.Report.Deadline.Time), a.Report.Since.Compare(b.Report.Since.Time), cmp.Compare(a.Name, b.Name))
	})
	d.Turns = min(len(asking), max(0, d.DrainLimit()-d.UnderWay()))
	for _, n := range asking[d.Turns:] {
		n.Held = true
		n.Open = n.Ready && n.TakesPods() // no pod is moved there, but pending pods may go there
	}
}

// stuckAfter is how long after its beginning a drain may stand still before another one
// may begin in its place.
const stuckAfter = time.Minute

// UnderWay counts the nodes with pods on them that are being drained though there is
// no hurry: scale-downs, and what was permitted or has begun by itself. Those that stand
// still hold no other one back. But of our own, of which each closes a node that serves,
// no more stand still than may be under way: the others count until they are given up.
func (d *Drains) UnderWay() int {
	moving, stuck := 0, 0
	for n := range d.In(cluster.ScalingDown, cluster.Draining, cluster.Terminating) {
		_, occupied := n.Occupied(d.Now)
		switch {
		case !occupied || !d.drainsAtLeisure(n) || d.Unproven(n):
		case d.Stuck(n):
			if n.Stage == cluster.ScalingDown {
				stuck++
			}
		default:
			moving++
		}
	}
	return moving + max(0, stuck-d.DrainLimit())
}

// Stuck reports whether a drain began a while ago and stands still now: what is left on its
// node is kept there by budgets or people, or ends when it likes.
func (d *Drains) Stuck(n *cluster.Node) bool {
	phase, since := n.Report.Phase, n.DrainsSince()
	if id, why, is := d.Unresponsive(n); is {
		phase = d.LoneDrain(n, id, why).Remedy(d.Unspent()).Phase()
	}
	if since.IsZero() {
		since = n.Request.At.Time
	}
	still := phase == contract.PhaseBlocked || phase == contract.PhaseWaiting ||
		phase == contract.PhaseDraining && d.onlyOutlasted(n, since)
	if !still || n.WaitsForPermit() {
		return false
	}
	due := since.Add(stuckAfter)
	d.Clock.At(due)
	return !d.Now.Before(due)
}

// onlyOutlasted reports whether all that is left on a node are pods in their grace periods, and
// whether the drain will be given up before one of them is over.
func (d *Drains) onlyOutlasted(n *cluster.Node, begun time.Time) bool {
	outlasts := false
	for _, p := range n.Pods {
		if p.Deleted.IsZero() && drainable.Occupies(p, d.Now) {
			return false
		}
		_, longer := d.Outlasts(p, begun)
		outlasts = outlasts || longer
	}
	return outlasts
}

func (d *Drains) drainsAtLeisure(n *cluster.Node) bool {
	if n.Stage == cluster.Draining {
		return n.Unhurried() && n.Reported && n.Report.Phase.Open() && (!n.AsksPermit() || d.TooLate(n))
	}
	return !n.Cancelled && n.Instance != nil && n.Instance.Live()
}

// Permit lets the drains begin whose turn it is and whose pods have other places. A permit stands
// for good: it is given once, and what a node waits for is reported in its verdict.
func (d *Drains) Permit() {
	for n := range d.In(cluster.Draining, cluster.ScalingDown) {
		switch {
		case n.Cancelled || !n.WaitsForPermit():
		case !n.AsksPermit():
			n.Say(verdict.NodeDraining, n.WhyDraining().Then(verdict.FirstOf(d.CarriedOn(n), permitted)))
		case !n.Unhurried():
			d.allow(n) // its time is counted already, or Auto Scaling replaces it
		case d.TooLate(n):
			n.Say(verdict.NodeDraining, n.WhyDraining().Then(verdict.FirstOf(d.CarriedOn(n), verdict.Say("its deadline is near, and it drains without a permit"))))
		case n.Held:
			d.putOff(n, verdict.Say("its drain waits until {why}", verdict.Why(verdict.WhileFewer(d.DrainLimit()))))
		default:
			d.allowReplaced(n)
		}
	}
}

// allowReplaced permits a drain unless one of the node's pods has its place on a node
// that is yet to come.
func (d *Drains) allowReplaced(n *cluster.Node) {
	if pod, place := d.awaitsPlace(n); pod != "" {
		d.putOff(n, verdict.Say("its drain waits for a replacement: pod {pod} goes to {place}, which is upcoming", verdict.Pod(pod), verdict.Place(place)))
		return
	}
	d.allow(n)
	n.Say(verdict.NodeDraining, n.WhyDraining().Then(permitted))
}

var permitted = verdict.Say("its drain is permitted")

// putOff has a drain wait on. It renews that after a quarter to half of the time for which the
// agent waits then, each node at its own moment, to the next twentieth of that time: of a thousand
// nodes that wait with the default of 5 min nine are written a second on average, all in an
// evaluation every 15 s. An agent that does not say for how long it waits is of an older version,
// and does not listen.
func (d *Drains) putOff(n *cluster.Node, why verdict.Details) {
	n.Say(verdict.NodeDraining, n.WhyDraining().Then(why))
	wait := min(time.Duration(n.Report.PermitWait)*time.Second, longestPermitWait)
	if wait <= 0 {
		return
	}
	every := wait/4 + time.Duration(shareOf(n.Name)*float64(wait/4))
	due := n.NotYet.At.Add(max(every, notYetEvery)).Truncate(wait / 20)
	known := n.NotYet.ID == n.Report.Wants && n.NotYet.At.Before(d.Now.Add(wait/4)) // not by a clock that was far ahead
	if known && d.Now.Before(due) {
		d.Clock.At(due)
		return
	}
	d.Clock.At(d.Now.Add(max(every, notYetEvery)))
	d.Do(action.NotYet{Group: n.GroupName(), Node: n.Ref(), ID: n.Report.Wants, Why: why.String()})
}

// longestPermitWait is the most that is believed of a report.
const longestPermitWait = time.Hour

// notYetEvery is how often at most that is renewed. Agents that wait for less than twice that begin
// by themselves.
const notYetEvery = 5 * time.Second

// shareOf is a figure from 0 to less than 1 that a name always has.
func shareOf(name string) float64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return float64(h.Sum32()) / (1 << 32)
}

func (d *Drains) allow(n *cluster.Node) {
	d.Do(action.Permit{Group: n.GroupName(), Node: n.Ref(), ID: n.Report.Wants})
}

// awaitsPlace names a pod of the node that has its seat where nothing serves yet; empty without
// one. A pod without any seat waits for nothing: no node is upcoming for it.
func (d *Drains) awaitsPlace(n *cluster.Node) (pod, place string) {
	seatedAt := func(p *fit.Place) int {
		return slices.IndexFunc(p.Seated(), func(t fit.Tenant) bool { return t.Pod.Node == n.Name })
	}
	for _, p := range d.UnsettledPlaces() {
		if i := seatedAt(p); i >= 0 && p != n.Place {
			return p.Seated()[i].Pod.Key(), p.Name
		}
	}
	return "", ""
}
