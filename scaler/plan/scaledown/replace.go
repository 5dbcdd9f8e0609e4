package scaledown

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/drains"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/scaleup"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Replacement, where people want it: some nodes are replaced by a new one of another group that
// costs less than they do. One replacement at a time goes through three stages, which the persisted
// state distinguishes: it was found, and has to stay worth while for as long as a node must be
// unneeded; the group was grown for it; the new node serves, and the nodes are scaled down like
// others, but without a clock of their own. If it comes to nothing, what came of it is an unneeded
// node like any other.

// replacementBackOff is how long no replacement is begun with a group after one that came to
// nothing; it doubles with each further one.
const replacementBackOff, mostReplacementBackOff = 30 * time.Minute, 8 * time.Hour

// wantsReplacements reports whether nodes are replaced at all.
func (d *ScaleDown) wantsReplacements() bool {
	return (d.Policy.Consolidate == policy.ConsolidateReplace || d.balances()) && !d.OtherAutoscalerActs()
}

// continueReplacement carries on the replacement whose new node was launched.
func (r *nodeSearch) continueReplacement() {
	s := r.State.Replacement
	if !r.wantsReplacements() {
		if s != nil {
			r.dropReplacement(s)
		}
		r.State.ReplacementBackOffs = nil
		return
	}
	if s == nil || s.Launched.IsZero() {
		return
	}
	stay, going, whyNot := r.replacing(s)
	came := r.cameFor(s)
	switch {
	case whyNot != nil:
		r.endReplacement(whyNot)
	case len(stay)+going == 0:
		delete(r.State.ReplacementBackOffs, s.Group)
		r.State.Replacement = nil // it is done
	case !r.Now.Before(s.Until):
		r.endReplacement(verdict.Say("it was not done by {until}", verdict.Until(s.Until)).Then(goesOn(going)))
	case len(stay) > 0 && len(came) == 0:
		r.awaitNode(s, stay)
	default:
		r.sendOff(s, stay, came, going > 0)
	}
	if r.State.Replacement != nil {
		r.Clock.At(s.Until)
	}
}

// goesOn says what becomes of the drains of a replacement that is given up: from then on they are
// scale-downs like others, with the same time limits, and no other replacement waits for them.
func goesOn(drains int) verdict.Details {
	switch drains {
	case 0:
		return nil
	case 1:
		return verdict.Say("the drain that has begun goes on")
	}
	return verdict.Say("the {count} drains that have begun go on", verdict.Count(drains))
}

// replacing are the nodes of a replacement that have yet to be scaled down, by name, and how many
// are being scaled down. whyNot says which of them is where a replacement has no use for it.
func (r *nodeSearch) replacing(s *fleet.NodeReplacement) (stay []*cluster.Node, going int, whyNot verdict.Details) {
	for _, n := range r.Nodes {
		if n.Instance == nil || !n.Instance.Live() || !slices.Contains(s.Instances, n.Instance.ID) {
			continue
		}
		switch {
		case n.Stage == cluster.Serving || n.Stage == cluster.Cordoned:
			stay = append(stay, n)
		case n.Stage == cluster.ScalingDown && !n.Cancelled || n.Stage == cluster.Terminating:
			going++
		case n.Stage == cluster.ScalingDown || n.Stage == cluster.Returning:
			whyNot = verdict.Say("the drain of node {node} was cancelled", verdict.Node(n.Name))
		default:
			whyNot = verdict.Say("node {node} is {state}", verdict.Node(n.Name), verdict.State(string(n.Stage)))
		}
	}
	return stay, going, whyNot
}

// cameFor are the nodes that serve and came to the group since it was grown. When a node
// came is known by the second.
func (r *nodeSearch) cameFor(s *fleet.NodeReplacement) []*cluster.Node {
	var came []*cluster.Node
	since := s.Launched.Truncate(time.Second)
	for n := range r.In(cluster.Serving) {
		if n.GroupName() == s.Group && n.Instance.Live() && !scaleup.Came(n).Before(since) {
			came = append(came, n)
		}
	}
	return came
}

