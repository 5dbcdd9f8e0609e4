package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
)

// empty moves, in thought, every pod of the node elsewhere. If one cannot go,
// all is as before.
func (r *retirement) empty(c *candidate) (Reason, string) {
	start := r.fit.Try()
	r.fit.Close(c.place)
	reason, why := r.moveAll(c)
	if reason == "" {
		reason, why = r.crowdsOut()
	}
	if reason != "" {
		r.fit.Revert(start)
	}
	return reason, why
}

// moveAll seats all that has a seat on the node on nodes that stay: its own
// pods, and those that were promised one there.
func (r *retirement) moveAll(c *candidate) (Reason, string) {
	movers := r.seated(c)
	if len(movers) > 0 && r.fit.Unrelated(movers[0].Class) && r.row.Find(movers[0].Class) == nil {
		return NodeNoPlace, r.noPlace(c, movers[0])
	}
	for _, t := range movers {
		r.fit.Lift(t, c.place)
	}
	for _, t := range movers {
		if t.Pod.Node != c.Name && t.Class.Tolerates(closed...) {
			return NodeBlocked, fmt.Sprintf("pod %s tolerates a node that is being drained, and would come back", t.Pod.Key())
		}
		if r.row.Seat(t) == nil {
			return NodeNoPlace, r.noPlace(c, t)
		}
	}
	return "", ""
}

// seated are the pods that need another place when the node goes, in the order in which
// they seek it: its own, and those that were promised one there.
func (r *retirement) seated(c *candidate) []fit.Tenant {
	list := slices.Clip(c.seekers)
	for _, t := range c.place.Seated() {
		if t.Pod.Node != c.Name {
			list = append(list, t)
		}
	}
	if len(list) == len(c.seekers) {
		return list
	}
	return r.fit.Sorted(list, []*fit.Looks{c.place.Looks()})
}

// closed is what keeps kube-scheduler off a node that is drained.
var closed = []corev1.Taint{
	contract.DrainingTaint(contract.KindScaleDown),
	{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
}

// noPlace says of the place that comes nearest to taking the pod what is missing, or why
// there is none at all beside the node that would go.
func (r *retirement) noPlace(c *candidate, t fit.Tenant) string {
	if r.rehearsal {
		return ""
	}
	why := fmt.Sprintf("pod %s has no other place", t.Pod.Key())
	best := r.row.Nearest(t.Class)
	if c.unplaced = (fit.Seat{Tenant: t, At: best}); best != nil {
		return fmt.Sprintf("%s; the nearest is %s: %s", why, best.Name, r.fit.Fits(t.Class, best))
	}
	if !slices.ContainsFunc(r.in(serving), func(n *node) bool { return n.open && n != c.node }) {
		return why + ": no other node is Ready and open to pods"
	}
	why += ": the other nodes that are Ready go as well"
	if len(r.claimed) > 0 {
		why += ", or are kept for the pods of others"
	}
	return why
}

// sayAgain puts the reason of a candidate that stays into words again, if the place that it
// names is on a node that was chosen to go after it was asked.
func (r *retirement) sayAgain(c *candidate) {
	if at := c.unplaced.At; c.reason != NodeNoPlace || at == nil || r.node(at.Name) == nil || !r.node(at.Name).gone {
		return
	}
	start := r.fit.Fork()
	r.fit.Close(c.place)
	c.why = r.noPlace(c, c.unplaced.Tenant)
	r.fit.Revert(start)
}

// unsettled finds one of the candidate's pods whose place depends on another's, as it
// spreads with that one or wants to be with it, while that one's is on a node that does not
// serve yet: before that comes, and it may not, kube-scheduler sees other domains than we
// do. Anti-affinity needs no such care, see standInBoth.
func (r *retirement) unsettled(c *candidate) (pod, by fit.Tenant, is bool) {
	for _, t := range r.seated(c) {
		if r.fit.Unrelated(t.Class) {
			continue
		}
		for _, other := range r.unlandedKinds() {
			if r.fit.Follows(t.Class, other.Class) {
				return t, other, true
			}
		}
	}
	return fit.Tenant{}, fit.Tenant{}, false
}

// unlandedKinds are a pod of each class that has seats where nothing serves yet.
func (r *retirement) unlandedKinds() []fit.Tenant {
	if r.unlandedOnes == nil {
		r.unlandedOnes = []fit.Tenant{}
		known := map[*fit.Class]bool{}
		for _, p := range r.unsettledPlaces() {
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

// shelters names a pod that waits and that is about to be bound to the node, unless
// kube-scheduler has left it waiting for long; or one without any place that the node would
// take, if pods that come were not thought to go there: they may as well go where they would
// if the node went.
func (r *retirement) shelters(c *candidate) (pod string, takes bool) {
	start := r.fit.Fork()
	defer r.fit.Revert(start)
	for _, t := range c.place.Tenants() {
		if t.Pod.Node == "" && !imaginary(t.Pod) && !r.leftWaiting(t.Pod) {
			return t.Pod.Key(), true
		}
		if t.Pod.Node != c.Name {
			r.fit.Lift(t, c.place)
		}
	}
	if r.fit.Fork() == start {
		return "", false // it was asked when they sought their places
	}
	for _, t := range r.homeless {
		if len(r.fit.Fits(t.Class, c.place)) == 0 {
			return t.Pod.Key(), true
		}
	}
	return "", false
}

// unsettledPlaces are the places where nothing serves yet.
func (d *decision) unsettledPlaces() []*fit.Place {
	return slices.Concat(d.coming, d.staying(), d.allFresh())
}

// standInBoth seats the pods that leave a node for one that does not serve yet at both:
// until that comes they run where they are, and keep away from there whom they keep
// away.
func (d *decision) standInBoth() {
	for _, p := range d.unsettledPlaces() {
		for _, t := range p.Tenants() {
			if from := d.node(t.Pod.Node); from != nil && from.place != p {
				d.fit.Put(t, from.place)
			}
		}
	}
}
