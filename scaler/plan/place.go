package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

func places(nodes []*node) []*fit.Place {
	var list []*fit.Place
	for _, n := range nodes {
		if n.open {
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
			list = append(list, d.fit.Open("instance "+i.ID, g.looks[g.zoneOf(i.Zone)]))
		}
		for i := range g.unlaunched() {
			next := g.nextZone(i)
			g.have[next]++
			list = append(list, d.fit.Open("a node of group "+g.Name, g.looks[next]))
		}
	}
	return list
}

// nextZone is the index of the zone of the i-th node that is yet to be launched:
// the one where it was launched by us, or where Auto Scaling would.
func (g *group) nextZone(i int) int {
	if i < len(g.promised) {
		return g.zoneOf(g.promised[i])
	}
	s := g.supply(0)
	return g.zoneOf(s.Looks[s.Next(make([]int, len(s.Looks)))[0]].Zone)
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

// unlaunched is how much of that can be counted on: what Auto Scaling goes on
// trying, and what it has told us that it launched.
func (g *group) unlaunched() int {
	if g.paused() != nil || g.suspended(processLaunch) {
		return min(g.owed(), len(g.promised))
	}
	return max(0, g.Desired-len(g.live)+g.replaced)
}

// zoneOf is the index of the zone among the group's looks; 0 where it is none of
// them.
func (g *group) zoneOf(zone string) int {
	return max(0, slices.IndexFunc(g.looks, func(l *fit.Looks) bool { return l.Zone == zone }))
}

// move is a pod that was given a seat at another node.
type move struct {
	pod fit.Tenant
	to  *fit.Place
}

// lifted takes the pods that leave with a node off it, in the order in which they
// are placed again.
func (d *decision) lifted(n *node) []fit.Tenant {
	list := d.fit.Sorted(d.moving(n), []*fit.Looks{n.place.Looks()})
	for _, t := range list {
		d.fit.Lift(t, n.place)
	}
	return list
}

// foresee finds the pods that will wait soon: a spot interruption is not
// replaced before the instance is gone, so the pods of its node wait from the
// notice on. Where there is time for a replacement first, they wait from when it is
// the node's turn. Each counts until it is evicted, and then its successor does.
func (d *decision) foresee() []fit.Tenant {
	var list []fit.Tenant
	for _, n := range d.in(leaving) {
		if n.awaited() {
			list = append(list, d.lifted(n)...)
		}
	}
	return list
}

// seatLeaving gives the pods of nodes that others take what room is left after
// the waiting ones, so that nobody is moved there. It brings no node: Auto
// Scaling replaces what it takes.
func (d *decision) seatLeaving() {
	open := d.fit.NewRow(slices.Concat(places(d.in(serving)), d.staying(), d.coming))
	for _, n := range d.in(leaving, terminating) {
		if !d.unproven(n) {
			d.spend(n)
		}
		if n.awaited() {
			continue
		}
		for _, t := range d.lifted(n) {
			if open.Seat(t) == nil {
				d.settleBack(t)
			}
		}
	}
}

// settleBack seats a pod at its own node again, if it was lifted from one and has
// found no other: for as long as it runs there it keeps others away.
func (d *decision) settleBack(t fit.Tenant) {
	if n := d.node(t.Pod.Node); n != nil {
		d.fit.Put(t, n.place)
	}
}

// awaited says that nobody but us replaces this node, so that its pods count as
// waiting as soon as its drain is open, and may begin.
func (n *node) awaited() bool {
	if n.stage != leaving || !n.reported || !n.report.Phase.Open() {
		return false
	}
	if n.draining() == contract.KindSpot {
		return n.instance != nil && n.instance.Live()
	}
	return n.unhurried() && !n.held
}

// staying are the nodes whose drain was taken back a moment ago, or is so now.
func (d *decision) staying() []*fit.Place { return places(d.kept()) }

func (d *decision) kept() []*node {
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
	return list
}

// moving are the pods of a node that need another place when it goes. One that
// may end where it is needs none, nor one that nobody moves off a node that others
// drain without hurry while there is time. What Auto Scaling or EC2 ends is left by all.
// One that is ending stands for its successor, while that is still to come.
func (d *decision) moving(n *node) []fit.Tenant {
	kind := n.draining()
	if leaves := n.instance != nil && n.instance.Leaving(); leaves && kind.Strength() < contract.KindASG.Strength() {
		kind = contract.KindASG // its agent is told so in this plan
	}
	urgency := max(d.urgencyOf(kind, n.drainBegan(n.report), n.deadline(n.report)), drainable.UrgencyOf(kind, time.Time{}))
	var list []fit.Tenant
	for i, p := range n.pods {
		if d.unsucceeded()[p] {
			list = append(list, d.tenant(n, i))
			continue
		}
		if !drainable.MustBePlacedAgain(p) || d.expendable(p) {
			continue
		}
		rules := d.policy.Manner.Rules(p, kind == contract.KindScaleDown, false)
		outcome := drainable.Judge(drainable.Question{Pod: p, Now: d.now, Policy: rules, Urgency: urgency}).Outcome
		if outcome == drainable.Wait || outcome == drainable.Block && n.stage == leaving {
			continue
		}
		list = append(list, d.tenant(n, i))
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

// counted is a number of things, in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// whileFewer says what a drain waits for where so many may be under way.
func whileFewer(than int) string {
	if than == 1 {
		return "no other drain is under way"
	}
	return fmt.Sprintf("fewer than %d drains are under way", than)
}

// listed joins words as people do.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