// awaitNode leaves the nodes as they are until the new one serves, for as long as it may still
// become Ready and would take their pods.
func (r *nodeSearch) awaitNode(s *fleet.NodeReplacement, stay []*cluster.Node) {
	g := r.GroupOf(s.Group)
	if g == nil {
		r.endReplacement(verdict.Say("group {group} is not known any more", verdict.Group(s.Group)))
		return
	}
	if !r.upcomingNodes(g) {
		seen := s.Launched.Add(launch.ShownAfter)
		if !r.Now.Before(seen) {
			r.endReplacement(verdict.Say("no node of group {group} is upcoming", verdict.Group(s.Group)))
			return
		}
		r.Clock.At(seen)
	}
	list, whyNot := r.replaceable(stay)
	if whyNot == nil {
		whyNot = r.whyUnpaid(list, g, s)
	}
	if whyNot == nil && !r.goOnto(list, g, templateIn(g, s.Zone)) {
		whyNot = verdict.Say("their pods would not all fit a new node of group {group} any more", verdict.Group(s.Group))
	}
	if whyNot != nil {
		r.endReplacement(whyNot)
		return
	}
	r.claim(cluster.Places(stay)...)
	r.claim(r.upcomingTo(g)...)
	names := verdict.Nodes(cluster.Names(stay))
	for _, n := range stay {
		n.Say(verdict.NodeReplaced, verdict.Say("a cheaper node of group {group} is launched as a replacement for {nodes}", verdict.Group(s.Group), names).
			Then(verdict.Say("given up if it is not done by {until}", verdict.Until(s.Until))))
	}
	g.Note(verdict.Say("a node of it is launched as a replacement for {nodes}", names))
}

// whyUnpaid says why a replacement of these nodes, for which a node was launched, is not worth
// while any more; empty if it is. Pods that came since then cost what it costs to move them, and are
// no sign that the node will be empty soon. What it disrupts was weighed before that: with the new
// node among all others it would weigh more.
func (r *nodeSearch) whyUnpaid(list []*candidate, g *cluster.Group, s *fleet.NodeReplacement) verdict.Details {
	for _, c := range list {
		if r.balances() {
			r.weigh(c, s.Launched)
		}
		if c.unreadable != nil {
			return c.unreadable
		}
	}
	x := r.billOf(list, g)
	if !x.saves() {
		return verdict.Say("it would save {saving} an hour by now, less than {least}", verdict.Saving(dollars(x.old-x.new)), verdict.Least(percent(x.least())))
	}
	if x.balanced && x.saved <= epsilon {
		return verdict.Say("it would save too little by now for the pods that it would move")
	}
	return nil
}

// upcomingNodes reports whether the group has instances that do not serve yet, or gets some.
func (d *ScaleDown) upcomingNodes(g *cluster.Group) bool {
	return g.Unanswered || g.Unlaunched() > 0 || len(d.Unregistered(g)) > 0 ||
		slices.ContainsFunc(g.Nodes, func(n *cluster.Node) bool { return n.Stage == cluster.Upcoming && n.Instance.Live() })
}

// templateIn is the template of a new node of the group in a zone, or in its first.
func templateIn(g *cluster.Group, zone string) *fit.NodeTemplate {
	if len(g.Templates) == 0 {
		return nil
	}
	return g.Templates[g.ZoneOf(zone)]
}

// upcomingTo are the places of the group's upcoming nodes.
func (d *ScaleDown) upcomingTo(g *cluster.Group) []*fit.Place {
	ofGroup := &seats.Headroom{Group: g}
	return append(ofGroup.Homes(d.In(cluster.Upcoming)), d.UnregisteredPlaces(ofGroup)...)
}

// claim keeps places for the pods of the replacement alone, or for none, as their nodes go.
func (r *nodeSearch) claim(places ...*fit.Place) {
	for _, p := range places {
		r.claimed[p] = true
	}
}

func (r *nodeSearch) isClaimed(p *fit.Place) bool { return r.claimed[p] }

// sendOff scales down the nodes that are replaced, if the pods of all of them have places now and,
// where none has been scaled down yet, it still is worth while.
func (r *nodeSearch) sendOff(s *fleet.NodeReplacement, stay, came []*cluster.Node, begun bool) {
	for _, n := range came {
		r.replaced[n] = true
	}
	list, whyNot := r.replaceable(stay)
	var waits verdict.Details
	if len(list) > 0 {
		waits = r.whyWaits(came)
	}
	if whyNot == nil && !begun {
		whyNot = r.whyUnpaid(list, came[0].Group, s)
	}
	if whyNot == nil && waits == nil {
		row := r.homesBeside(came)
		whyNot = r.emptyAll(list, row)
		r.destinations = r.BothWays(row)
	}
	if whyNot != nil {
		r.endReplacement(whyNot)
		return
	}
	for _, n := range came {
		n.Say(verdict.NodeNeeded, verdict.Say("it replaces others, which are scaled down now"))
	}
	for _, c := range list {
		switch {
		case r.sayStopped(c, drains.ReplacedBy(s)):
		case waits != nil:
			c.say(verdict.NodeReplaced, drains.ReplacedBy(s).Then(waits))
		case r.depart(c, s.Launched, drains.ReplacedBy(s), drains.ReplacedBy(s), verdict.NodeReplaced):
			r.letGo(c)
			continue
		}
		r.claim(cluster.Places(append(came, c.Node))...)
	}
}

