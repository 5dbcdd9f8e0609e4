package scaledown

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// BeginScaleDowns finds the unneeded nodes: all of them together could be removed at once, for the
// pods of every one have a place on nodes that stay. Each keeps on itself since when that is so,
// and is scaled down when it has been so for long enough, the one that is unneeded the longest
// first, but a node that drains slowly after the others.
func (d *ScaleDown) BeginScaleDowns() {
	r := d.newSearch()
	r.continueReplacement()
	chosen, swap := r.imagine(r.candidates())
	for _, c := range chosen {
		c.slow = r.slow(c)
	}
	slices.SortStableFunc(chosen, func(a, b *candidate) int {
		return cmp.Or(cluster.CompareBool(a.slow, b.slow), cluster.CompareBool(a.since.IsZero(), b.since.IsZero()), a.since.Compare(b.since))
	})
	for _, c := range chosen {
		r.runClock(c)
	}
	r.awaitReplacement(swap)
	for _, n := range d.Nodes {
		d.SayStage(n)
		r.unmark(n)
	}
	r.steer()
}

// nodeSearch is one search for unneeded nodes.
type nodeSearch struct {
	*ScaleDown
	// places are those that pods could be moved to, in the order in which they are tried,
	// and row knows what they have refused.
	places []*fit.Place
	row    *fit.Row
	// destinations are the rows of places on nodes that are Ready, in which movers seek a place
	// when their node is scaled down now.
	destinations []*fit.Row
	// missed are the candidates that the search has not reached: their marks stay, whatever is said of
	// them.
	missed map[*cluster.Node]bool
	// judged are the candidates whose pods may all leave, by their nodes.
	judged map[*cluster.Node]*candidate
	// rehearsal: why a node stays is not asked.
	rehearsal bool
	// began counts the steps before the search, and part is the share of the budget at
	// which what goes on now ends, in hundredths.
	began, part int64
	// leaving is by how much each group gets smaller by all that is scaled down, and gone how many of its
	// instances go then, those that are replaced among them.
	leaving, gone map[*cluster.Group]int
	// draining counts the nodes with pods on them that are being drained without
	// hurry, and those whose turn it is, of at most allowed.
	draining, allowed int
	remains           cluster.Remains
	// atOnce counts what is being scaled down, and ending by how much each group gets smaller by
	// what has begun: leaving counts what is removed in the simulation, too.
	atOnce atOnce
	ending map[*cluster.Group]int
	// reserves are the headrooms that stay. Choosy are the lists of which pods ask who else is
	// where, and seatedBefore how many of each have a seat before any further node is removed.
	reserves     []*reserve
	choosy       [][]*seats.Headroom
	seatedBefore map[*seats.Headroom]int
	// halt is why nothing is scaled down at all, empty where something may be.
	halt verdict.Details
	// unlandedOnes is what unlandedKinds has found; nil before.
	unlandedOnes []fit.Tenant
	// replaced are the nodes of the replacement that is under way, those that are removed and those
	// that were launched for them, and claimed the places that are not for the pods of others.
	replaced map[*cluster.Node]bool
	claimed  map[*fit.Place]bool
	// tempted are the classes of pods that might take the node of a replacement, in an order that is the
	// same each time, as each costs steps until one is found; see tempts.
	tempted []*fit.Class
	// full is what was said of nodes that are too full to go.
	full map[fullness]verdict.Details
	// cutShort: the budget was used up before it was known what has become of a replacement.
	cutShort bool
}

func (d *ScaleDown) newSearch() *nodeSearch {
	r := &nodeSearch{
		ScaleDown: d, missed: map[*cluster.Node]bool{}, judged: map[*cluster.Node]*candidate{}, replaced: map[*cluster.Node]bool{}, claimed: map[*fit.Place]bool{}, full: map[fullness]verdict.Details{},
		began: d.Fit.Steps(), part: shareChoice,
		ending: d.ending(), allowed: d.DrainLimit(), halt: d.Halted(), atOnce: d.beingScaledDown(),
	}
	r.leaving, r.gone = d.lessening()
	r.draining = d.UnderWay() + d.Turns
	for n := range d.In(cluster.Serving, cluster.Cordoned, cluster.Returning, cluster.Unready) {
		r.remains.Add(n)
	}
	d.standInBoth()
	r.reserves = r.newReserves()
	r.seatedBefore = r.seatsChoosy()
	return r
}

