package seats

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/standin"
)

// OnTheWay lists the nodes that will be there soon: those that have registered,
// instances without a node, and what Auto Scaling has yet to launch.
func (d *Seats) OnTheWay() []*fit.Place {
	list := d.PlacesIn(cluster.Upcoming)
	for _, g := range d.Groups {
		if len(g.Templates) == 0 {
			continue
		}
		for _, i := range d.Unregistered(g) {
			list = append(list, d.Fit.Open("instance "+i.ID, g.Templates[g.ZoneOf(i.Zone)]))
		}
		for i := range g.Unlaunched() {
			next := nextZone(g, i)
			g.Have[next]++
			list = append(list, d.Fit.Open("a node of group "+g.Name, g.Templates[next]))
		}
	}
	return list
}

// nextZone is the index of the zone of the i-th node that is yet to be launched:
// the one where it was launched by us, or where Auto Scaling would.
func nextZone(g *cluster.Group, i int) int {
	if i < len(g.LaunchedIn) {
		return g.ZoneOf(g.LaunchedIn[i])
	}
	s := Supply(g, 0)
	return g.ZoneOf(s.Template[s.Next(make([]int, len(s.Template)))[0]].Zone)
}

// Lifted takes the pods that leave with a node off it, in the order in which they
// are placed again.
func (d *Seats) Lifted(n *cluster.Node) []fit.Tenant {
	list := d.Fit.Sorted(d.moving(n), []*fit.NodeTemplate{n.Place.Template()})
	for _, t := range list {
		d.Fit.Lift(t, n.Place)
	}
	return list
}

// SettleBack seats a pod at its own node again, if it was lifted from one and has
// found no other: for as long as it runs there it keeps others away.
func (d *Seats) SettleBack(t fit.Tenant) {
	if n := d.Node(t.Pod.Node); n != nil {
		d.Fit.Put(t, n.Place)
	}
}

// Awaited reports whether only we replace this node, so that its pods count as waiting as soon as
// its drain is open, and may begin.
func Awaited(n *cluster.Node) bool {
	if n.Stage != cluster.Draining || !n.Reported || !n.Report.Phase.Open() {
		return false
	}
	if n.Draining() == contract.KindSpot {
		return n.Instance != nil && n.Instance.Live()
	}
	return n.Unhurried() && !n.Held
}

// Staying are the nodes whose drain was cancelled a moment ago, or is cancelled now.
func (d *Seats) Staying() []*fit.Place { return cluster.Places(d.cancelled()) }

func (d *Seats) cancelled() []*cluster.Node {
	var list []*cluster.Node
	for n := range d.In(cluster.Returning) {
		if d.ReturnsSoon(n) {
			list = append(list, n)
		}
	}
	for n := range d.In(cluster.ScalingDown) {
		if n.Cancelled {
			list = append(list, n)
		}
	}
	return list
}

// moving are the pods of a node that need another place when it is removed. One that may end where
// it is needs none, nor one that is not moved off a node that others drain without hurry while
// there is time. What Auto Scaling or EC2 ends is left by all. One that is ending stands for its
// successor, while that is still to come.
func (d *Seats) moving(n *cluster.Node) []fit.Tenant {
	kind := n.Draining()
	if leaves := n.Instance != nil && n.Instance.Terminating(); leaves && kind.Strength() < contract.KindASG.Strength() {
		kind = contract.KindASG // its agent learns so in this plan
	}
	deadline := standin.KnownDeadline(n, n.Report)
	urgency := max(d.UrgencyOf(kind, n.DrainBegan(n.Report, deadline), deadline), drainable.UrgencyOf(kind, time.Time{}))
	var list []fit.Tenant
	for i, p := range n.Pods {
		if d.Unsucceeded()[p] {
			list = append(list, d.Tenant(n, i))
			continue
		}
		if !drainable.MustBePlacedAgain(p) || d.Expendable(p) {
			continue
		}
		rules := d.Policy.Manner.Rules(p, kind == contract.KindScaleDown, false)
		outcome := drainable.Judge(drainable.Question{Pod: p, Now: d.Now, Policy: rules, Urgency: urgency}).Outcome
		if outcome == drainable.Wait || outcome == drainable.Block && n.Stage == cluster.Draining {
			continue
		}
		list = append(list, d.Tenant(n, i))
	}
	return list
}

// Spend takes from the budgets what a drain under way will take from them.
func (d *Seats) Spend(n *cluster.Node) {
	for _, p := range n.Pods {
		if drainable.MustBePlacedAgain(p) {
			d.Budgets.Take(p)
		}
	}
}
