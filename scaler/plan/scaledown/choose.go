package scaledown

import (
	"cmp"
	"math"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// candidate is a node that every rule lets go, if its pods have other places.
type candidate struct {
	*cluster.Node
	// movers are its pods that need another place, by name, and seekers the same in the
	// order in which they seek it.
	movers, seekers []fit.Tenant
	// others is what all seekers take but the last; nil before it is asked.
	others *fit.Load
	// evicted are all that its drain asks to leave, by name: these and the expendable.
	evicted []*fleet.Pod
	// since is when its clock began: when it was marked as unneeded, zero without a mark; of one that
	// is not Ready, since when it is not.
	since time.Time
	// stuck: its clock has run out and a budget allows nothing at all now; slow: its pods leave one
	// after the other, see nodeSearch.slow.
	stuck, slow bool
	// task is a pod that ends when it likes, and why it is not asked to leave before; nil without
	// one. The node's clock goes on, and its drain does not begin: it would keep the node closed
	// until then.
	task verdict.Details
	// stopped: nothing of its group is scaled down now.
	stopped bool
	// worth is what it costs in an hour, and size what it has, in cpus and in the memory that
	// costs as much.
	worth, size float64
	// cost is what it costs to evict its movers, in dollars, and lasting for how long they would
	// go on to keep it; unreadable says what of a pod cannot be read. See weigh.
	cost       float64
	lasting    time.Duration
	unreadable verdict.Details
	// priority is the sum of its movers', and age the sum of how long they have been
	// there, reckoned from a moment that is the same for all nodes.
	priority, age int64
	// adrift are the movers in the measure of each headroom, in their order.
	adrift []adrift
	// figure is what the order at hand goes by.
	figure float64
	// reason and why say what it is needed for; empty while it may go.
	reason verdict.Reason
	why    verdict.Details
	// unplaced is the pod that has no other place, and the place that comes nearest.
	unplaced fit.Seat
}

// imagine chooses among the candidates, and finds out which of the nodes that stay could be
// replaced then. It leaves the seats as they were: until a node really is removed, its pods run
// there, and others come to it.
func (r *nodeSearch) imagine(list []*candidate) (chosen []*candidate, swap *proposal) {
	r.Fit.Settle() // nothing that was done before is undone any more
	start := r.Fit.Try()
	chosen = r.choose(list)
	swap = r.seekReplacement()
	r.Fit.Revert(start)
	r.destinations = r.destinationsBeside(chosen)
	r.rehearsal = false
	return chosen, swap
}

// goNow empties a chosen node while those that were chosen with it and stay for now keep
// their pods: beside those that are scaled down now, and on nodes that are Ready. If that is
// not possible it waits for the others.
func (r *nodeSearch) goNow(c *candidate) (verdict.Reason, verdict.Details) {
	if r.spent(100) {
		return verdict.NodeUnneeded, verdict.Say("it is scaled down at a later evaluation: other nodes have used up the budget of this one")
	}
	if pod, by, is := r.unsettled(c); is {
		return verdict.NodeUnneeded, verdict.Say("it is scaled down when upcoming nodes are Ready: where pod {pod} fits depends on pod {other}, whose place is on a node that is not Ready yet",
			verdict.Pod(pod.Pod.Key()), verdict.Other(by.Pod.Key()))
	}
	if pod, takes := r.shelters(c); takes {
		return verdict.NodeUnneeded, verdict.Say("pending pod {pod} fits on it, or would once other pending pods are scheduled elsewhere", verdict.Pod(pod))
	}
	var missing verdict.Details
	for i, row := range r.destinations {
		r.row = row
		reason, why := r.empty(c)
		if reason == "" {
			return "", nil
		}
		if i == 0 {
			missing = why
		}
	}
	if missing == nil {
		missing = verdict.Say("there is no other place")
	}
	return verdict.NodeUnneeded, verdict.Say("it is scaled down when other nodes are removed or upcoming ones are Ready: {why}", verdict.Why(missing))
}

// choose finds the nodes that can all go at once: the pods of every one have places on
// nodes that stay, or on upcoming ones.
func (r *nodeSearch) choose(list []*candidate) []*candidate {
	if len(list) == 0 {
		return nil
	}
	start := r.Fit.Try()
	best, chosen := r.search(list)
	if r.begin(shareChoice); len(chosen) > 0 {
		chosen = r.settled(best, list, chosen, start)
	}
	r.rehearsal = false
	for _, c := range list {
		r.missed[c.Node] = c.reason == verdict.NodeNotEvaluated
		if c.reason != "" {
			r.sayAgain(c)
			c.say(c.reason, c.why)
		}
	}
	return chosen
}

// search rehearses several orders, and the one stands that saves most. To undo what was chosen
// before, it must save more than the dearest node besides.
func (r *nodeSearch) search(list []*candidate) (best order, chosen []*candidate) {
	orders := ordersOf(list)
	best, most := orders[0], math.Inf(-1)
	if len(orders) > 1 {
		dearest := slices.MaxFunc(list, func(a, b *candidate) int { return cmp.Compare(a.worth, b.worth) }).worth
		for i, o := range orders {
			r.part = shareRehearsals * int64(i+1) / int64(len(orders))
			saved := r.rehearse(o, list)
			if o.anew {
				saved -= dearest
			}
			if saved > most+epsilon {
				best, most = o, saved
			}
		}
	}
	r.begin(shareChoice)
	chosen = r.pass(best, list, false)
	return best, append(chosen, r.passByTurns(list)...)
}

// epsilon is less than any node costs in an hour, and more than sums of prices err by.
const epsilon = 1e-6

// rehearse finds out what an order saves, and leaves all as it was.
func (r *nodeSearch) rehearse(o order, list []*candidate) (saved float64) {
	start := r.Fit.Try()
	for _, c := range r.pass(o, list, true) {
		saved += c.worth
		r.takeBack(c)
	}
	r.Fit.Revert(start)
	return saved
}

// pass empties the candidates in the simulation, one after the other. What cannot be emptied is as
// before, and its verdict says why, unless this is a rehearsal.
func (r *nodeSearch) pass(o order, list []*candidate, rehearsal bool) (chosen []*candidate) {
	r.rehearsal = rehearsal
	if !o.anew {
		chosen, _ = r.goTogether(list)
	}
	if len(chosen) == 0 || !o.usual { // else it is done
		o.sort(list)
		r.line(list)
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return c.Leaves })
	return append(chosen, r.letGoInTurn(o, rest, chosen)...)
}