// lessening is by how much less groups will want when all is done that has begun: by the nodes on
// their way out, by instances that this plan ends beside them, and by what was asked for, was not
// launched and is asked for no more. gone counts the instances that go, also those that are replaced.
func (d *ScaleDown) lessening() (less, gone map[*cluster.Group]int) {
	less, gone = map[*cluster.Group]int{}, map[*cluster.Group]int{}
	counted := map[string]bool{}
	goes := func(g *cluster.Group, instance string) (first bool) {
		if counted[instance] {
			return false
		}
		counted[instance] = true
		gone[g]++
		return true
	}
	count := func(g *cluster.Group, instance string) {
		if goes(g, instance) {
			less[g]++
		}
	}
	for n := range d.In(cluster.ScalingDown, cluster.Terminating) {
		if !n.Cancelled && n.Instance != nil && n.Instance.Live() {
			count(n.Group, n.Instance.ID)
		}
	}
	for a := range action.Only[action.Terminate](d.Actions) {
		if g := d.GroupOf(a.Group); a.Decrement || g.Excess() > 0 {
			count(g, a.Instance)
		} else {
			goes(g, a.Instance)
		}
	}
	for a := range action.Only[action.Lower](d.Actions) {
		less[d.GroupOf(a.Group)] += a.From - a.To
	}
	return less, gone
}

// candidates are the nodes of our groups that every rule lets go, Ready or not any more; the others
// get a verdict that says why not.
func (r *nodeSearch) candidates() []*candidate {
	var list []*candidate
	for n := range r.In(cluster.Serving, cluster.Cordoned, cluster.Unready) {
		if n.Group == nil || !n.Instance.Live() || r.replaced[n] || n.Released {
			continue
		}
		reason, why := r.whyKept(n)
		if reason == "" {
			reason, why = r.whyLimited(n)
		}
		if reason != "" {
			sayCandidate(n, reason, why)
			continue
		}
		c := r.candidate(n)
		c.stopped = r.whyStopped(n) != nil
		reason, why = r.movers(c)
		if reason == "" {
			r.judged[n] = c
			if why = r.whyTooDear(c); why != nil {
				reason = verdict.NodeNeeded
			}
		}
		if reason != "" {
			c.say(reason, why)
			continue
		}
		list = append(list, c)
	}
	return list
}

func (r *nodeSearch) candidate(n *cluster.Node) *candidate {
	return &candidate{Node: n, worth: n.Worth(), size: n.Work()}
}

// movers finds the pods that leave with the node, or one that may not.
func (r *nodeSearch) movers(c *candidate) (verdict.Reason, verdict.Details) {
	if c.since, _ = r.Marked(c.Node); c.Stage == cluster.Unready {
		c.since = c.UnreadySince()
	}
	c.movers, c.evicted = make([]fit.Tenant, 0, len(c.Pods)), make([]*fleet.Pod, 0, len(c.Pods))
	question := drainable.Question{Now: r.Now, Budgets: r.Unspent(), Owners: r.Owners}
	for i, p := range c.Pods {
		question.Pod, question.Policy = p, r.rulesFor(p)
		v := question.Judge()
		switch {
		case r.outlasts(c, p):
			continue
		case v.Rule == drainable.RuleBudget && !v.Lasting && !r.passes(c, v):
			return verdict.NodeBlocked, keptByBudget(p, v.Budget)
		case v.Outcome == drainable.Block && !r.passes(c, v):
			return verdict.NodeBlocked, verdict.Say("pod {pod} may not leave: {cause}", verdict.Pod(p.Key()), verdict.Cause(v.Reason))
		case v.Outcome == drainable.Wait && p.Deleted.IsZero():
			if c.task == nil {
				c.task = verdict.Say("pod {pod} may stay until it ends: {cause}", verdict.Pod(p.Key()), verdict.Cause(v.Reason))
			}
			c.stuck = c.stuck || r.ripe(c)
			continue
		case v.Outcome == drainable.Skip || v.Outcome == drainable.Wait:
			continue
		}
		t := r.Tenant(c.Node, i)
		if t.Class.Tolerates(seats.Closed...) {
			return verdict.NodeBlocked, wouldReturn(p)
		}
		c.evicted = append(c.evicted, p)
		c.stuck = c.stuck || v.Outcome == drainable.Block && r.ripe(c)
		if r.Expendable(p) {
			continue
		}
		c.movers = append(c.movers, t)
		c.priority += int64(p.Priority())
		c.age -= p.Created.Time().Unix()
	}
	c.seekers = r.Fit.Sorted(c.movers, []*fit.NodeTemplate{c.Place.Template()})
	return "", nil
}

