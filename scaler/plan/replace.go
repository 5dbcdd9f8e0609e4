package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// Replacement, where people want it: some nodes go for a new one of another group that
// costs less than they do. One swap at a time goes through three stages, which the memory
// tells apart: it was found, and has to stay worth while for as long as a node must be
// unneeded; the group was grown for it; the new node serves, and the nodes are retired
// like others, but without a clock of their own. If it comes to nothing, what came of it
// is a node that nobody needs, like any other.

// swapPause is how long after a swap that came to nothing none is begun with that group;
// it doubles with each further one.
const swapPause, mostSwapPause = 30 * time.Minute, 8 * time.Hour

// swaps says that nodes are swapped at all.
func (d *decision) swaps() bool {
	return d.policy.Consolidate == ConsolidateReplace && !d.rivalled()
}

// carryOnSwap carries on the swap whose new node was launched.
func (r *retirement) carryOnSwap() {
	s := r.state.Swap
	if !r.swaps() {
		if s != nil {
			r.dropSwap(s)
		}
		r.state.SwapPauses = nil
		return
	}
	if s == nil || s.Launched.IsZero() {
		return
	}
	stay, going, trouble := r.swapping(s)
	came := r.cameFor(s)
	switch {
	case trouble != "":
		r.endSwap(trouble)
	case len(stay)+going == 0:
		delete(r.state.SwapPauses, s.Group)
		r.state.Swap = nil // it is done
	case !r.now.Before(s.Until):
		r.endSwap("it was not done by " + clockTime(s.Until) + goesOn(going))
	case len(stay) > 0 && len(came) == 0:
		r.awaitNode(s, stay)
	default:
		r.sendOff(s, stay, came, going > 0)
	}
	if r.state.Swap != nil {
		r.clock.at(s.Until)
	}
}

// goesOn says what becomes of the drains of a swap that is given up: those are retirements
// like others from then on, with the patience that these have, and no other swap waits for
// them.
func goesOn(drains int) string {
	switch drains {
	case 0:
		return ""
	case 1:
		return "; the drain that has begun goes on"
	}
	return fmt.Sprintf("; the %d drains that have begun go on", drains)
}

// swapping are the nodes of a swap that have yet to be retired, by name, and how many are
// being retired. trouble says which of them is where a swap has no use for it.
func (r *retirement) swapping(s *fleet.Swap) (stay []*node, going int, trouble string) {
	for _, n := range r.nodes {
		if n.instance == nil || !n.instance.Live() || !slices.Contains(s.Instances, n.instance.ID) {
			continue
		}
		switch {
		case n.stage == serving || n.stage == cordoned:
			stay = append(stay, n)
		case n.stage == retiring && !n.kept || n.stage == terminating:
			going++
		case n.stage == retiring || n.stage == returning:
			trouble = fmt.Sprintf("the drain of node %s was taken back", n.Name)
		default:
			trouble = fmt.Sprintf("node %s is %s", n.Name, n.stage)
		}
	}
	return stay, going, trouble
}

// cameFor are the nodes that serve and came to the group since it was grown. When a node
// came is known by the second.
func (r *retirement) cameFor(s *fleet.Swap) []*node {
	var came []*node
	since := s.Launched.Truncate(time.Second)
	for _, n := range r.in(serving) {
		if n.groupName() == s.Group && n.instance.Live() && !n.came().Before(since) {
			came = append(came, n)
		}
	}
	return came
}