// goTogether lets all candidates go that were chosen in an earlier evaluation, if the pods of all
// of them have places beside all of them; otherwise all is as before. It is for law 18: without it,
// of 200 clusters of twenty to sixty mixed nodes whose pods come and go, the marks of three do not
// settle in time in place of one, and nothing is saved by it. One after the other they would take
// places at each other, and which of them found none at the end would depend on which of them are
// marked: so two nodes would exchange their marks without end. The order is always the same. It also
// returns one that stays, where not all can go, or where the budget ends before that is known: then
// those go that were asked.
func (r *nodeSearch) goTogether(list []*candidate) (chosen []*candidate, stays *candidate) {
	if !slices.ContainsFunc(list, (*candidate).chosenBefore) {
		return nil, nil
	}
	usually.sort(list)
	r.line(list)
	bearers := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return !c.chosenBefore() })
	var inTurn []*candidate
	r.inTurn(usually, bearers, nil, func(c *candidate) (goes bool) {
		inTurn = append(inTurn, c)
		return true
	})
	if chosen, stays = r.whoStays(inTurn); stays == nil || stays.reason == verdict.NodeNotEvaluated {
		return chosen, stays
	}
	// A small pod may have taken the place that is the only one for a large one.
	slices.SortStableFunc(inTurn, func(a, b *candidate) int { return cmp.Compare(b.largestMover(), a.largestMover()) })
	r.row = r.Fit.NewRow(r.places) // it has learned which places are full, and they are not
	return r.whoStays(inTurn)
}

// whoStays lets all of these go, one after the other and none to another of them, if all can;
// otherwise it returns the first that cannot, and all is as before. Where the budget ends, those go
// that came before: beside them the others may stay as well.
func (r *nodeSearch) whoStays(bearers []*candidate) (gone []*candidate, stays *candidate) {
	start := r.Fit.Try()
	for _, c := range bearers {
		r.Fit.Close(c.Place)
	}
	for i, c := range bearers {
		switch c.reason, c.why = r.tryToGo(c); c.reason {
		case "":
			continue
		case verdict.NodeNotEvaluated:
			for _, other := range bearers[i:] {
				r.Fit.Reopen(other.Place)
				other.reason, other.why = c.reason, c.why
			}
			return bearers[:i], c
		}
		r.goBack(bearers[:i], start)
		return nil, c
	}
	return bearers, nil
}

