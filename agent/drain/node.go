package drain

import (
	"slices"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// cordon makes want a node that nothing new comes to: unschedulable, tainted,
// out of the load balancers. What people did already stays theirs.
func (d *decision) cordon() {
	winner := d.winner()
	if !d.want.Unschedulable {
		d.want.Unschedulable = true
		d.want.Annotations[contract.AnnotationCordonedBy] = contract.Cordon{
			By: contract.AppAgent, Notice: winner.ID, Boot: d.Node.BootID, At: contract.At(d.Now),
		}.String()
	}
	if kind, ok := contract.Draining(d.want.Taints); !ok || kind != winner.Kind {
		d.want.Taints = contract.WithTaint(d.want.Taints, contract.DrainingTaint(winner.Kind))
	}
	if _, ok := d.want.Labels[contract.LabelExcludeFromLoadBalancers]; !ok {
		d.want.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
		d.want.Annotations[contract.AnnotationExcluded] = winner.ID
	}
}

// restore makes want the node that it was before the drain, and says whether
// there was anything to do.
func (d *decision) restore() (changed bool) {
	a := d.want.Annotations
	if _, ours := a[contract.AnnotationCordonedBy]; ours {
		changed = changed || d.want.Unschedulable
		d.want.Unschedulable = false
		delete(a, contract.AnnotationCordonedBy)
	}
	if _, tainted := contract.Draining(d.want.Taints); tainted {
		changed = true
		d.want.Taints = contract.WithoutTaint(d.want.Taints, contract.TaintDraining)
	}
	if _, ours := a[contract.AnnotationExcluded]; ours {
		delete(d.want.Labels, contract.LabelExcludeFromLoadBalancers)
		delete(a, contract.AnnotationExcluded)
	}
	delete(a, contract.AnnotationDrainPermit)
	delete(a, contract.AnnotationDrainReport)
	return changed
}

// remember writes down that the notices are served.
func (d *decision) remember() {
	list := d.served
	for _, n := range d.notices {
		served, ok := list.Find(n.ID)
		if ok && !served.Withdrawn && served.Kind == n.Kind {
			continue
		}
		list = list.Add(contract.Served{ID: n.ID, Kind: n.Kind, Boot: d.Node.BootID, At: contract.At(d.Now)})
	}
	d.keepServed(list)
}

// forget changes the memory of notices that no longer stand, so that the same
// id, when it comes again, is a new wish: a person may ask twice with one word,
// and an instance that returned from a warm pool may be terminated again. The
// metadata's stay as history; a request's go with the request.
func (d *decision) forget() {
	var list contract.ServedList
	for _, s := range d.served {
		_, metadata := notice.OfMetadata(s.ID)
		switch {
		case d.stands(s.ID), metadata && !d.Heard, s.Withdrawn:
			list = append(list, s)
		case metadata:
			s.Withdrawn, s.At = true, contract.At(d.Now)
			list = append(list, s)
		}
	}
	for _, id := range d.underWay() {
		cause, metadata := notice.OfMetadata(id)
		if _, known := list.Find(id); known || !metadata || d.stands(id) {
			continue
		}
		list = list.Add(contract.Served{ID: id, Kind: cause.Kind(), Boot: d.Node.BootID, At: contract.At(d.Now), Withdrawn: true})
	}
	d.served = list
	d.keepServed(list)
}

func (d *decision) stands(id string) bool {
	return slices.ContainsFunc(d.standing, func(n notice.Notice) bool { return n.ID == id })
}

func (d *decision) keepServed(list contract.ServedList) {
	if len(list) == 0 {
		delete(d.want.Annotations, contract.AnnotationServed)
		return
	}
	d.want.Annotations[contract.AnnotationServed] = list.String()
}
