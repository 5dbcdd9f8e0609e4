package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/scaler/fit"
)

// Processes of Auto Scaling that decisions ask for by name.
const processLaunch = "Launch"

// grow makes groups larger for the pods that are left. The largest pod chooses
// first, because the fewest groups can take it; what room its new nodes have
// goes to the others, the largest first.
func (d *decision) grow() {
	left := d.inOrder(d.left)
	for len(left) > 0 {
		best, ok := d.choose(left)
		if !ok {
			left = d.refuse(left)
			continue
		}
		packing := d.fit.Pack(left, best.group.supply(best.room))
		for _, p := range packing.Places {
			best.group.have[best.group.zoneOf(p.Looks().Zone)]++
		}
		best.group.fresh = append(best.group.fresh, packing.Places...)
		left = d.inOrder(packing.Left)
	}
	for _, g := range d.groups {
		d.growBy(g)
	}
}

// option is one group that could take pods, and how.
type option struct {
	group   *group
	room    int
	packing fit.Packing
	waste   float64
}

// choose finds the best group for the first of these pods, the others going
// along where they fit: least waste, then the most pods, then the fewest nodes,
// then the first name.
func (d *decision) choose(left []fit.Tenant) (option, bool) {
	var options []option
	for _, g := range d.groups {
		room, _ := g.room()
		if room <= 0 || !d.fitsNew(left[0].Class, g) {
			continue
		}
		start := d.fit.Fork()
		packing := d.fit.Pack(left, g.supply(room))
		if len(packing.Places) > 0 {
			options = append(options, option{g, room, packing, fit.Waste(packing.Places)})
		}
		d.fit.Revert(start)
	}
	if len(options) == 0 {
		return option{}, false
	}
	return slices.MinFunc(options, func(a, b option) int {
		return cmp.Or(
			cmp.Compare(a.waste, b.waste),
			cmp.Compare(len(a.packing.Left), len(b.packing.Left)),
			cmp.Compare(len(a.packing.Places), len(b.packing.Places)),
			cmp.Compare(a.group.Name, b.group.Name),
		)
	}), true
}

func (d *decision) fitsNew(c *fit.Class, g *group) bool {
	looks, _ := g.open()
	return len(d.fit.FitsNew(c, looks)) == 0
}

// supply is where up to limit new nodes of the group come from: zones in which no
// pause runs.
func (g *group) supply(limit int) fit.Supply {
	looks, have := g.open()
	return fit.Supply{Name: "group " + g.Name, Looks: looks, Have: have, Limit: limit, Steered: g.unsteered == ""}
}

// base is what the group grows from. Auto Scaling may have more instances than
// desired for a while; asking for fewer than there are would end some of them.
func (g *group) base() int { return max(g.Desired, len(g.live)) }

// room is how many nodes the group may still grow by; if none, why.
func (g *group) room() (n int, whyNot string) {
	switch {
	case len(g.looks) == 0 && len(g.Faults) > 0:
		return 0, strings.Join(g.Faults, "; ")
	case len(g.looks) == 0:
		return 0, "nothing is known of what its nodes look like"
	case g.suspended(processLaunch):
		return 0, "its Launch process is suspended"
	case g.paused() != nil:
		return 0, g.resting()
	}
	n = g.Max - g.base() - len(g.fresh)
	if n <= 0 {
		return 0, fmt.Sprintf("at its maximum of %d", g.Max)
	}
	return n, ""
}

func (g *group) suspended(process string) bool { return slices.Contains(g.Suspended, process) }

// refuse settles the verdict of the pods like the first, and returns the rest.
func (d *decision) refuse(left []fit.Tenant) (rest []fit.Tenant) {
	class := left[0].Class
	reason, message := d.whyNot(class)
	for _, t := range left {
		if t.Class != class {
			rest = append(rest, t)
			continue
		}
		d.sayPod(t, reason, "", message)
	}
	return rest
}

// growBy turns the new nodes of a group into actions, and tells the pods.
func (d *decision) growBy(g *group) {
	if len(g.fresh) == 0 {
		return
	}
	from, to := g.Desired, g.base()+len(g.fresh)
	for _, p := range g.fresh {
		for _, t := range p.Tenants() {
			d.sayPod(t, PodGetsNode, g.Name, fmt.Sprintf("group %s grows %d→%d for it%s", g.Name, from, to, caveat(t.Class)))
		}
	}
	if pace := d.paceOf(g.Name); d.now.Before(pace) {
		d.clock.at(pace)
		return
	}
	if g.unanswered {
		return // what is under way is counted already; the answer brings the next look
	}
	for _, x := range d.grows(g) {
		d.do(x)
	}
	count, _ := d.burst(g.Name)
	d.state.GrownAt[g.Name], d.state.Bursts[g.Name] = d.now, count+1
}

const (
	// The pods of a burst are created and judged one after the other. The first
	// brings nodes at once; for those after it a group grows again at intervals
	// that begin at burstPace and double, so that a thousand pods are a handful
	// of calls.
	burstPace, burstPaceMost = 100 * time.Millisecond, time.Second
	// burstOver is how long after it last grew a group's next growth is the
	// first of another burst.
	burstOver = 10 * time.Second
)

// burst is how often the group was grown in the burst that goes on.
func (d *decision) burst(group string) (count int, goesOn bool) {
	at, grew := d.state.GrownAt[group]
	if !grew || d.now.Sub(at) >= burstOver {
		return 0, false
	}
	return d.state.Bursts[group], true
}

// paceOf is the earliest moment at which the group grows again.
func (d *decision) paceOf(group string) time.Time {
	count, goesOn := d.burst(group)
	if !goesOn || count == 0 {
		return d.now
	}
	return d.state.GrownAt[group].Add(doubled(burstPace, count, burstPaceMost))
}