// largestMover is what the largest of its movers requests, in cpus and in the memory that
// costs as much.
func (c *candidate) largestMover() float64 {
	largest := 0.0
	for _, t := range c.movers {
		largest = max(largest, cluster.WorkOf(t.Class))
	}
	return largest
}

// chosenBefore reports whether a candidate's clock runs, and its drain would go on.
func (c *candidate) chosenBefore() bool { return !c.stuck && !c.since.IsZero() }

// fewCandidates is up to how many candidates settled also heeds marks that are only lost, and chooses
// again by the whole search.
const fewCandidates = 200

// triesToSettle is how often at most it is asked who would be chosen again.
const triesToSettle = 5

// unsettledYet is why a node stays that would lose its mark again at once.
var unsettledYet = verdict.Say("its pods fit elsewhere only if the pods of nodes that are already being scaled down are scheduled in one certain order")

// settled leaves out, of those that are chosen where marks change, who would not be chosen
// again with these marks, though nothing else has changed. Where none was chosen before,
// that waits for the next evaluation, as it does where many only lose their marks.
func (r *nodeSearch) settled(o order, list, chosen []*candidate, start fit.Mark) []*candidate {
	marked := map[*candidate]time.Time{} // as it is
	fresh, lost, before := false, false, false
	for _, c := range list {
		marked[c] = c.since
		fresh = fresh || c.Leaves && c.since.IsZero()
		lost = lost || !c.Leaves && !c.since.IsZero()
		before = before || c.chosenBefore()
	}
	if !before || !fresh && (!lost || len(list) > fewCandidates) {
		return chosen
	}
	defer func() {
		for c, since := range marked {
			c.since = since
		}
	}()
	// Each further search has to fit into what is left.
	whole := len(list) <= fewCandidates && !r.spent(shareChoice/(1+triesToSettle))
	r.goBack(chosen, start)
	for tries := 1; ; tries++ {
		for _, c := range list {
			c.since = time.Time{}
		}
		for _, c := range chosen {
			c.since = cmp.Or(marked[c], r.Now)
		}
		again := r.chooseAgain(o, list, whole)
		if sameCandidates(again, chosen) {
			chosen = again
			break
		}
		r.goBack(again, start)
		if tries == triesToSettle || r.spent(r.part) {
			chosen = r.keepMarked(list, marked)
			break
		}
		// Who was chosen before does not lose its mark for one that was not.
		old := slices.DeleteFunc(slices.Clone(chosen), func(c *candidate) bool { return marked[c].IsZero() })
		loses := slices.ContainsFunc(old, func(c *candidate) bool { return !slices.Contains(again, c) })
		if loses && len(old) < len(chosen) {
			again = old
		}
		chosen = again
	}
	for _, c := range list {
		if !c.Leaves && c.reason == "" {
			c.reason, c.why = verdict.NodeNoPlace, unsettledYet
		}
	}
	return chosen
}

// keepMarked lets those go that bear a mark already, if all of them can go together; otherwise as
// many of them as can, or as are asked before the budget ends. None is marked anew: from then on all
// that bear a mark can go together, and those that are chosen beside them are not given up for others.
func (r *nodeSearch) keepMarked(list []*candidate, marked map[*candidate]time.Time) []*candidate {
	r.begin(shareMarked)
	for _, c := range list {
		c.since = marked[c]
	}
	for {
		together, stays := r.goTogether(list)
		if stays == nil || stays.reason == verdict.NodeNotEvaluated {
			return together
		}
		stays.since = time.Time{}
	}
}

// sameCandidates reports whether two lists have the same candidates.
func sameCandidates(a, b []*candidate) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c *candidate) bool { return !slices.Contains(b, c) })
}

