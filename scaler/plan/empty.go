package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/fit"
)

// empty moves, in thought, every pod of the node elsewhere. If one cannot go,
// all is as before.
func (r *retirement) empty(n *node) (Reason, string) {
	var undo []func()
	start := r.fit.Fork()
	reason, why := r.evictAll(n, &undo)
	if reason == "" {
		reason, why = r.moveAll(n)
	}
	if reason == "" {
		n.gone = true
		return "", ""
	}
	r.fit.Revert(start)
	for _, back := range slices.Backward(undo) {
		back()
	}
	return reason, why
}

// evictAll asks for each pod whether it may leave, counting what the budgets
// allow for all nodes together.
func (r *retirement) evictAll(n *node, undo *[]func()) (Reason, string) {
	for _, p := range n.pods {
		v := drainable.Judge(drainable.Question{Pod: p, Now: r.now, Budgets: r.budgets, Policy: r.policy.Drainable})
		if v.Outcome == drainable.Block {
			return NodeBlocked, fmt.Sprintf("pod %s may not leave: %s", p.Key(), v.Reason)
		}
		if v.Outcome == drainable.Leave {
			*undo = append(*undo, r.budgets.Take(p))
		}
	}
	return "", ""
}

// moveAll seats all that has a seat on the node on nodes that stay: its own
// pods, and those that were promised one there.
func (r *retirement) moveAll(n *node) (Reason, string) {
	movers := r.moving(n)
	for _, t := range n.place.Tenants() {
		if t.Pod.Node != n.Name {
			movers = append(movers, t)
		}
	}
	for _, t := range movers {
		r.fit.Lift(t, n.place)
	}
	for _, t := range r.fit.Sorted(movers, []*fit.Looks{n.place.Looks()}) {
		if t.Class.Tolerates(closed...) {
			return NodeBlocked, fmt.Sprintf("pod %s tolerates a node that is being drained, and would come back", t.Pod.Key())
		}
		if r.unsettled && followsOthers(t) {
			return NodeNoPlace, fmt.Sprintf("pod %s goes by where other pods are, and some wait for nodes that are coming", t.Pod.Key())
		}
		if !r.move(t, n) {
			return NodeNoPlace, fmt.Sprintf("pod %s has no other place%s", t.Pod.Key(), r.nearest(t, n))
		}
	}
	return "", ""
}

// closed is what keeps kube-scheduler off a node that is drained.
var closed = []corev1.Taint{
	contract.DrainingTaint(contract.KindScaleDown),
	{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
}

func (r *retirement) move(t fit.Tenant, from *node) bool {
	return slices.ContainsFunc(r.stay, func(to *node) bool {
		return to != from && !to.gone && r.fit.TrySeat(t, to.place)
	})
}

// nearest says of the node that comes nearest to taking the pod what is
// missing.
func (r *retirement) nearest(t fit.Tenant, from *node) string {
	var best *node
	var why fit.Reasons
	for _, to := range r.stay {
		if to == from || to.gone {
			continue
		}
		misses := r.fit.Fits(t.Class, to.place)
		if best == nil || misses.Nearer(why) {
			best, why = to, misses
		}
	}
	if best == nil {
		return ": no other node is Ready and open to pods"
	}
	return fmt.Sprintf("; the nearest is %s: %s", best.Name, why)
}

func (d *decision) unsettled() bool { return len(d.unsettledPlaces()) > 0 }

// unsettledPlaces are the places where nothing serves yet.
func (d *decision) unsettledPlaces() []*fit.Place {
	list := slices.Concat(d.coming, d.staying())
	for _, g := range d.groups {
		list = append(list, g.fresh...)
	}
	return list
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
