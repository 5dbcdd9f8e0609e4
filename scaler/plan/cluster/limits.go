package cluster

import (
	"math"

	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Totals is the size that the cluster has or will have, and how large it may be.
type Totals struct {
	nodes               int64
	milli, bytes        int64
	most                int64 // nodes; 0 without a limit
	mostMilli, mostByte int64
}

// Measure counts what is there and what may come, in any group and outside them: also what Auto
// Scaling owes while it has no capacity, as it launches that when it has. What is stopped in a warm
// pool is neither.
func (d *Cluster) Measure() {
	c := d.Totals
	c.most, c.mostMilli, c.mostByte = int64(d.Policy.MaxNodes), d.Policy.Cores.Max*1000, d.Policy.Memory.Max*policy.Gib
	for _, n := range d.Nodes {
		if n.Stage == inWarmPool {
			continue
		}
		milli, bytes := n.size()
		c.nodes++
		c.milli += milli
		c.bytes += bytes
	}
	for _, g := range d.Groups {
		c.Add(g, len(d.Unregistered(g))+max(g.Unlaunched(), g.Owed()))
	}
}

// size is the node's capacity, or what pods may have of it where that is not known; no more than its
// group's next node has where both are of one template: a kubelet may report anything, and one that
// does would keep all groups from growing, or all nodes from being needed.
func (n *Node) size() (milli, bytes int64) {
	milli, bytes = n.milli, n.bytes
	if g := n.Group; g != nil && n.Instance != nil && g.Template != "" && n.Instance.Template == g.Template && len(g.NodeTemplates) > 0 {
		mostMilli, mostBytes := g.size()
		milli, bytes = min(milli, mostMilli), min(bytes, mostBytes)
	}
	return milli, bytes
}

// Remains is the size of the nodes that stay: no more may be removed than would leave the least
// that people want.
type Remains struct{ milli, bytes int64 }

func (r *Remains) Add(n *Node) {
	milli, bytes := n.size()
	r.milli, r.bytes = r.milli+milli, r.bytes+bytes
}

func (r *Remains) Take(n *Node) {
	milli, bytes := n.size()
	r.milli, r.bytes = r.milli-milli, r.bytes-bytes
}

// WhyKept says why a node may not go; empty if it may.
func (r *Remains) WhyKept(n *Node, p policy.Policy) verdict.Details {
	milli, bytes := n.size()
	switch {
	case r.milli-milli < p.Cores.Min*1000:
		return verdict.Say("the cluster may not have fewer than {min} cores", verdict.Min(int(p.Cores.Min)))
	case r.bytes-bytes < p.Memory.Min*policy.Gib:
		return verdict.Say("the cluster may not have less than {min} GiB of memory", verdict.Min(int(p.Memory.Min)))
	}
	return nil
}

// Add counts new nodes of a group.
func (c *Totals) Add(g *Group, n int) {
	milli, bytes := g.size()
	c.nodes += int64(n)
	c.milli += int64(n) * milli
	c.bytes += int64(n) * bytes
}

// size is the largest that the group's next node may have.
func (g *Group) size() (milli, bytes int64) {
	for i := range g.NodeTemplates {
		size := g.NodeTemplates[i].Largest
		if len(size) == 0 {
			size = CapacityOf(&g.NodeTemplates[i])
		}
		milli, bytes = max(milli, size.Cpu().MilliValue()), max(bytes, size.Memory().Value())
	}
	return milli, bytes
}

// Room is how many nodes of a group the cluster may still grow by; if none, why.
func (c *Totals) Room(g *Group) (n int, whyNot verdict.Details) {
	n = math.MaxInt32
	tighten := func(have, each, most, unit int64, why string) {
		if left := max(0, most-have) / max(1, each); int64(n) > left {
			n = int(left)
			if n == 0 {
				whyNot = verdict.Say(why, verdict.Max(int(most/unit)))
			}
		}
	}
	if c.most > 0 {
		tighten(c.nodes, 1, c.most, 1, "the cluster is at its maximum of {max} {max:node|nodes}")
	}
	milli, bytes := g.size()
	tighten(c.milli, milli, c.mostMilli, 1000, "with another node the cluster would have more than its maximum of {max} cores")
	tighten(c.bytes, bytes, c.mostByte, policy.Gib, "with another node the cluster would have more than its maximum of {max} GiB of memory")
	return n, whyNot
}

// massOutage says how many of the cluster's nodes are unready, where that are so many that the
// cause is not theirs: the network, or the control plane. Nothing is scaled down then, and no
// group grows. Empty where they are few.
func (d *Cluster) massOutage() verdict.Details {
	sick, all := 0, 0
	for _, n := range d.Nodes {
		if n.Stage == inWarmPool || n.Stage == Upcoming || n.Stage == Terminating {
			continue
		}
		all++
		if !n.Ready && (n.Stage == Unready || n.Stage == Returning) {
			sick++
		}
	}
	if !d.Policy.TooMany(sick, all) {
		return nil
	}
	return verdict.Say("{count} of {all} nodes are unready", verdict.Count(sick), verdict.All(all))
}

// illness says what is wrong with a group so many of whose nodes are unready, or with a
// cluster, that more of them would most likely be so too; empty if nothing is.
func (d *Cluster) illness(g *Group) verdict.Details {
	all, sick := 0, 0
	for _, n := range g.Nodes {
		if n.Stage != inWarmPool {
			all++
		}
		if n.Stage == Unready {
			sick++
		}
	}
	switch {
	case d.Policy.TooMany(sick, all):
		return verdict.Say("{count} of its {all} nodes are unready", verdict.Count(sick), verdict.All(all))
	case d.Outage != nil:
		return verdict.Say("no group grows while {why}", verdict.Why(d.Outage))
	}
	return nil
}
