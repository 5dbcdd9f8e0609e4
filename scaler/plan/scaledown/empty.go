package scaledown

import (
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// empty moves, in the simulation, every pod of the node elsewhere. If one cannot go,
// all is as before.
func (r *nodeSearch) empty(c *candidate) (verdict.Reason, verdict.Details) {
	start := r.Fit.Try()
	r.Fit.Close(c.Place)
	reason, why := r.moveAll(c)
	if reason == "" {
		reason, why = r.whyCrowded()
	}
	if reason != "" {
		r.Fit.Revert(start)
	}
	return reason, why
}

// moveAll seats all that has a seat on the node on nodes that stay: its own
// pods, and those that were promised one there.
func (r *nodeSearch) moveAll(c *candidate) (verdict.Reason, verdict.Details) {
	movers := r.seated(c)
	if len(movers) > 0 && r.Fit.Unrelated(movers[0].Class) && r.row.Find(movers[0].Class) == nil {
		return verdict.NodeNoPlace, r.whyNoPlace(c, movers[0])
	}
	for _, t := range movers {
		r.Fit.Lift(t, c.Place)
	}
	for _, t := range movers {
		if t.Pod.Node != c.Name && t.Class.Tolerates(seats.Closed...) {
			return verdict.NodeBlocked, wouldReturn(t.Pod)
		}
		if r.row.Seat(t) == nil {
			return verdict.NodeNoPlace, r.whyNoPlace(c, t)
		}
	}
	return "", nil
}

func wouldReturn(p *fleet.Pod) verdict.Details {
	return verdict.Say("pod {pod} tolerates a node that is being drained, and would return", verdict.Pod(p.Key()))
}

// seated are the pods that need another place when the node goes, in the order in which
// they seek it: its own, and those that were promised one there.
func (r *nodeSearch) seated(c *candidate) []fit.Tenant {
	list := slices.Clip(c.seekers)
	for _, t := range c.Place.Seated() {
		if t.Pod.Node != c.Name {
			list = append(list, t)
		}
	}
	if len(list) == len(c.seekers) {
		return list
	}
	return r.Fit.Sorted(list, []*fit.NodeTemplate{c.Place.Template()})
}

// whyNoPlace says of the place that comes nearest to taking the pod what is missing, or why
// there is none at all beside the node that would go.
func (r *nodeSearch) whyNoPlace(c *candidate, t fit.Tenant) verdict.Details {
	if r.rehearsal {
		return nil
	}
	why := verdict.Say("pod {pod} has no other place", verdict.Pod(t.Pod.Key()))
	best := r.row.Nearest(t.Class)
	if c.unplaced = (fit.Seat{Tenant: t, At: best}); best != nil {
		lack := r.Fit.Fits(t.Class, best)
		if len(lack) == 0 {
			return why // the row's refusal is of before others left that place
		}
		return why.Then(verdict.Say("the nearest is {place}: {lack}", verdict.Place(best.Name), verdict.Lack(lack.String())))
	}
	if !r.Any(func(n *cluster.Node) bool { return n.Open && n != c.Node }, cluster.Serving) {
		return why.And(": no other node is Ready and open to pods")
	}
	why = why.And(": the other Ready nodes are scaled down too")
	if len(r.claimed) > 0 {
		why = why.And(", or are kept for the pods of others")
	}
	return why
}

// sayAgain says of a candidate that stays, where the place that it names is on a node that was
// chosen to go after it was asked, that this is so. To ask what the next place lacks would mean to
// move all its pods once more: those that leave with the pod may be what takes its place.
func (r *nodeSearch) sayAgain(c *candidate) {
	at := c.unplaced.At
	if c.reason != verdict.NodeNoPlace || at == nil || r.Node(at.Name) == nil || !r.Node(at.Name).Leaves {
		return
	}
	c.why = verdict.Say("pod {pod} has no other place: node {node}, which came nearest, is scaled down too", verdict.Pod(c.unplaced.Tenant.Pod.Key()), verdict.Node(at.Name))
}

// unsettled finds one of the candidate's pods whose place depends on another's, as it spreads with
// that one or wants to be with it, while that one's is on a node that does not serve yet: before
// that serves, and it may never, kube-scheduler sees other domains than we do. Anti-affinity needs
// no such care, see standInBoth.
func (r *nodeSearch) unsettled(c *candidate) (pod, by fit.Tenant, is bool) {
	for _, t := range r.seated(c) {
		if r.Fit.Unrelated(t.Class) {
			continue
		}
		for _, other := range r.unlandedKinds() {
			if r.Fit.Follows(t.Class, other.Class) {
				return t, other, true
			}
		}
	}
	return fit.Tenant{}, fit.Tenant{}, false
}

// unlandedKinds are a pod of each class that has seats where nothing serves yet.
func (r *nodeSearch) unlandedKinds() []fit.Tenant {
	if r.unlandedOnes == nil {
		r.unlandedOnes = []fit.Tenant{}
		known := map[*fit.Class]bool{}
		for _, p := range r.UnsettledPlaces() {
			for _, t := range p.Seated() {
				if !known[t.Class] {
					known[t.Class] = true
					r.unlandedOnes = append(r.unlandedOnes, t)
				}
			}
		}
	}
	return r.unlandedOnes
}

// shelters names a pending pod that is about to be bound to the node, unless kube-scheduler has
// left it pending for long; or one without any place that the node would take, if such pods were
// not thought to go there: they may as well go where they would if the node went.
func (r *nodeSearch) shelters(c *candidate) (pod string, takes bool) {
	start := r.Fit.Fork()
	defer r.Fit.Revert(start)
	for _, t := range c.Place.Tenants() {
		if t.Pod.Node == "" && !cluster.Imaginary(t.Pod) && !r.LeftWaiting(t.Pod) {
			return t.Pod.Key(), true
		}
		if t.Pod.Node != c.Name {
			r.Fit.Lift(t, c.Place)
		}
	}
	if r.Fit.Fork() == start {
		return "", false // it was asked when they sought their places
	}
	for _, t := range r.Unschedulable {
		if len(r.Fit.Fits(t.Class, c.Place)) == 0 {
			return t.Pod.Key(), true
		}
	}
	return "", false
}

// standInBoth seats the pods that leave a node for one that does not serve yet at both: until that
// serves they run where they are, and keep away from there the pods that they keep away.
func (d *ScaleDown) standInBoth() {
	for _, p := range d.UnsettledPlaces() {
		for _, t := range p.Tenants() {
			if from := d.Node(t.Pod.Node); from != nil && from.Place != p {
				d.Fit.Put(t, from.Place)
			}
		}
	}
}
