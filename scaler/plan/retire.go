package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// beginRetirements finds the nodes that nobody needs: all of them together could go at
// once, for the pods of every one have a place on nodes that stay. Each keeps on itself
// since when that is so, and is retired when it has been so for long enough, the one that
// is unneeded the longest first, but behind others what leaves slowly.
func (d *decision) beginRetirements() {
	r := d.newRetirement()
	r.carryOnSwap()
	chosen, swap := r.imagine(r.candidates())
	for _, c := range chosen {
		c.slow = r.slow(c)
	}
	slices.SortStableFunc(chosen, func(a, b *candidate) int {
		return cmp.Or(compareBool(a.slow, b.slow), compareBool(a.since.IsZero(), b.since.IsZero()), a.since.Compare(b.since))
	})
	for _, c := range chosen {
		r.unneeded(c)
	}
	r.bideSwap(swap)
	for _, n := range d.nodes {
		d.unmark(n)
		d.sayStage(n)
	}
}

// retirement is one search for nodes that nobody needs.
type retirement struct {
	*decision
	// places are those that pods could be moved to, in the order in which they are tried,
	// and row knows what they have refused.
	places []*fit.Place
	row    *fit.Row
	// refuges are the rows of places on nodes that are Ready, in which movers look when
	// their node goes now.
	refuges []*fit.Row
	// rehearsal says that nobody wants to know why a node stays.
	rehearsal bool
	// began counts the steps before the search, and part is the share of the budget at
	// which what goes on now ends, in hundredths.
	began, part int64
	// leaving is by how much each group gets smaller by all that goes.
	leaving map[*group]int
	// draining counts the nodes with pods on them that are being drained without
	// hurry, and those whose turn it is, of at most allowed.
	draining, allowed int
	remains           remains
	// atOnce counts what is being scaled down, and ending by how much each group gets
	// smaller by what has begun: leaving counts what goes in thought, too.
	atOnce atOnce
	ending map[*group]int
	// reserves are the head-rooms that stay. Choosy says that pods of buffers ask who else
	// is where, and seatedBefore how many of each have a seat before any further node goes.
	reserves     []*reserve
	choosy       bool
	seatedBefore map[*buffer]int
	// halt is why nothing is retired at all, empty where something may be.
	halt string
	// unlandedOnes is what unlandedKinds has found; nil before.
	unlandedOnes []fit.Tenant
	// swapped are the nodes of the swap that is under way, those that go and those that
	// came for them, and claimed the places that are not for the pods of others.
	swapped map[*node]bool
	claimed map[*fit.Place]bool
}

func (d *decision) newRetirement() *retirement {
	r := &retirement{
		decision: d, swapped: map[*node]bool{}, claimed: map[*fit.Place]bool{},
		began: d.fit.Steps(), part: shareChoice,
		leaving: d.lessening(), ending: d.ending(), allowed: d.drainLimit(), halt: d.halted(), atOnce: d.beingScaledDown(),
	}
	r.draining = d.underWay() + d.turns
	for _, n := range d.in(serving, cordoned, returning, unready) {
		r.remains.add(n)
	}
	d.standInBoth()
	r.reserves = r.newReserves()
	r.seatedBefore = r.seatsChoosy()
	return r
}

// lessening is by how much less groups will want when all is done that has begun: by the
// nodes on their way out, by instances that this plan ends beside them, and by what it
// takes back that has not come.
func (d *decision) lessening() map[*group]int {
	less, counted := map[*group]int{}, map[string]bool{}
	count := func(g *group, instance string) {
		if !counted[instance] {
			counted[instance] = true
			less[g]++
		}
	}
	for _, n := range d.in(retiring, terminating) {
		if !n.kept && n.instance != nil && n.instance.Live() {
			count(n.group, n.instance.ID)
		}
	}
	for _, a := range d.actions {
		switch a := a.(type) {
		case Terminate:
			if g := d.groupOf(a.Group); a.Decrement || g.excess() > 0 {
				count(g, a.Instance)
			}
		case Lower:
			less[d.groupOf(a.Group)] += a.From - a.To
		}
	}
	return less
}

func (d *decision) drainLimit() int {
	if d.policy.MaxDrainParallelism > 0 {
		return d.policy.MaxDrainParallelism
	}
	return max(2, len(d.nodes)/10)
}

// candidates are the nodes of our groups that every rule lets go, Ready or not any more;
// the others are told why not.
func (r *retirement) candidates() []*candidate {
	var list []*candidate
	for _, n := range r.in(serving, cordoned, unready) {
		if n.group == nil || !n.instance.Live() || r.swapped[n] || n.released {
			continue
		}
		reason, why := r.mayGo(n)
		if reason == "" {
			reason, why = r.limited(n)
		}
		c := r.candidate(n)
		c.paused = r.stopped(n) != ""
		if reason == "" {
			reason, why = r.leavers(c)
		}
		if reason != "" {
			c.say(reason, why)
			continue
		}
		list = append(list, c)
	}
	return list
}

func (r *retirement) candidate(n *node) *candidate {
	return &candidate{node: n, worth: n.worth(), size: n.work(), used: r.used(n)}
}

