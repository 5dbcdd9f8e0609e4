package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

const (
	// swapCandidates bounds the nodes among which swaps are sought, and mostSwapped how
	// many go for one.
	swapCandidates, mostSwapped = 10, 5
	// swapTargets bounds the groups that are tried.
	swapTargets = 8
)

// proposal is a swap that may be worth while, and since when it has been.
type proposal struct {
	set   []*candidate
	group *group
	looks *fit.Looks
	bill
	found time.Time
}

func (x *proposal) memory() *fleet.Swap {
	s := &fleet.Swap{Group: x.group.Name, Zone: x.looks.Zone, Found: x.found}
	for _, c := range x.set {
		s.Instances = append(s.Instances, c.instance.ID)
	}
	slices.Sort(s.Instances)
	return s
}

func (x *proposal) nodes() []*node {
	list := make([]*node, len(x.set))
	for i, c := range x.set {
		list[i] = c.node
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// seekSwap finds some of the nodes that stay which may go for a cheaper one, once all else
// is quiet: those that it found in an earlier look, if they still may.
func (r *retirement) seekSwap() *proposal {
	s := r.state.Swap
	if !r.swaps() || s != nil && !s.Launched.IsZero() {
		return nil
	}
	r.tellSwapPauses()
	if !r.quiet() {
		return nil
	}
	if x := r.remembered(s); x != nil {
		return x
	}
	return r.findSwap()
}

// tellSwapPauses says of each group with which no swap is begun for a while that this is so.
func (r *retirement) tellSwapPauses() {
	for name, b := range r.state.SwapPauses {
		if g := r.groupOf(name); g != nil && r.now.Before(b.Until) {
			r.clock.at(b.Until)
			g.note(fmt.Sprintf("a node of it was to come in the stead of others, and that was given up (%s); none does until %s", b.Cause, clockTime(b.Until)))
		}
	}
}

// quiet says that no pod waits that could get a node, that no node comes or is taken from
// us with pods on it, and that no drain is stuck. Pods of namespaces that ask for more than
// an evaluation considers do not count: they would put off every swap for good.
func (r *retirement) quiet() bool {
	settled := []Reason{PodFitsNothing, PodGated, PodExpendable, PodOfOther, PodTermsLeftOut, PodBudgetSpent}
	if slices.ContainsFunc(r.podVerdicts, func(v Verdict) bool { return !slices.Contains(settled, v.Reason) }) {
		return false
	}
	if len(r.unsettledPlaces()) > 0 || len(r.in(coming, returning)) > 0 {
		return false
	}
	for _, g := range r.groups {
		if r.nodesComing(g) || len(g.fresh) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(r.nodes, func(n *node) bool {
		if n.stage == leaving || n.stage == unready {
			_, occupied := n.occupied(r.now)
			return occupied
		}
		return n.kept || n.reported && (n.report.Phase == contract.PhaseBlocked || n.report.Phase == contract.PhaseFailed)
	})
}

// remembered is the swap that was found in an earlier look, if it still is worth while.
func (r *retirement) remembered(s *fleet.Swap) *proposal {
	if s == nil {
		return nil
	}
	g := r.groupOf(s.Group)
	if g == nil || !r.maySwapTo(g) {
		return nil
	}
	var set []*candidate
	for _, n := range r.in(serving) {
		if n.instance != nil && slices.Contains(s.Instances, n.instance.ID) {
			if c := r.swapSource(n); c != nil {
				set = append(set, c)
			}
		}
	}
	looks := g.lookIn(s.Zone)
	if len(set) < len(s.Instances) || !slices.Contains(r.swapLooks(g), looks) || !r.goOnto(set, g, looks) {
		return nil
	}
	x := &proposal{set: set, group: g, looks: looks, bill: billOf(set, g), found: s.Found}
	if x.refusal(r.ledger()) != "" {
		return nil
	}
	return x
}

func billOf(set []*candidate, g *group) bill {
	b := bill{new: g.price()}
	for _, c := range set {
		b.old += c.knownPrice()
		b.disruption += disruptionOf(c.node)
	}
	return b
}

// swapSource makes a candidate of a node that may be swapped: it has pods to move and none
// that ends when it likes, for both nodes would be paid for until then; its price is known,
// and it does not go anyway.
func (r *retirement) swapSource(n *node) *candidate {
	if n.gone || n.knownPrice() <= 0 || !n.instance.Live() {
		return nil
	}
	c, reason, _ := r.swapCandidate(n)
	if reason != "" || len(c.movers) == 0 || c.task != "" {
		return nil
	}
	return c
}

// maySwapTo says that the group's nodes have a price, and that it may grow by one in the
// stead of others.
func (r *retirement) maySwapTo(g *group) bool {
	room, _ := g.room()
	// Of a group above desired people want fewer nodes.
	return room > 0 && g.excess() == 0 && g.price() > 0 && r.replaces(g) == "" && !r.now.Before(r.state.SwapPauses[g.Name].Until)
}

// swapLooks are those that the next node of the group may have.
func (r *retirement) swapLooks(g *group) []*fit.Looks {
	s := g.supply(1)
	var list []*fit.Looks
	for _, i := range s.Next(make([]int, len(s.Looks))) {
		list = append(list, s.Looks[i])
	}
	return list
}

// goOnto tries whether these nodes can all go if there is one new node of a group for all
// their pods.
func (r *retirement) goOnto(list []*candidate, g *group, looks *fit.Looks) (ok bool) {
	if looks == nil {
		return false
	}
	r.withNew(g, looks, func(goes func(*candidate) bool) {
		ok = !slices.ContainsFunc(list, func(c *candidate) bool { return !goes(c) })
	})
	return ok
}

// withNew opens a new node of a group in thought, and lets candidates try to go if all
// their pods move there. All is as before then.
func (r *retirement) withNew(g *group, looks *fit.Looks, try func(goes func(*candidate) bool)) {
	rehearsal, start := r.rehearsal, r.fit.Fork()
	r.rehearsal = true
	p := r.fit.Open("a new node", looks)
	uncount := r.countReserves(g, p)
	r.whatIf([]*fit.Place{p}, func(goes func(*candidate) (Reason, string)) {
		try(func(c *candidate) bool {
			reason, _ := goes(c)
			return reason == ""
		})
	})
	uncount()
	r.fit.Revert(start)
	r.rehearsal = rehearsal
}

// findSwap finds the swap that saves most. Where one node alone could be swapped, but for
// too little, its verdict says so.
func (r *retirement) findSwap() *proposal {
	sources := r.swapSources()
	if len(sources) == 0 {
		return nil
	}
	all, most := r.ledger(), 0.0
	for _, c := range dearest(sources) {
		most += c.knownPrice()
	}
	var best *proposal
	nearly := map[*candidate]*proposal{}
	for _, g := range r.swapTargets(most) {
		for _, looks := range r.swapLooks(g) {
			for i := range sources {
				if r.spent(shareExchanges) {
					break
				}
				x := r.gather(sources, i, g, looks, all, nearly)
				if x != nil && (best == nil || x.old-x.new > best.old-best.new+epsilon) {
					best = x
				}
			}
		}
	}
	if best == nil {
		for c, x := range nearly {
			c.node.sayBeside(fmt.Sprintf("a node of group %s in its stead would save %.0f%%, %s", x.group.Name, x.share()*100, x.refusal(all)))
		}
	}
	return best
}

// sayBeside adds to the verdict of a node that is needed.
func (n *node) sayBeside(text string) {
	if n.reason == NodeNeeded || n.reason == NodeNoPlace {
		n.message += "; " + text
	}
}

// gather puts together a set that goes onto one new node, beginning with one candidate,
// and returns that beginning of it that saves most and is worth while; nil without one.
func (r *retirement) gather(sources []*candidate, first int, g *group, looks *fit.Looks, all ledger, nearly map[*candidate]*proposal) (best *proposal) {
	order := append([]*candidate{sources[first]}, slices.Delete(slices.Clone(sources), first, first+1)...)
	r.withNew(g, looks, func(goes func(*candidate) bool) {
		var set []*candidate
		for i, c := range order {
			if len(set) == mostSwapped || i > 0 && len(set) == 0 {
				return
			}
			if c.group == g || !goes(c) {
				continue
			}
			set = append(set, c)
			x := &proposal{set: slices.Clone(set), group: g, looks: looks, bill: billOf(set, g), found: r.now.Truncate(time.Second)}
			switch {
			case x.refusal(all) == "":
				if best == nil || x.old-x.new > best.old-best.new+epsilon {
					best = x
				}
			case len(set) == 1 && x.old > x.new+epsilon && (nearly[c] == nil || x.new < nearly[c].new):
				nearly[c] = x
			}
		}
	})
	return best
}

// swapSources are the nodes that could be swapped, those first that disrupt least for
// what they cost, and not too many.
func (r *retirement) swapSources() []*candidate {
	var list []*candidate
	for _, n := range r.in(serving) {
		if c := r.swapSource(n); c != nil {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *candidate) int {
		return cmp.Compare(disruptionOf(a.node)/a.knownPrice(), disruptionOf(b.node)/b.knownPrice())
	})
	return list[:min(len(list), swapCandidates)]
}

// dearest are as many of the candidates as can go for one, the dearest.
func dearest(list []*candidate) []*candidate {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Compare(b.knownPrice(), a.knownPrice()) })
	return list[:min(len(list), mostSwapped)]
}

// swapTargets are the groups whose new node could be worth while where as much as that may
// go, the cheapest first, and not too many.
func (r *retirement) swapTargets(most float64) []*group {
	var list []*group
	for _, g := range r.groups {
		if r.maySwapTo(g) && g.price() < most {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(a, b *group) int { return cmp.Compare(a.price(), b.price()) })
	return list[:min(len(list), swapTargets)]
}

// bideSwap remembers a swap that may be worth while, and begins it when it has been for as
// long as its nodes would have to be unneeded, and their groups rest no more.
func (r *retirement) bideSwap(x *proposal) {
	s := r.state.Swap
	if s != nil && !s.Launched.IsZero() {
		return
	}
	if x == nil {
		if s != nil && r.quiet() {
			r.state.Swap = nil
		}
		return
	}
	r.state.Swap = x.memory()
	due := x.found
	for _, c := range x.set {
		rested, _ := r.rest(c.group)
		due = slices.MaxFunc([]time.Time{due, rested, x.found.Add(c.group.unneededTime(r.policy))}, time.Time.Compare)
	}
	text := fmt.Sprintf("a node of group %s in the stead of %s would save %.0f%%", x.group.Name, names(x.nodes()), x.share()*100)
	switch paused := r.stoppedOf(x.set); {
	case paused != "":
		text += "; " + paused
	case r.now.Before(due):
		r.clock.at(due)
		text += fmt.Sprintf("; it is launched at %s if it still would", clockTime(due))
	case r.beginSwap(x):
		text += "; it is launched now"
	}
	for _, c := range x.set {
		c.node.reason, c.node.message = NodeReplaced, text
	}
}

// stoppedOf says why nothing is retired now of the group of one of these nodes.
func (r *retirement) stoppedOf(set []*candidate) (why string) {
	for _, c := range set {
		why = cmp.Or(why, r.stopped(c.node))
	}
	return why
}

// beginSwap grows the group by the new node, if nothing holds that up.
func (r *retirement) beginSwap(x *proposal) bool {
	g := x.group
	g.stead = fmt.Sprintf("it costs less than %s", names(x.nodes()))
	r.open(g, r.fit.Open("a new node of group "+g.Name, x.looks))
	r.growBy(g)
	if !g.grows {
		return false
	}
	s := x.memory()
	s.Launched = r.now
	s.Until = r.now.Add(r.policy.MaxNodeProvisionTime + r.policy.MaxNodeStartupTime + r.policy.MaxDrainTime).Truncate(time.Second)
	r.state.Swap = s
	return true
}
