package plan

import (
	"fmt"
	"strconv"
	"strings"

	"windlass.dev/windlass/scaler/fit"
)

// Range is a bound below and one above, both included.
type Range struct{ Min, Max int64 }

// mostOfRange is more than any cluster has, and can still be counted in bytes and in
// thousandths.
const mostOfRange = 1 << 32

// ParseRange reads min:max, as Cluster Autoscaler's --cores-total and
// --memory-total have it.
func ParseRange(text string) (Range, error) {
	low, high, ok := strings.Cut(text, ":")
	least, errLow := strconv.ParseInt(low, 10, 64)
	most, errHigh := strconv.ParseInt(high, 10, 64)
	if !ok || errLow != nil || errHigh != nil {
		return Range{}, fmt.Errorf("%q is no range such as 0:320000", text)
	}
	if least < 0 || most < least || most > mostOfRange {
		return Range{}, fmt.Errorf("%q is no range: want 0 ≤ min ≤ max ≤ %d", text, mostOfRange)
	}
	return Range{least, most}, nil
}

func (r Range) String() string { return fmt.Sprintf("%d:%d", r.Min, r.Max) }

// Set makes a Range the value of a flag.
func (r *Range) Set(text string) (err error) {
	*r, err = ParseRange(text)
	return err
}

// Type names it in the usage.
func (r *Range) Type() string { return "min:max" }

const gib = 1 << 30

// cluster is the size that the cluster has or will have, and how large it may be.
type cluster struct {
	nodes               int64
	milli, bytes        int64
	most                int64 // nodes; 0 without a limit
	mostMilli, mostByte int64
}

// measure counts what is there and what comes, whoever's it is. What is stopped in
// a warm pool is neither.
func (d *decision) measure() {
	c := d.cluster
	c.most, c.mostMilli, c.mostByte = int64(d.policy.MaxNodes), d.policy.Cores.Max*1000, d.policy.Memory.Max*gib
	for _, n := range d.nodes {
		if n.stage == pooled {
			continue
		}
		milli, bytes := n.size()
		c.nodes++
		c.milli += milli
		c.bytes += bytes
	}
	for _, g := range d.groups {
		c.add(g, len(d.unregistered(g))+g.unlaunched())
	}
}

// size is the node's capacity, or what pods may have of it where that is not known.
func (n *node) size() (milli, bytes int64) {
	size := n.Capacity
	if len(size) == 0 {
		size = n.Allocatable
	}
	return size.Cpu().MilliValue(), size.Memory().Value()
}

// remains is the size of the nodes that stay: no more may go than would leave the
// least that people want.
type remains struct{ milli, bytes int64 }

func (r *remains) add(n *node) {
	milli, bytes := n.size()
	r.milli, r.bytes = r.milli+milli, r.bytes+bytes
}

func (r *remains) take(n *node) {
	milli, bytes := n.size()
	r.milli, r.bytes = r.milli-milli, r.bytes-bytes
}

// needs says why a node may not go; empty if it may.
func (r *remains) needs(n *node, p Policy) string {
	milli, bytes := n.size()
	switch {
	case r.milli-milli < p.Cores.Min*1000:
		return fmt.Sprintf("the cluster may not have fewer than %d cores", p.Cores.Min)
	case r.bytes-bytes < p.Memory.Min*gib:
		return fmt.Sprintf("the cluster may not have less than %d GiB of memory", p.Memory.Min)
	}
	return ""
}

// add counts new nodes of a group.
func (c *cluster) add(g *group, n int) {
	milli, bytes := g.size()
	c.nodes += int64(n)
	c.milli += int64(n) * milli
	c.bytes += int64(n) * bytes
}

// size is that of the group's largest shape.
func (g *group) size() (milli, bytes int64) {
	for i := range g.Shapes {
		size := capacityOf(&g.Shapes[i])
		milli, bytes = max(milli, size.Cpu().MilliValue()), max(bytes, size.Memory().Value())
	}
	return milli, bytes
}

// room is how many nodes of a group the cluster may still grow by; if none, why.
func (c *cluster) room(g *group) (n int, whyNot string) {
	const plenty = 1 << 30
	n = plenty
	tighten := func(have, each, most int64, why string) {
		if left := max(0, most-have) / max(1, each); int64(n) > left {
			n = int(left)
			if n == 0 {
				whyNot = why
			}
		}
	}
	if c.most > 0 {
		tighten(c.nodes, 1, c.most, fmt.Sprintf("the cluster is at its maximum of %s", counted(int(c.most), "node")))
	}
	milli, bytes := g.size()
	tighten(c.milli, milli, c.mostMilli, fmt.Sprintf("with another node the cluster would have more than its maximum of %d cores", c.mostMilli/1000))
	tighten(c.bytes, bytes, c.mostByte, fmt.Sprintf("with another node the cluster would have more than its maximum of %d GiB of memory", c.mostByte/gib))
	return n, whyNot
}

// massOutage says how many of the cluster's nodes are unready, where that are so many that the
// cause is not theirs: the network, or the control plane. Nothing is retired then, and no
// group grows. Empty where they are few.
func (d *decision) massOutage() string {
	sick, all := 0, 0
	for _, n := range d.nodes {
		if n.stage == pooled || n.stage == coming || n.stage == terminating {
			continue
		}
		all++
		if !n.Ready && (n.stage == unready || n.stage == returning) {
			sick++
		}
	}
	if !d.policy.tooMany(sick, all) {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes are unready", sick, all)
}

// tooMany says that so many unready nodes are more than may be.
func (p Policy) tooMany(sick, all int) bool {
	return sick > p.MaxUnready && float64(sick)*100 > p.MaxUnreadyPercent*float64(all)
}

// illness says what is wrong with a group so many of whose nodes are unready, or with a
// cluster, that more of them would most likely be so too; empty if nothing is.
func (d *decision) illness(g *group) string {
	all, sick := 0, 0
	for _, n := range g.nodes {
		if n.stage != pooled {
			all++
		}
		if n.stage == unready {
			sick++
		}
	}
	switch {
	case d.policy.tooMany(sick, all):
		return fmt.Sprintf("%d of its %d nodes are unready", sick, all)
	case d.outage != "":
		return "no group grows while " + d.outage
	}
	return ""
}

// fillToMinimum grows groups that are smaller than they may be, where people want
// that: Auto Scaling keeps to its own bounds, and does not know those of --nodes.
func (d *decision) fillToMinimum() {
	if !d.policy.EnforceMinSize {
		return
	}
	for _, g := range d.groups {
		room, _ := g.room()
		lacks := min(room, g.Min-g.base()-len(g.fresh))
		if lacks <= 0 {
			continue
		}
		for range lacks {
			s := g.supply(lacks)
			zone := s.Next(make([]int, len(s.Looks)))[0]
			d.open(g, d.fit.Open("a new node of group "+g.Name, s.Looks[zone]))
		}
		g.note(fmt.Sprintf("its minimum is %d", g.Min))
	}
}

// open takes new nodes into the plan.
func (d *decision) open(g *group, places ...*fit.Place) {
	for _, p := range places {
		g.have[g.zoneOf(p.Looks().Zone)]++
	}
	g.fresh = append(g.fresh, places...)
	d.cluster.add(g, len(places))
}