// leavers finds the pods that leave with the node, or one that may not.
func (r *retirement) leavers(c *candidate) (Reason, string) {
	if c.since, _ = r.marked(c.node); c.stage == unready {
		c.since = c.unreadySince()
	}
	c.movers, c.evicted = make([]fit.Tenant, 0, len(c.pods)), make([]*fleet.Pod, 0, len(c.pods))
	question := drainable.Question{Now: r.now, Budgets: r.unspent(), Owners: r.owners}
	for i, p := range c.pods {
		question.Pod, question.Policy = p, r.rulesFor(p)
		v := question.Judge()
		switch {
		case v.Outcome == drainable.Block && !r.passes(c, v):
			return NodeBlocked, fmt.Sprintf("pod %s may not leave: %s", p.Key(), v.Reason)
		case v.Outcome == drainable.Wait && p.Deleted.IsZero():
			c.task = cmp.Or(c.task, fmt.Sprintf("pod %s may stay until it ends: %s", p.Key(), v.Reason))
			c.stuck = c.stuck || r.ripe(c)
			continue
		case v.Outcome == drainable.Skip || v.Outcome == drainable.Wait:
			continue
		}
		t := r.tenant(c.node, i)
		if t.Class.Tolerates(closed...) {
			return NodeBlocked, fmt.Sprintf("pod %s tolerates a node that is being drained, and would come back", p.Key())
		}
		c.evicted = append(c.evicted, p)
		c.stuck = c.stuck || v.Outcome == drainable.Block && r.ripe(c)
		if r.expendable(p) {
			continue
		}
		c.movers = append(c.movers, t)
		c.priority += int64(p.Priority())
		c.age -= p.Created.Unix()
	}
	c.seekers = r.fit.Sorted(c.movers, []*fit.Looks{c.place.Looks()})
	return "", ""
}

// rulesFor are those by which a pod lets its node be chosen. For an expendable one nobody
// keeps a node that could be drained: it is only asked what the drain will ask, as that does
// not end before the pod has left.
func (r *retirement) rulesFor(p *fleet.Pod) drainable.Policy {
	var rules drainable.Policy
	if !r.expendable(p) {
		rules = r.policy.Drainable
	}
	rules.WaitForJobs = r.policy.Manner.WaitForJobs
	return rules
}

// passes says that what blocks a pod of a marked node, or of one that is swapped, is a
// budget that may have room again: the node's clock goes on meanwhile.
func (r *retirement) passes(c *candidate, v drainable.Verdict) bool {
	return (!c.since.IsZero() || r.swapped[c.node]) && v.Rule == drainable.RuleBudget && !v.Lasting
}

// slow says that the node's clock has run out and that its pods are more than their
// budgets let go at once: they leave one after the other, and no other node of these
// budgets goes meanwhile.
func (r *retirement) slow(c *candidate) bool {
	if c.stuck || c.since.IsZero() || !r.ripe(c) {
		return false
	}
	_, over := overspends(r.unspent(), c.evicted, r.unspent().Guard)
	return over
}

// ripe says that the clock of a node that has one has run out.
func (r *retirement) ripe(c *candidate) bool {
	due := c.due(r.policy)
	if r.now.Before(due) {
		r.clock.at(due)
		return false
	}
	return true
}

// typicalPrice is what a cpu costs in an hour, or the memory that costs as much, in
// dollars: that of m5 on demand in us-east-1.
// https://aws.amazon.com/ec2/pricing/on-demand/
const typicalPrice = 0.034

// worth is what the node costs in an hour, in dollars. Where the price of its group is
// not known, its size stands for it.
func (n *node) worth() float64 {
	if price := n.group.price(); price > 0 {
		return price
	}
	return typicalPrice * n.work()
}

// work is what the node has, in cpus and in the memory that costs as much.
func (n *node) work() float64 {
	milli, bytes := n.size()
	return max(0.001, float64(milli)/1000+float64(bytes)/memoryPerCPU)
}

// depart retires a node whose time has come, if its pods, drains and budgets allow for it by now;
// otherwise it waits for that reason. since makes its request another one than those
// before, and why is for people; text says the same in its verdict.
func (r *retirement) depart(c *candidate, since time.Time, why, text string, waits Reason) (gone bool) {
	n := c.node
	if c.task != "" {
		n.say(NodeBlocked, fmt.Sprintf("%s; %s", text, c.task))
		return false
	}
	_, occupied := n.occupied(r.now)
	if occupied && !c.stuck && r.draining >= r.allowed {
		n.say(waits, fmt.Sprintf("%s; it waits until %s", text, whileFewer(r.allowed)))
		return false
	}
	if why := r.atOnce.full(n, c.stuck); why != "" {
		r.clock.at(r.atOnce.frees)
		n.say(waits, fmt.Sprintf("%s; it waits until %s", text, why))
		return false
	}
	if reason, whyNot := r.take(c); reason != "" {
		n.say(reason, fmt.Sprintf("%s; %s", text, whyNot))
		return false
	}
	if occupied {
		r.draining++
	}
	r.atOnce.add(n, occupied && c.stuck)
	r.ending[n.group]++
	r.do(Retire{
		Group: n.group.Name, Node: n.ref(), ID: contract.RetireID(n.instance.ID, since), Kind: contract.KindScaleDown, Why: why,
	})
	n.say(NodeRetiring, text)
	return true
}

// unmark takes the mark off a node that is needed again, so that its clock
// starts anew.
func (d *decision) unmark(n *node) {
	stays := n.stage == serving || n.stage == cordoned || n.stage == unready || n.stage == returning || n.kept
	if !stays || n.gone || n.group == nil || n.reason == NodeNotAsked {
		return
	}
	if _, ok, _ := contract.Unneeded(n.Taints); ok {
		d.do(Unmark{Group: n.group.Name, Node: n.ref(), Why: cmp.Or(n.message, "it stays")})
	}
}