// outlasts reports whether the node waits for the end of a pod whose grace period is longer than a
// drain may take.
func (r *nodeSearch) outlasts(c *candidate, p *fleet.Pod) bool {
	if _, longer := r.Outlasts(p, r.Now); !longer {
		return false
	}
	r.Clock.At(p.Deleted.Time().Add(-r.Policy.MaxDrainTime))
	if c.task == nil {
		c.task = cluster.InItsGracePeriod(p)
	}
	c.stuck = c.stuck || r.ripe(c)
	return true
}

// rulesFor are those by which a pod lets its node be chosen. A node that could be drained does not
// stay for an expendable one: it is only asked what the drain will ask, as that does not end before
// the pod has left.
func (r *nodeSearch) rulesFor(p *fleet.Pod) drainable.Policy {
	var rules drainable.Policy
	if !r.Expendable(p) {
		rules = r.Policy.Drainable
	}
	rules.WaitForJobs = r.Policy.Manner.WaitForJobs
	return rules
}

// passes reports whether what blocks a pod of a marked node, or of one that is replaced, is a
// budget that may have room again: the node's clock goes on meanwhile.
func (r *nodeSearch) passes(c *candidate, v drainable.Verdict) bool {
	return (!c.since.IsZero() || r.replaced[c.Node]) && v.Rule == drainable.RuleBudget && !v.Lasting
}

// slow reports whether the node's clock has run out and its pods are more than their budgets let go
// at once: they leave one after the other, and no other node of these budgets is drained meanwhile.
func (r *nodeSearch) slow(c *candidate) bool {
	if c.stuck || c.since.IsZero() || !r.ripe(c) {
		return false
	}
	_, over := overspends(r.Unspent(), c.evicted, r.Unspent().Guard)
	return over
}

// ripe reports whether the clock of a node that has one has run out.
func (r *nodeSearch) ripe(c *candidate) bool {
	due := c.due(r.Policy)
	if r.Now.Before(due) {
		r.Clock.At(due)
		return false
	}
	return true
}

// depart scales down a node whose time has come, if its pods, drains and budgets allow for it by
// now; otherwise it waits for that reason. since makes its request another one than those before,
// and why is for people; text says the same in its verdict.
func (r *nodeSearch) depart(c *candidate, since time.Time, why, text verdict.Details, waits verdict.Reason) (gone bool) {
	n := c.Node
	if c.task != nil {
		n.Say(verdict.NodeBlocked, text.Then(c.task))
		return false
	}
	_, occupied := n.Occupied(r.Now)
	if occupied && !c.stuck && r.draining >= r.allowed {
		n.Say(waits, text.Then(waitsUntil(verdict.WhileFewer(r.allowed))))
		return false
	}
	if why := r.atOnce.full(n, c.stuck); why != nil {
		r.Clock.At(r.atOnce.frees)
		n.Say(waits, text.Then(waitsUntil(why)))
		return false
	}
	if reason, whyNot := r.take(c); reason != "" {
		n.Say(reason, text.Then(whyNot))
		return false
	}
	if occupied {
		r.draining++
	}
	r.atOnce.add(n, occupied && c.stuck)
	r.ending[n.Group]++
	r.Do(action.RequestDrain{
		Group: n.Group.Name, Node: n.Ref(), ID: contract.ScaleDownID(n.Instance.ID, since), Kind: contract.KindScaleDown, Why: why.String(),
		Unready: n.Stage == cluster.Unready,
	})
	n.Say(verdict.NodeScalingDown, text)
	return true
}

func waitsUntil(why verdict.Details) verdict.Details {
	return verdict.Say("it waits until {why}", verdict.Why(why))
}

// unmark takes the mark off a node that is needed again, that others drain and that may come back, or
// whose group is ours no more, so that its clock starts anew.
func (r *nodeSearch) unmark(n *cluster.Node) {
	stays := n.Stage == cluster.Serving || n.Stage == cluster.Cordoned || n.Stage == cluster.Unready || n.Stage == cluster.Returning || n.Cancelled ||
		n.Stage == cluster.Draining && n.Instance != nil && n.Instance.Live()
	if !stays || n.Leaves || n.Group == nil && !r.GivenUp(n) || r.missed[n] {
		return
	}
	if _, ok, _ := contract.Unneeded(n.Taints); ok {
		r.Do(action.Unmark{Group: n.GroupName(), Node: n.Ref(), Why: cmp.Or(n.Details.String(), "it stays")})
	}
}