// chooseAgain chooses as the next evaluation will, by its whole search or, where that is too
// much work, among those that bear a mark and in the order that stands.
func (r *nodeSearch) chooseAgain(o order, list []*candidate, whole bool) (chosen []*candidate) {
	if whole {
		defer func(began int64) { r.began = began }(r.began)
		r.began = r.Fit.Steps() // the next evaluation has a budget of its own
		_, chosen = r.search(list)
		return chosen
	}
	chosen, _ = r.goTogether(list)
	rest := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return c.Leaves || c.since.IsZero() })
	if len(rest) == 0 {
		return chosen
	}
	o.sort(list)
	r.line(list)
	return append(chosen, r.letGoInTurn(o, rest, chosen)...)
}

// letGoInTurn lets those of sorted candidates go that can, one after the other, beside those that
// are removed already.
func (r *nodeSearch) letGoInTurn(o order, list, gone []*candidate) (chosen []*candidate) {
	r.inTurn(o, list, gone, func(c *candidate) (goes bool) {
		if c.reason, c.why = r.tryToGo(c); c.reason != "" {
			return false
		}
		chosen = append(chosen, c)
		return true
	})
	return chosen
}

// goBack undoes that nodes go, and all that was done since.
func (r *nodeSearch) goBack(chosen []*candidate, start fit.Mark) {
	for _, c := range chosen {
		r.takeBack(c)
	}
	r.Fit.Revert(start)
}

// turnOfSearch is for how long those come first that came first.
const turnOfSearch = time.Minute

// passByTurns asks candidates that the search did not reach. So each of them is reached some day,
// however much work those before it make: the clock decides which is first, and nothing has to be
// persisted. Multiples of the golden ratio fall evenly into a circle.
func (r *nodeSearch) passByTurns(list []*candidate) (chosen []*candidate) {
	missed := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return c.reason != verdict.NodeNotEvaluated })
	if len(missed) == 0 {
		return nil
	}
	r.Clock.At(r.Now.Truncate(turnOfSearch).Add(turnOfSearch))
	slices.SortFunc(missed, func(a, b *candidate) int { return cmp.Compare(a.Name, b.Name) })
	turn := float64(r.Now.Unix() / int64(turnOfSearch/time.Second))
	_, part := math.Modf(turn * (math.Phi - 1))
	first := int(part * float64(len(missed)))
	r.begin(shareTurns)
	for _, c := range slices.Concat(missed[first:], missed[:first]) {
		if c.reason, c.why = r.tryToGo(c); c.reason == "" {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// tryToGo lets a candidate go if its pods have places beside all that is settled so far;
// otherwise it says why it stays, and all is as before.
func (r *nodeSearch) tryToGo(c *candidate) (verdict.Reason, verdict.Details) {
	if r.spent(r.part) {
		return verdict.NodeNotEvaluated, searchEnded
	}
	reason, why := r.whyWithheld(c)
	if reason == "" {
		reason, why = r.empty(c)
	}
	if reason == "" {
		r.letGo(c)
	}
	return reason, why
}

// letGo counts a node among those that go.
func (r *nodeSearch) letGo(c *candidate) {
	c.Leaves = true
	r.leaving[c.Group]++
	r.gone[c.Group]++
	r.remains.Take(c.Node)
	r.reserve(c, -1)
}

// takeBack counts it among those that stay again.
func (r *nodeSearch) takeBack(c *candidate) {
	c.Leaves = false
	r.leaving[c.Group]--
	r.gone[c.Group]--
	r.remains.Add(c.Node)
	r.reserve(c, 1)
}

// line makes the row of places in which movers look for another: nodes that stay for certain come
// first, the fullest of them at the front, then the candidates, those that go last at the front. At
// the end stands what is only upcoming: a node whose pods go there is unneeded, but is not scaled
// down before it is there.
func (r *nodeSearch) line(list []*candidate) {
	turn := map[*cluster.Node]int{}
	for i, c := range list {
		turn[c.Node] = len(list) - i
	}
	stay := slices.SortedStableFunc(r.In(cluster.Serving), func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(turn[a], turn[b]), cmp.Compare(r.Used(b), r.Used(a)))
	})
	r.places = cluster.Places(stay)
	r.places = slices.DeleteFunc(r.places, r.isClaimed)
	r.places = append(r.places, slices.DeleteFunc(slices.Clone(r.Upcoming), r.isClaimed)...)
	r.row = r.Fit.NewRow(r.places)
}
