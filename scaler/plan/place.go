package plan

import (
	"fmt"
	"slices"
	"strings"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// rows are places in the order in which they are tried, for many pods of few
// classes: a place that has refused a pod is not asked for its like again. No
// room may be freed while they are in use.
type rows struct {
	places []*fit.Place
	from   map[*fit.Class]int
}

func newRows(places []*fit.Place) *rows { return &rows{places, map[*fit.Class]int{}} }

// seat finds the first place that takes the pod.
func (r *rows) seat(c *fit.Cluster, t fit.Tenant) *fit.Place {
	for i := r.from[t.Class]; i < len(r.places); i++ {
		r.from[t.Class] = i
		if c.TrySeat(t, r.places[i]) {
			return r.places[i]
		}
	}
	r.from[t.Class] = len(r.places)
	return nil
}

// find finds the first place that would take a pod of the class.
func (r *rows) find(c *fit.Cluster, class *fit.Class) *fit.Place {
	for i := r.from[class]; i < len(r.places); i++ {
		r.from[class] = i
		if len(c.Fits(class, r.places[i])) == 0 {
			return r.places[i]
		}
	}
	r.from[class] = len(r.places)
	return nil
}

func places(nodes []*node) []*fit.Place {
	var list []*fit.Place
	for _, n := range nodes {
		if n.place != nil {
			list = append(list, n.place)
		}
	}
	return list
}

// onTheWay lists the nodes that will be there soon: those that have registered,
// instances without a node, and what Auto Scaling has yet to launch.
func (d *decision) onTheWay() []*fit.Place {
	list := places(d.in(coming))
	for _, g := range d.groups {
		if len(g.looks) == 0 {
			continue
		}
		for _, i := range d.unregistered(g) {
			list = append(list, fit.NewPlace("instance "+i.ID, g.looksIn(i.Zone)...))
		}
		for range g.unlaunched() {
			list = append(list, fit.NewPlace("a node of group "+g.Name, g.looks...))
		}
	}
	return list
}

// unregistered are live instances whose node is still to come.
func (d *decision) unregistered(g *group) []*fleet.Instance {
	joined := map[string]bool{}
	for _, n := range g.nodes {
		joined[n.InstanceID()] = true
	}
	var list []*fleet.Instance
	for _, i := range g.live {
		if _, lost := g.lost[i.ID]; !joined[i.ID] && !lost {
			list = append(list, i)
		}
	}
	return list
}

// owed is what Auto Scaling has yet to launch to have as many as desired.
func (g *group) owed() int { return max(0, g.Desired-len(g.live)) }

// unlaunched is how much of that can be counted on.
func (g *group) unlaunched() int {
	if g.paused != nil || g.suspended(processLaunch) {
		return 0
	}
	return g.owed()
}

// looksIn are the looks of a new node in that zone, or all where the zone is
// unknown.
func (g *group) looksIn(zone string) []*fit.Looks {
	for _, l := range g.looks {
		if l.Zone == zone && zone != "" {
			return []*fit.Looks{l}
		}
	}
	return g.looks
}

// seatRetiring lets the pods of nodes that we retire keep the places that they
// were promised on nodes that serve, before any other pod is looked at. If there
// is none for one any more, the retirement is taken back.
func (d *decision) seatRetiring() {
	for _, n := range d.in(retiring) {
		d.spend(n)
		start, serving := d.fit.Fork(), places(d.in(serving))
		for _, t := range d.fit.Sorted(d.moving(n), nil) {
			if d.fit.Seat(t, serving) == nil {
				d.fit.Revert(start)
				d.keep(n, fmt.Sprintf("pod %s has no other place any more", t.Pod.Key()))
				break
			}
		}
	}
}

// foresee finds the pods that will wait soon: a spot interruption is not
// replaced before the instance is gone, so the pods of its node wait from the
// notice on. Each counts until it is evicted, and then its successor does.
func (d *decision) foresee() []fit.Tenant {
	var list []fit.Tenant
	for _, n := range d.in(leaving) {
		if n.awaited() {
			list = append(list, d.moving(n)...)
		}
	}
	return list
}

// seatLeaving gives the pods of nodes that others take what room is left after
// the waiting ones, so that nobody is moved there. It brings no node: Auto
// Scaling replaces what it takes.
func (d *decision) seatLeaving() {
	open := newRows(slices.Concat(places(d.in(serving)), d.staying(), d.coming))
	for _, n := range d.in(leaving, terminating) {
		d.spend(n)
		if n.awaited() {
			continue
		}
		for _, t := range d.fit.Sorted(d.moving(n), nil) {
			open.seat(d.fit, t)
		}
	}
}

// awaited says that nobody but us replaces this node, so that its pods count as
// waiting as soon as its drain is open.
func (n *node) awaited() bool {
	return n.stage == leaving && n.reported && n.report.Phase.Open() &&
		n.draining() == contract.KindSpot && n.instance != nil && n.instance.Live()
}

// staying are the nodes whose drain was taken back a moment ago, or is so now.
func (d *decision) staying() []*fit.Place {
	var list []*node
	for _, n := range d.in(returning) {
		if d.returnsSoon(n) {
			list = append(list, n)
		}
	}
	for _, n := range d.in(retiring) {
		if n.kept {
			list = append(list, n)
		}
	}
	return places(list)
}

// moving are the pods of a node that need another place when it goes. One that
// may end where it is needs none.
func (d *decision) moving(n *node) []fit.Tenant {
	urgency := drainable.UrgencyOf(n.draining(), n.request.Deadline.Time)
	var list []fit.Tenant
	for _, p := range n.pods {
		if !drainable.MustBePlacedAgain(p) || d.expendable(p) {
			continue
		}
		if drainable.Judge(drainable.Question{Pod: p, Now: d.now, Urgency: urgency}).Outcome == drainable.Wait {
			continue
		}
		list = append(list, d.fit.Tenant(p))
	}
	return list
}

// spend takes from the budgets what a drain under way will take from them.
func (d *decision) spend(n *node) {
	for _, p := range n.pods {
		if drainable.MustBePlacedAgain(p) {
			d.budgets.Take(p)
		}
	}
}

// refs names the pods of tenants.
func refs(tenants []fit.Tenant) []PodRef {
	list := make([]PodRef, len(tenants))
	for i, t := range tenants {
		list[i] = PodRef{Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.Pod.UID}
	}
	return list
}

// caveat says what was not looked at for a pod.
func caveat(c *fit.Class) string {
	if len(c.NotConsidered) == 0 {
		return ""
	}
	return fmt.Sprintf(" (its %s not considered)", listed(c.NotConsidered))
}

// listed joins words as people do.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