// awaitNode leaves the nodes as they are until the new one serves, for as long as it may
// still come and would take their pods.
func (r *retirement) awaitNode(s *fleet.Swap, stay []*node) {
	g := r.groupOf(s.Group)
	if g == nil {
		r.endSwap(fmt.Sprintf("group %s is not known any more", s.Group))
		return
	}
	if !r.nodesComing(g) {
		seen := s.Launched.Add(shownAfter)
		if !r.now.Before(seen) {
			r.endSwap(fmt.Sprintf("no node of group %s has come", s.Group))
			return
		}
		r.clock.at(seen)
	}
	list, trouble := r.swappable(stay)
	if trouble == "" {
		trouble = unpaid(list, g)
	}
	if trouble == "" && !r.goOnto(list, g, g.lookIn(s.Zone)) {
		trouble = fmt.Sprintf("their pods would not all fit a new node of group %s any more", s.Group)
	}
	if trouble != "" {
		r.endSwap(trouble)
		return
	}
	r.claim(places(stay)...)
	r.claim(r.comingTo(g)...)
	for _, n := range stay {
		n.say(NodeReplaced, fmt.Sprintf("a cheaper node of group %s comes in the stead of %s; given up if it is not done by %s", s.Group, names(stay), clockTime(s.Until)))
	}
	g.note("a node of it comes in the stead of " + names(stay))
}

// unpaid says why a swap of these nodes, for which a node was launched, is not worth while
// any more; empty if it is. What it disrupts was weighed before that: with the new node
// among all others it would weigh more.
func unpaid(list []*candidate, g *group) string {
	if x := billOf(list, g); !x.saves() {
		return fmt.Sprintf("it would save $%.3f an hour by now, less than %.0f%%", x.old-x.new, leastSaving*100)
	}
	return ""
}

// nodesComing says that the group has instances that do not serve yet, or gets some.
func (d *decision) nodesComing(g *group) bool {
	return g.unanswered || g.unlaunched() > 0 || len(d.unregistered(g)) > 0 ||
		slices.ContainsFunc(g.nodes, func(n *node) bool { return n.stage == coming && n.instance.Live() })
}

// lookIn is what a new node of the group looks like in a zone, or in its first.
func (g *group) lookIn(zone string) *fit.Looks {
	if len(g.looks) == 0 {
		return nil
	}
	return g.looks[g.zoneOf(zone)]
}

// comingTo are the places of the group's nodes that are coming.
func (d *decision) comingTo(g *group) []*fit.Place {
	ofGroup := &headRoom{group: g}
	return append(ofGroup.homes(d.in(coming)), d.unregisteredPlaces(ofGroup)...)
}

// claim keeps places for the pods of the swap alone, or for none, as their nodes go.
func (r *retirement) claim(places ...*fit.Place) {
	for _, p := range places {
		r.claimed[p] = true
	}
}

func (r *retirement) isClaimed(p *fit.Place) bool { return r.claimed[p] }

// sendOff retires the nodes that go, if the pods of all of them have places now and, where
// none has been retired yet, it still is worth while.
func (r *retirement) sendOff(s *fleet.Swap, stay, came []*node, begun bool) {
	for _, n := range came {
		r.swapped[n] = true
	}
	list, trouble := r.swappable(stay)
	waits := ""
	if len(list) > 0 {
		waits = r.waitsToSendOff(came)
	}
	if trouble == "" && !begun {
		trouble = unpaid(list, came[0].group)
	}
	if trouble == "" && waits == "" {
		row := r.homesBeside(came)
		trouble = r.emptyAll(list, row)
		r.refuges = r.bothWays(row)
	}
	if trouble != "" {
		r.endSwap(trouble)
		return
	}
	for _, n := range came {
		n.say(NodeNeeded, "it has come in the stead of others, which go now")
	}
	for _, c := range list {
		switch {
		case r.pauses(c, inStead(s)):
		case waits != "":
			c.say(NodeReplaced, inStead(s)+"; "+waits)
		case r.depart(c, s.Launched, inStead(s), inStead(s), NodeReplaced):
			r.letGo(c)
			continue
		}
		r.claim(places(append(came, c.node))...)
	}
}

// inStead says why a node goes whose swap is under way.
func inStead(s *fleet.Swap) string {
	return fmt.Sprintf("a cheaper node of group %s has come in its stead", s.Group)
}

// whyGoes says why a node is retired.
func (d *decision) whyGoes(n *node) string {
	if s := d.state.Swap; s != nil && !s.Launched.IsZero() && slices.Contains(s.Instances, n.InstanceID()) {
		return inStead(s)
	}
	return needless
}

