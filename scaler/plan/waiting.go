package plan

import (
	"fmt"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// seatWaiting looks for places for the pods without a node, without launching
// any: on nodes that serve, because kube-scheduler may not have looked since
// room came free; on nodes whose drain is being undone; on nodes that come; and
// on nodes being retired, because keeping is cheaper than launching.
func (d *decision) seatWaiting() {
	d.coming = d.onTheWay()
	free := d.fit.NewRow(places(d.in(serving)))
	staying := d.fit.NewRow(d.staying())
	coming := d.fit.NewRow(d.coming)
	for _, t := range d.inOrder(append(d.waiting(), d.foresee()...)) {
		if p := free.Seat(t); p != nil {
			d.sayPod(t, PodFitsFree, "", fmt.Sprintf("node %s has room for it%s", p.Name, caveat(t.Class)))
			continue
		}
		if p := staying.Seat(t); p != nil {
			d.sayPod(t, PodKeepsNode, "", fmt.Sprintf("node %s stays and has room for it%s", p.Name, caveat(t.Class)))
			continue
		}
		if p := coming.Seat(t); p != nil {
			d.sayPod(t, PodFitsComing, "", fmt.Sprintf("%s is coming and has room for it%s", p.Name, caveat(t.Class)))
			continue
		}
		if n := d.seatKept(t); n != nil {
			d.keep(n, fmt.Sprintf("pod %s needs it", t.Pod.Key()))
			d.sayPod(t, PodKeepsNode, "", fmt.Sprintf("node %s stays and has room for it%s", n.Name, caveat(t.Class)))
			continue
		}
		d.left = append(d.left, t)
	}
}

// waiting are the pods that a new node could help; each of the others without a
// node gets a verdict that says why none would.
func (d *decision) waiting() []fit.Tenant {
	var list []fit.Tenant
	for _, p := range d.pods {
		if !wantsNode(p) {
			continue
		}
		t := d.fit.Tenant(p)
		switch {
		case p.Scheduling == fleet.Gated:
			d.sayPod(t, PodGated, "", "it has scheduling gates, and wants no node before they are removed")
		case d.promised(p):
			d.sayPod(t, PodNominated, "", fmt.Sprintf("kube-scheduler makes room for it on node %s", p.Nominated))
		case d.expendable(p):
			d.sayPod(t, PodExpendable, "", fmt.Sprintf("its priority %d is below %d, so it brings no node", p.Priority(), d.policy.ExpendableBelow))
		default:
			list = append(list, t)
		}
	}
	return list
}

// promised says that kube-scheduler makes room for the pod on a node that it may
// still come to.
func (d *decision) promised(p *fleet.Pod) bool {
	n := d.node(p.Nominated)
	return n != nil && n.stage != leaving && n.stage != terminating
}

// wantsNode says that the pod is without a node and in need of one. Pods of
// DaemonSets are made for a node that is there already.
func wantsNode(p *fleet.Pod) bool {
	return p.Node == "" && drainable.MustBePlacedAgain(p)
}

// inOrder is the order in which pods are placed: by priority, the largest
// first, measured against the largest nodes that there could be.
func (d *decision) inOrder(pods []fit.Tenant) []fit.Tenant {
	var all []*fit.Looks
	for _, g := range d.groups {
		all = append(all, g.looks...)
	}
	return d.fit.Sorted(pods, all)
}

// sayPod settles the verdict of a waiting pod. Pods that are only foreseen to
// wait have none.
func (d *decision) sayPod(t fit.Tenant, reason Reason, group, message string) {
	if !wantsNode(t.Pod) {
		return
	}
	d.podVerdicts = append(d.podVerdicts, Verdict{
		Of: OfPod, Name: t.Pod.Key(), UID: string(t.Pod.UID), Group: group, Reason: reason, Message: message,
	})
}
