package drain

import (
	"slices"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// close makes want a node that nothing new comes to: unschedulable, tainted, and
// out of the load balancers unless it waits for its permit. An event that is
// announced for many nodes at once would take all of them away from what they
// serve, though only a few may drain; for the same reason they take pods until the
// permit, or until the deadline is near. What people did already stays theirs.
func (d *decision) close() {
	if d.pause.open {
		d.restore()
		return
	}
	winner := d.winner()
	d.cordon(winner)
	if kind, ok := contract.Draining(d.want.Taints); !ok || kind != winner.Kind {
		d.want.Taints = contract.WithTaint(d.want.Taints, contract.DrainingTaint(winner.Kind))
	}
	if d.pause.wants == "" {
		d.leaveBalancers(winner)
	}
}

// leaveBalancers keeps new connections away: by the label for those who make the load
// balancers, and where that is wanted by the taint for kube-proxy, whom they may ask.
func (d *decision) leaveBalancers(n notice.Notice) {
	if _, ok := d.want.Labels[contract.LabelExcludeFromLoadBalancers]; !ok {
		d.want.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
		d.want.Annotations[contract.AnnotationExcluded] = n.ID
	}
	if d.policy.KubeProxyTaint {
		d.want.Taints = contract.WithKubeProxyTaint(d.want.Taints)
	}
}

// cordon makes want unschedulable, with our mark unless somebody else did it
// before. The mark names a notice for which it still holds, and dates from when the node was
// open, if that is known.
func (d *decision) cordon(n notice.Notice) {
	mark := contract.Cordon{By: contract.AppAgent, Notice: n.ID, Boot: d.Node.BootID, At: contract.At(d.Now)}
	switch {
	case !d.want.Unschedulable:
	case d.mark == nil:
		return
	case has(d.drains, d.mark.Notice), has(d.cordons, d.mark.Notice):
		mark = *d.mark
	default:
		mark.At = d.mark.At
	}
	d.want.Unschedulable = true
	d.want.Annotations[contract.AnnotationCordonedBy] = mark.String()
}

// respectUncordon takes it for a person's word, or the scaler's, if a node that does not
// drain, or waits for its turn, is schedulable though our mark is there, or though it was cordoned when the notice was
// first listed, by whomever: nothing more is done about these notices.
func (d *decision) respectUncordon() {
	_, closed := contract.Draining(d.Node.Taints)
	if d.Node.Unschedulable || len(d.drains) > 0 && closed {
		return
	}
	list := d.noted
	if d.rehearsed != nil { // in the simulation it is not cordoned
		list, _ = contract.ParseNoticed(d.rehearsed.Annotations[contract.AnnotationNotices])
	}
	isRespected := func(n notice.Notice) bool {
		noted, known := list.Find(n.ID)
		return d.mark != nil || known && noted.Does == string(notice.Cordon)
	}
	for _, n := range d.cordons {
		if isRespected(n) {
			d.serve([]notice.Notice{n})
		}
	}
	d.cordons = slices.DeleteFunc(d.cordons, isRespected)
}

// undo makes want the node that it was before, but for a cordon that a notice
// still asks for, and records that.
func (d *decision) undo() {
	_, tainted := contract.Draining(d.want.Taints)
	drained := tainted || d.old != nil && len(d.old.Answers) > 0
	uncordoned := d.restore()
	for _, key := range []string{contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet, contract.AnnotationDrainReport} {
		delete(d.want.Annotations, key)
	}
	switch {
	case drained && len(d.cordons) > 0:
		d.tell(false, contract.EventDrainUndone, d.ending("the drain")+"; the node stays cordoned: "+d.cordons[0].Reason)
	case drained:
		d.tell(false, contract.EventDrainUndone, d.ending("the drain")+"; its changes to the node are undone")
	case uncordoned:
		d.tell(false, contract.EventUncordoned, d.ending("the cordon")+"; the node takes pods again")
	}
}

// ending says why something is over.
func (d *decision) ending(what string) string {
	switch {
	case slices.ContainsFunc(d.fulfilled, d.hasRebooted):
		return "the machine has rebooted, as announced"
	case len(d.fulfilled) > 0:
		return "the announced event is over"
	}
	return "no notice or request asks for " + what + " any more"
}

// restore opens the node as far as it was we who closed it, and says whether that took a
// cordon away.
func (d *decision) restore() (uncordoned bool) {
	a := d.want.Annotations
	if _, ours := a[contract.AnnotationCordonedBy]; ours && len(d.cordons) == 0 {
		uncordoned = d.want.Unschedulable
		d.want.Unschedulable = false
		delete(a, contract.AnnotationCordonedBy)
	}
	if len(d.cordons) > 0 {
		d.cordon(d.cordons[0])
	}
	if _, tainted := contract.Draining(d.want.Taints); tainted {
		d.want.Taints = contract.WithoutTaint(d.want.Taints, contract.TaintDraining)
	}
	d.want.Taints = contract.WithoutKubeProxyTaint(d.want.Taints)
	if _, ours := a[contract.AnnotationExcluded]; ours {
		delete(d.want.Labels, contract.LabelExcludeFromLoadBalancers)
		delete(a, contract.AnnotationExcluded)
	}
	return uncordoned
}
