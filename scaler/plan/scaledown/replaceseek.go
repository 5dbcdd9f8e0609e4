package scaledown

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// mostReplaceable bounds the nodes among which replacements are sought, and mostReplaced how
	// many one replaces; mostBalanced is the first where what it costs to move pods is weighed.
	mostReplaceable, mostReplaced, mostBalanced = 10, 5, 100
	// mostReplacementGroups bounds the groups that are tried.
	mostReplacementGroups = 8
)

// proposal is a replacement that may be worth while, and since when it has been.
type proposal struct {
	set      []*candidate
	group    *cluster.Group
	template *fit.NodeTemplate
	bill
	found time.Time
}

func (x *proposal) memory() *fleet.NodeReplacement {
	s := &fleet.NodeReplacement{Group: x.group.Name, Zone: x.template.Zone, Found: x.found}
	for _, c := range x.set {
		s.Instances = append(s.Instances, c.Instance.ID)
	}
	slices.Sort(s.Instances)
	return s
}

func (x *proposal) nodes() []*cluster.Node {
	list := make([]*cluster.Node, len(x.set))
	for i, c := range x.set {
		list[i] = c.Node
	}
	slices.SortFunc(list, func(a, b *cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// seekReplacement finds some of the nodes that stay which a cheaper one may replace, once all else
// is quiet: those that it found in an earlier evaluation, if it still may.
func (r *nodeSearch) seekReplacement() *proposal {
	s := r.State.Replacement
	if !r.wantsReplacements() || s != nil && !s.Launched.IsZero() {
		return nil
	}
	r.begin(shareReplacements)
	r.reportReplacementBackOffs()
	if !r.quiet() {
		return nil
	}
	if x := r.remembered(s); x != nil {
		return x
	}
	if r.cutShort = r.spent(r.part); r.cutShort {
		return nil
	}
	return r.findReplacement()
}

// reportReplacementBackOffs notes of each group whether its replacements are backed off.
func (r *nodeSearch) reportReplacementBackOffs() {
	for name, b := range r.State.ReplacementBackOffs {
		if g := r.GroupOf(name); g != nil && r.Now.Before(b.Until) {
			r.Clock.At(b.Until)
			g.Note(verdict.Say("a replacement by a node of it was given up ({cause})", verdict.Cause(b.Cause)).Then(notAgainUntil(b.Until)))
		}
	}
}

// quiet reports whether no pod waits that could get a node, whether no node is upcoming or taken
// from us with pods on it, and whether no drain has failed. Pods that get none now, which their own
// annotation may say for years, pods of namespaces that ask for more than an evaluation considers, and
// drains that stand still do not count: one of them would put off every replacement for good. Nor do unready
// nodes that could have been drained by now.
func (r *nodeSearch) quiet() bool {
	settled := []verdict.Reason{
		verdict.PodNoGroupFits, verdict.PodGroupsUnavailable, verdict.PodGangDoesNotFit, verdict.PodNotScheduled, verdict.PodGated, verdict.PodExpendable,
		verdict.PodOtherScheduler, verdict.PodTermsLeftOut, verdict.PodBudgetSpent, verdict.PodTooYoung, verdict.PodNominated,
	}
	if slices.ContainsFunc(r.PodVerdicts, func(v *verdict.Verdict) bool { return !slices.Contains(settled, v.Reason) }) {
		return false
	}
	if len(r.UnsettledPlaces()) > 0 || r.Any(func(*cluster.Node) bool { return true }, cluster.Upcoming, cluster.Returning) {
		return false
	}
	for _, g := range r.Groups {
		if r.upcomingNodes(g) || len(g.Fresh) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.Nodes, func(n *cluster.Node) bool {
		if n.Stage == cluster.Draining || n.Stage == cluster.Unready {
			_, occupied := n.Occupied(r.Now)
			_, held := contract.Held(n.Annotations)
			if n.Stage == cluster.Draining {
				return occupied && !r.Stuck(n)
			}
			if !occupied || held || !r.Policy.ScaleDownUnready {
				return false
			}
			drained := n.UnreadySince().Add(r.Policy.UnreadyTime + r.Policy.MaxDrainTime)
			r.Clock.At(drained)
			return r.Now.Before(drained)
		}
		if n.Stage == cluster.ScalingDown && !n.Cancelled && r.Stuck(n) {
			return false
		}
		return n.Cancelled || n.Reported && (n.Report.Phase == contract.PhaseBlocked || n.Report.Phase == contract.PhaseFailed)
	})
}

// remembered is the replacement that was persisted in an earlier evaluation, if it still is worth
// while.
func (r *nodeSearch) remembered(s *fleet.NodeReplacement) *proposal {
	if s == nil {
		return nil
	}
	g := r.GroupOf(s.Group)
	if g == nil || !r.mayReplaceBy(g) {
		return nil
	}
	var set []*candidate
	for n := range r.In(cluster.Serving) {
		if n.Instance != nil && slices.Contains(s.Instances, n.Instance.ID) {
			if c := r.replaceableNode(n); c != nil {
				set = append(set, c)
			}
		}
	}
	looks := templateIn(g, s.Zone)
	if len(set) < len(s.Instances) || !slices.Contains(r.replacementTemplates(g), looks) || !r.goOnto(set, g, looks) {
		return nil
	}
	x := &proposal{set: set, group: g, template: looks, bill: r.billOf(set, g), found: s.Found}
	if x.whyRefused(r.ledger()) != nil {
		return nil
	}
	return x
}

// billOf a replacement, whose candidates have been weighed where what it costs to move pods counts.
func (r *nodeSearch) billOf(set []*candidate, g *cluster.Group) bill {
	b := bill{new: g.Price(), balanced: r.balances()}
	longest := time.Duration(0)
	for _, c := range set {
		// By the second, as pods are created by the second and looked at again by the second.
		price, lasting := knownPrice(c.Node), c.lasting.Truncate(time.Second)
		b.old += price
		b.disruption += disruptionOf(c.Node)
		b.saved += price*lasting.Hours() - c.cost
		if rest := mostLasting - lasting; rest > 0 {
			b.hourly += price
			if b.steady == 0 || rest < b.steady {
				b.steady = rest
			}
		}
		longest = max(longest, lasting)
	}
	b.saved -= b.new * longest.Hours()
	if longest < mostLasting {
		b.hourly -= b.new
	}
	return b
}

// replaceableNode makes a candidate of a node that may be replaced: it has pods to move and none
// that ends when it likes, for both nodes would be paid for until then; its price is known, and it
// is not scaled down anyway.
func (r *nodeSearch) replaceableNode(n *cluster.Node) *candidate {
	if n.Leaves || knownPrice(n) <= 0 || !n.Instance.Live() {
		return nil
	}
	c, reason, _ := r.replaceableSet(n)
	if reason != "" || len(c.movers) == 0 || c.task != nil {
		return nil
	}
	if r.balances() {
		if r.weigh(c, time.Time{}); c.unreadable != nil {
			return nil
		}
	}
	return c
}

// mayReplaceBy reports whether the group's nodes have a price, and whether it may grow by one to
// replace others.
func (r *nodeSearch) mayReplaceBy(g *cluster.Group) bool {
	room, _ := seats.Room(g)
	// Of a group above desired people want fewer nodes.
	return room > 0 && g.Excess() == 0 && g.Price() > 0 && r.WhyReplacing(g) == nil && !r.Now.Before(r.State.ReplacementBackOffs[g.Name].Until) && !r.tempts(g)
}

// tempts reports whether a pod for which nothing is launched may take a new node of the group: one of a
// gang that gets none, one that kube-scheduler leaves where we know of room or makes room for, or one
// that is too young to get one.
func (r *nodeSearch) tempts(g *cluster.Group) bool {
	if r.tempted == nil {
		waits := map[string]bool{}
		for _, v := range r.PodVerdicts {
			switch v.Reason {
			case verdict.PodGangDoesNotFit, verdict.PodNotScheduled, verdict.PodTooYoung, verdict.PodNominated:
				waits[v.UID] = true
			}
		}
		r.tempted = []*fit.Class{}
		listed := map[*fit.Class]bool{}
		for _, p := range r.Unbound.Pods {
			if !waits[string(p.UID)] {
				continue // nothing is learned of those that are left out
			}
			if c := r.Fit.Tenant(p).Class; !listed[c] {
				listed[c] = true
				r.tempted = append(r.tempted, c)
			}
		}
	}
	looks := r.replacementTemplates(g)
	return slices.ContainsFunc(r.tempted, func(c *fit.Class) bool { return r.Fit.MayTake(c, looks) })
}

// replacementTemplates are those that the next node of the group may have.
func (r *nodeSearch) replacementTemplates(g *cluster.Group) []*fit.NodeTemplate {
	s := seats.Supply(g, 1)
	var list []*fit.NodeTemplate
	for _, i := range s.Next(make([]int, len(s.Template))) {
		list = append(list, s.Template[i])
	}
	return list
}

// goOnto tries whether these nodes can all go if there is one new node of a group for all
// their pods.
func (r *nodeSearch) goOnto(list []*candidate, g *cluster.Group, looks *fit.NodeTemplate) (ok bool) {
	if looks == nil {
		return false
	}
	r.withNew(g, looks, func(goes func(*candidate) bool) {
		ok = !slices.ContainsFunc(list, func(c *candidate) bool { return !goes(c) })
	})
	return ok
}

// withNew opens a new node of a group in the simulation, and lets candidates try to go if all
// their pods move there. All is as before then.
func (r *nodeSearch) withNew(g *cluster.Group, looks *fit.NodeTemplate, try func(goes func(*candidate) bool)) {
	rehearsal, start := r.rehearsal, r.Fit.Fork()
	r.rehearsal = true
	p := r.Fit.Open("a new node", looks)
	uncount := r.countReserves(g, p)
	r.whatIf([]*fit.Place{p}, func(goes func(*candidate) (verdict.Reason, verdict.Details)) {
		try(func(c *candidate) bool {
			if !r.mightHold(p, c) {
				return false
			}
			reason, _ := goes(c)
			return reason == ""
		})
	})
	uncount()
	r.Fit.Revert(start)
	r.rehearsal = rehearsal
}

// mightHold reports whether a place might take all pods of a candidate as far as resources go. Most
// candidates are too large for what is left of a new node, and this says so for much less than to
// move their pods.
func (r *nodeSearch) mightHold(p *fit.Place, c *candidate) bool {
	r.Fit.Spend(1)
	last := len(c.seekers) - 1
	if last < 0 {
		return true
	}
	if c.others == nil {
		c.others = &fit.Load{}
		for _, t := range c.seekers[:last] {
			c.others.Add(t.Class)
		}
	}
	return r.Fit.MightHold(c.seekers[last].Class, *c.others, p)
}

// findReplacement finds the replacement that saves most. Where one node alone could be replaced,
// but for too little, its verdict says so.
func (r *nodeSearch) findReplacement() *proposal {
	if !slices.ContainsFunc(r.Groups, r.mayReplaceBy) {
		return nil
	}
	sources := r.replaceableNodes()
	if len(sources) == 0 {
		return nil
	}
	near, most := &nearly{all: r.ledger(), alone: map[*candidate]*proposal{}}, 0.0
	for _, c := range dearest(sources) {
		most += knownPrice(c.Node)
	}
	var best *proposal
	for _, g := range r.replacementGroups(most) {
		for _, looks := range r.replacementTemplates(g) {
			for i := range sources {
				if r.spent(r.part) {
					break
				}
				x := r.gather(sources, i, g, looks, near)
				if x != nil && (best == nil || x.gain() > best.gain()+epsilon) {
					best = x
				}
			}
		}
	}
	if best != nil {
		return best
	}
	for c, x := range near.alone {
		sayBeside(c.Node, verdict.Say("a node of group {group} as its replacement would save {saving}, {why}", verdict.Group(x.group.Name), verdict.Saving(percent(x.share())), verdict.Why(x.whyRefused(near.all))))
	}
	if near.pays > 0 {
		r.Clock.At(r.Now.Truncate(time.Second).Add(near.pays.Truncate(time.Second) + time.Second))
	}
	return nil
}

// nearly is what was found to be not worth while beside all that there is: of each candidate the
// cheapest that replaces it alone, and how long it takes until the first of them all pays.
type nearly struct {
	all   ledger
	alone map[*candidate]*proposal
	pays  time.Duration
}

func (n *nearly) refuse(x *proposal) {
	if pays := x.pays(); pays > 0 && (n.pays == 0 || pays < n.pays) {
		n.pays = pays
	}
	if c := x.set[0]; len(x.set) == 1 && x.old > x.new+epsilon && (n.alone[c] == nil || x.new < n.alone[c].new) {
		n.alone[c] = x
	}
}

// sayBeside adds to the verdict of a node that is needed.
func sayBeside(n *cluster.Node, details verdict.Details) {
	if n.Reason == verdict.NodeNeeded || n.Reason == verdict.NodeNoPlace {
		n.Details = n.Details.Then(details)
	}
}

// gather puts together a set that goes onto one new node, beginning with one candidate,
// and returns that beginning of it that saves most and is worth while; nil without one.
func (r *nodeSearch) gather(sources []*candidate, first int, g *cluster.Group, looks *fit.NodeTemplate, near *nearly) (best *proposal) {
	order := append([]*candidate{sources[first]}, slices.Delete(slices.Clone(sources), first, first+1)...)
	r.withNew(g, looks, func(goes func(*candidate) bool) {
		var set []*candidate
		for i, c := range order {
			if len(set) == mostReplaced || i > 0 && len(set) == 0 {
				return
			}
			if c.Group == g || !goes(c) {
				continue
			}
			set = append(set, c)
			x := &proposal{set: slices.Clone(set), group: g, template: looks, bill: r.billOf(set, g), found: r.Now.Truncate(time.Second)}
			switch {
			case x.whyRefused(near.all) == nil:
				if best == nil || x.gain() > best.gain()+epsilon {
					best = x
				}
			default:
				near.refuse(x)
			}
		}
	})
	return best
}

// replaceableNodes are the nodes that could be replaced, those first that disrupt least for
// what they cost, and not too many.
func (r *nodeSearch) replaceableNodes() []*candidate {
	var list []*candidate
	for n := range r.In(cluster.Serving) {
		if c := r.replaceableNode(n); c != nil {
			c.figure = disruptionOf(n) / knownPrice(n)
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(a.figure, b.figure) })
	most := mostReplaceable
	if r.balances() {
		most = mostBalanced
	}
	return list[:min(len(list), most)]
}

// dearest are the dearest candidates, as many as one node can replace.
func dearest(list []*candidate) []*candidate {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(knownPrice(b.Node), knownPrice(a.Node)) })
	return list[:min(len(list), mostReplaced)]
}

// replacementGroups are the groups whose new node could be worth while where as much as that may be
// removed, the cheapest first, and not too many.
func (r *nodeSearch) replacementGroups(most float64) []*cluster.Group {
	var list []*cluster.Group
	for _, g := range r.Groups {
		if r.mayReplaceBy(g) && g.Price() < most {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(a, b *cluster.Group) int { return cmp.Compare(a.Price(), b.Price()) })
	return list[:min(len(list), mostReplacementGroups)]
}

// awaitReplacement persists a replacement that may be worth while, and begins it when it has been
// for as long as its nodes would have to be unneeded, and their groups are backed off no more.
func (r *nodeSearch) awaitReplacement(x *proposal) {
	s := r.State.Replacement
	if s != nil && !s.Launched.IsZero() {
		return
	}
	if x == nil {
		if s != nil && r.quiet() && !r.cutShort {
			r.State.Replacement = nil
		}
		return
	}
	r.State.Replacement = x.memory()
	due := x.found
	for _, c := range x.set {
		rested, _ := r.Rest(c.Group)
		due = slices.MaxFunc([]time.Time{due, rested, x.found.Add(c.Group.UnneededTime(r.Policy))}, time.Time.Compare)
	}
	details := verdict.Say("a node of group {group} as a replacement for {nodes} would save {saving}", verdict.Group(x.group.Name), verdict.Nodes(cluster.Names(x.nodes())), verdict.Saving(percent(x.share())))
	switch paused := r.whyStoppedOf(x.set); {
	case paused != nil:
		details = details.Then(paused)
	case r.Now.Before(due):
		r.Clock.At(due)
		details = details.Then(verdict.Say("it is launched at {until} if it still would", verdict.Until(due)))
	case r.beginReplacement(x):
		details = details.Then(verdict.Say("it is launched now"))
	}
	for _, c := range x.set {
		c.Node.Reason, c.Node.Details = verdict.NodeReplaced, details
	}
}

// whyStoppedOf says why nothing is scaled down now of the group of one of these nodes.
func (r *nodeSearch) whyStoppedOf(set []*candidate) (why verdict.Details) {
	for _, c := range set {
		why = verdict.FirstOf(why, r.whyStopped(c.Node))
	}
	return why
}

// beginReplacement grows the group by the new node, if nothing holds that up.
func (r *nodeSearch) beginReplacement(x *proposal) bool {
	g := x.group
	g.GrowsFor = "it costs less than " + verdict.Listed(cluster.Names(x.nodes()))
	r.Open(g, r.Fit.Open("a new node of group "+g.Name, x.template))
	r.GrowBy(g)
	if !g.Grows {
		return false
	}
	s := x.memory()
	s.Launched = r.Now
	s.Until = r.Now.Add(g.ProvisionTime(r.Policy) + r.Policy.MaxNodeStartupTime + r.Policy.MaxDrainTime).Truncate(time.Second)
	r.State.Replacement = s
	return true
}