// needless says why a node goes for which no other has come.
const needless = "nobody needs it"

// waitsToSendOff says what has to be waited for before anybody can tell where the pods
// would go: what belongs to the new node is bound in its first seconds, and pods that go
// by others have to know where those are.
func (r *retirement) waitsToSendOff(came []*node) string {
	first := slices.MinFunc(came, func(a, b *node) int { return a.ReadySince.Compare(b.ReadySince) })
	if settled := first.ReadySince.Add(settleTime); r.now.Before(settled) {
		r.clock.at(settled)
		return fmt.Sprintf("it goes at %s at the earliest", clockTime(settled))
	}
	if len(r.unsettledPlaces()) > 0 {
		return "it waits until the nodes that are coming are there"
	}
	return ""
}

// swappable makes candidates of nodes, if every rule lets all of them go.
func (r *retirement) swappable(nodes []*node) (list []*candidate, trouble string) {
	for _, n := range nodes {
		r.swapped[n] = true
		c, reason, why := r.swapCandidate(n)
		if reason != "" {
			return nil, fmt.Sprintf("node %s stays: %s", n.Name, why)
		}
		list = append(list, c)
	}
	return list, ""
}

// swapCandidate makes a candidate of a node that every rule lets go. That much of it is
// used is no hindrance.
func (r *retirement) swapCandidate(n *node) (*candidate, Reason, string) {
	reason, why := r.mayGo(n)
	if reason != "" && reason != NodeNeeded {
		return nil, reason, why
	}
	c := r.candidate(n)
	reason, why = r.leavers(c)
	return c, reason, why
}

// homesBeside are the places for pods of a swap: the nodes that came for it, then those
// that stay anyway, the fullest first.
func (r *retirement) homesBeside(came []*node) []*fit.Place {
	stay := slices.DeleteFunc(r.in(serving), func(n *node) bool { return r.swapped[n] })
	slices.SortStableFunc(stay, func(a, b *node) int { return cmp.Compare(r.used(b), r.used(a)) })
	return places(slices.Concat(came, stay))
}

// emptyAll says why not all of these nodes can be emptied at once into a row of places;
// empty if they can.
func (r *retirement) emptyAll(list []*candidate, row []*fit.Place) (why string) {
	r.whatIf(row, func(goes func(*candidate) (Reason, string)) {
		for _, c := range list {
			if reason, text := goes(c); reason != "" {
				why = fmt.Sprintf("node %s stays: %s", c.Name, text)
				return
			}
		}
	})
	return why
}

// whatIf lets candidates try to go into a row of places. All is as before then.
func (r *retirement) whatIf(row []*fit.Place, try func(goes func(*candidate) (Reason, string))) {
	before, start := r.row, r.fit.Try()
	r.row = r.fit.NewRow(row)
	var gone []*candidate
	try(func(c *candidate) (Reason, string) {
		reason, why := r.tryToGo(c)
		if reason == "" {
			gone = append(gone, c)
		}
		return reason, why
	})
	for _, c := range gone {
		r.takeBack(c)
	}
	r.fit.Revert(start)
	r.row = before
}

// endSwap gives the swap up.
func (r *retirement) endSwap(why string) {
	s := r.state.Swap
	r.state.SwapPauses[s.Group] = pauseAfter(r.state.SwapPauses[s.Group], r.now, swapPause, mostSwapPause, why)
	r.dropSwap(s)
}

// dropSwap forgets the swap. What goes already goes as any other from now on.
func (r *retirement) dropSwap(s *fleet.Swap) {
	r.state.Swap = nil
	clear(r.swapped)
	clear(r.claimed)
	for _, n := range r.in(retiring, terminating) {
		if progress, of := strings.CutPrefix(n.message, inStead(s)); of {
			n.message = needless + progress
		}
	}
}

// names lists nodes as people do.
func names(nodes []*node) string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Name
	}
	return listed(list)
}
