package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodFrom says in our words what a Pod is. It shares what it can with p: its
// spec (but for nodeName), its maps and its owner.
func PodFrom(p *corev1.Pod) Pod {
	spec := *Bounded(&p.Spec)
	spec.NodeName = ""
	pod := Pod{
		Namespace:   p.Namespace,
		Name:        p.Name,
		UID:         p.UID,
		Labels:      p.Labels,
		Annotations: p.Annotations,
		Owner:       metav1.GetControllerOfNoCopy(p),
		Node:        p.Spec.NodeName,
		Spec:        &spec,
		Created:     SecondOf(p.CreationTimestamp.Time),
		Phase:       PhaseOf(p.Status.Phase),
	}
	if p.DeletionTimestamp != nil {
		pod.Deleted = SecondOf(p.DeletionTimestamp.Time)
	}
	pod.setRare(Rare{Nominated: p.Status.NominatedNodeName, Claims: p.Status.ResourceClaimStatuses, ExtendedClaim: p.Status.ExtendedResourceClaimStatus})
	for i := range p.Status.Conditions {
		pod.condition(&p.Status.Conditions[i])
	}
	return pod
}

func (p *Pod) condition(c *corev1.PodCondition) {
	switch c.Type {
	case corev1.PodReady:
		p.Ready = c.Status == corev1.ConditionTrue
	case corev1.PodScheduled:
		if p.Node != "" || c.Status != corev1.ConditionFalse {
			return
		}
		switch c.Reason {
		case corev1.PodReasonUnschedulable:
			p.Scheduling = Unschedulable
		case corev1.PodReasonSchedulingGated:
			p.Scheduling = Gated
		case corev1.PodReasonSchedulerError:
			p.Scheduling = Unbindable
		default:
			return // not judged
		}
		p.Judged = SecondOf(c.LastTransitionTime.Time)
	}
}

// NodeFrom says in our words what a Node is. It shares what it can with n.
func NodeFrom(n *corev1.Node) Node {
	node := Node{
		Name:          n.Name,
		UID:           n.UID,
		ProviderID:    n.Spec.ProviderID,
		Created:       n.CreationTimestamp.UTC(),
		Labels:        n.Labels,
		Annotations:   n.Annotations,
		Taints:        n.Spec.Taints,
		Unschedulable: n.Spec.Unschedulable,
		Capacity:      BoundedList(n.Status.Capacity),
		Allocatable:   BoundedList(n.Status.Allocatable),
		BootID:        n.Status.NodeInfo.BootID,
		Attached:      len(n.Status.VolumesAttached),

		DeclaredFeatures: n.Status.DeclaredFeatures,
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Ready, node.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.UTC()
		}
	}
	return node
}

// ordered is a selector with the values of each expression in order: a long list is searched for each pod.
func ordered(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil || !slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return !slices.IsSorted(e.Values) }) {
		return s
	}
	s = s.DeepCopy()
	for _, e := range s.MatchExpressions {
		slices.Sort(e.Values)
	}
	return s
}

// BudgetFrom says in our words what a PodDisruptionBudget is.
func BudgetFrom(b *policyv1.PodDisruptionBudget) Budget {
	budget := Budget{
		Namespace: b.Namespace,
		Name:      b.Name,
		Selector:  ordered(b.Spec.Selector),
		Healthy:   b.Status.CurrentHealthy,
		Desired:   b.Status.DesiredHealthy,
	}
	// The eviction API refuses while the status lags behind the spec.
	if b.Status.ObservedGeneration >= b.Generation {
		budget.Allowed = b.Status.DisruptionsAllowed
	}
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil {
		budget.AlwaysAllowUnhealthy = *p == policyv1.AlwaysAllow
	}
	return budget
}
