package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// inServiceAgain reports whether a taint is there because the machine was down, and whether it is
// removed at once, as the node is Ready: a pod that is pending just then must not trigger scale-up.
func inServiceAgain(n *Node, t corev1.Taint) bool {
	return n.OutOfService && n.Ready && t.Key == corev1.TaintNodeOutOfService
}

// ReturnsWithin is how long a node whose drain was cancelled counts as a place for pods. An agent
// undoes a drain in a moment; if neither it nor we have done so by then, pods must not go on
// waiting for this node.
const ReturnsWithin = 2 * contract.UnresponsiveAfter

// ToldOfWay reports whether a request of ours names a way out of service that the node's instance
// was on.
func (n *Node) ToldOfWay() bool {
	return n.Instance != nil && n.Requested && n.Request.By == contract.AppScaler &&
		(n.Request.ID == contract.WarmID(n.Instance.ID) || n.Request.ID == contract.TerminateID(n.Instance.ID))
}

// BackInService says that a node was drained for a way out of service from which its instance has
// come back, and for nothing else: its agent undoes the drain when it is up. The ids are those of
// all that drained it. A node that serves and is about to be terminated looks the same, but is not
// known as one that was out: by our persisted state, or by a request of ours.
func (d *Cluster) BackInService(n *Node) (ended []string, back bool) {
	if n.Instance == nil || !n.Instance.Live() || n.Draining() != contract.KindASG {
		return nil, false
	}
	_, pooled := d.Given.Unjoined[n.Instance.ID]
	_, returning := d.Given.Returning[n.Name]
	told := n.ToldOfWay()
	if !pooled && !returning && !told || n.Unreadable != nil || n.Requested && !told {
		return nil, false
	}
	warm, terminate := contract.WarmID(n.Instance.ID), contract.TerminateID(n.Instance.ID)
	ended = n.drainedFor(warm)
	over := func(id string) bool {
		return id == warm || contract.IsScaleDown(id) || id == terminate && (returning || n.Requested && n.Request.ID == terminate)
	}
	if slices.ContainsFunc(ended, func(id string) bool { return !over(id) }) {
		return nil, false
	}
	return ended, true
}

// drainedFor are the ids that are named on the node as those of its drain, and one more.
func (n *Node) drainedFor(id string) []string {
	ids := append([]string{id}, n.Report.Answers...)
	if n.Requested {
		ids = append(ids, n.Request.ID)
	}
	cordon, err := contract.ParseCordon(n.Annotations[contract.AnnotationCordonedBy])
	if err == nil && cordon.Notice != "" {
		ids = append(ids, cordon.Notice)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ReturnsSoon reports whether pods may count on a node whose drain was cancelled.
func (d *Cluster) ReturnsSoon(n *Node) bool {
	return d.Now.Before(n.ReturnsSince.Add(ReturnsWithin))
}

// Outlived reports whether a node bears the mark of a termination that its instance has
// outlived.
func (d *Cluster) Outlived(n *Node) bool {
	if n.Mark == "" || n.Instance == nil || !n.Instance.Live() {
		return false
	}
	_, seen := d.Given.Outlived[n.Instance.ID]
	return seen
}