// whyWaits says what has to be waited for before it is known where the pods would go: what belongs
// to the new node is bound in its first seconds, and pods that go by others have to know where
// those are.
func (r *nodeSearch) whyWaits(came []*cluster.Node) verdict.Details {
	first := slices.MinFunc(came, func(a, b *cluster.Node) int { return a.ReadySince.Compare(b.ReadySince) })
	if settled := first.ReadySince.Add(cluster.SettleTime); r.Now.Before(settled) {
		r.Clock.At(settled)
		return verdict.Say("it is scaled down at {until} at the earliest", verdict.Until(settled))
	}
	if len(r.UnsettledPlaces()) > 0 {
		return verdict.Say("it waits until the upcoming nodes are Ready")
	}
	return nil
}

// replaceable makes candidates of nodes, if every rule lets all of them go.
func (r *nodeSearch) replaceable(nodes []*cluster.Node) (list []*candidate, whyNot verdict.Details) {
	for _, n := range nodes {
		r.replaced[n] = true
		c, reason, why := r.replaceableSet(n)
		if reason != "" {
			return nil, stays(n, why)
		}
		list = append(list, c)
	}
	return list, nil
}

func stays(n *cluster.Node, why verdict.Details) verdict.Details {
	return verdict.Say("node {node} stays: {why}", verdict.Node(n.Name), verdict.Why(why))
}

// replaceableSet makes a candidate of a node that every rule lets go. That much of it is
// used is no hindrance.
func (r *nodeSearch) replaceableSet(n *cluster.Node) (*candidate, verdict.Reason, verdict.Details) {
	if c := r.judged[n]; c != nil {
		return c, "", nil
	}
	reason, why := r.whyKept(n)
	if reason != "" && reason != verdict.NodeNeeded {
		return nil, reason, why
	}
	c := r.candidate(n)
	reason, why = r.movers(c)
	return c, reason, why
}

// homesBeside are the places for pods of a replacement: the nodes that came for it, then those
// that stay anyway, the fullest first.
func (r *nodeSearch) homesBeside(came []*cluster.Node) []*fit.Place {
	stay := slices.DeleteFunc(slices.Collect(r.In(cluster.Serving)), func(n *cluster.Node) bool { return r.replaced[n] })
	slices.SortStableFunc(stay, func(a, b *cluster.Node) int { return cmp.Compare(r.Used(b), r.Used(a)) })
	return cluster.Places(slices.Concat(came, stay))
}

// emptyAll says why not all of these nodes can be emptied at once into a row of places;
// empty if they can.
func (r *nodeSearch) emptyAll(list []*candidate, row []*fit.Place) (why verdict.Details) {
	r.whatIf(row, func(goes func(*candidate) (verdict.Reason, verdict.Details)) {
		for _, c := range list {
			if reason, because := goes(c); reason != "" {
				why = stays(c.Node, because)
				return
			}
		}
	})
	return why
}

// whatIf lets candidates try to go into a row of places. All is as before then.
func (r *nodeSearch) whatIf(row []*fit.Place, try func(goes func(*candidate) (verdict.Reason, verdict.Details))) {
	before, start := r.row, r.Fit.Try()
	r.row = r.Fit.NewRow(row)
	var gone []*candidate
	try(func(c *candidate) (verdict.Reason, verdict.Details) {
		reason, why := r.tryToGo(c)
		if reason == "" {
			gone = append(gone, c)
		}
		return reason, why
	})
	for _, c := range gone {
		r.takeBack(c)
	}
	r.Fit.Revert(start)
	r.row = before
}

// endReplacement gives the replacement up.
func (r *nodeSearch) endReplacement(why verdict.Details) {
	s := r.State.Replacement
	r.State.ReplacementBackOffs[s.Group] = drains.BackOffAfter(r.State.ReplacementBackOffs[s.Group], r.Now, replacementBackOff, mostReplacementBackOff, why.String())
	r.dropReplacement(s)
}

// dropReplacement forgets the replacement. What is drained already is scaled down like any other
// from now on.
func (r *nodeSearch) dropReplacement(s *fleet.NodeReplacement) {
	r.State.Replacement = nil
	clear(r.replaced)
	clear(r.claimed)
	for n := range r.In(cluster.ScalingDown, cluster.Terminating) {
		n.Details = n.Details.Replaced(drains.ReplacedBy(s)[0], drains.Needless[0])
	}
}
