package story

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// NodeOf reads a Node. Annotations that do not parse count as absent: the
// programs say what is wrong with them.
func NodeOf(n *corev1.Node) Node {
	out := Node{
		Name:          n.Name,
		Instance:      fleet.Node{ProviderID: n.Spec.ProviderID}.InstanceID(),
		Zone:          n.Labels[corev1.LabelTopologyZone],
		Type:          n.Labels[corev1.LabelInstanceTypeStable],
		Created:       n.CreationTimestamp.Time,
		Ready:         nodeReady(n),
		Unschedulable: n.Spec.Unschedulable,
		System:        n.Spec.ProviderID == "",
		Terminating:   n.Annotations[contract.AnnotationTerminating] != "",
	}
	out.Draining, _ = contract.Draining(n.Spec.Taints)
	if _, ok, err := contract.Unneeded(n.Spec.Taints); err == nil {
		out.Unneeded = ok
	}
	if r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); err == nil {
		out.Report = &r
	}
	return out
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// PodOf reads a Pod.
func PodOf(p *corev1.Pod) Pod {
	out := Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName,
		Workload: p.Labels[LabelWorkload],
		Running:  p.Status.Phase == corev1.PodRunning,
		Ended:    p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		Leaving:  p.DeletionTimestamp != nil,
	}
	if p.DeletionTimestamp != nil {
		out.Until = p.DeletionTimestamp.Time
	}
	if owner := metav1.GetControllerOf(p); owner != nil {
		out.DaemonSet = owner.Kind == "DaemonSet"
		if out.Workload == "" {
			out.Workload = owner.Name
		}
	}
	if out.Workload == "" {
		out.Workload = p.Name
	}
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			out.Ready = c.Status == corev1.ConditionTrue
		case corev1.DisruptionTarget:
			if c.Status == corev1.ConditionTrue {
				out.Disrupted = c.Reason
			}
		}
	}
	return out
}

// LabelWorkload names the workload of a pod, and of what belongs to it.
const LabelWorkload = "app"

// WorkloadOf reads a Deployment.
func WorkloadOf(d *appsv1.Deployment) Workload {
	w := Workload{Name: d.Name, Replicas: 1}
	if d.Spec.Replicas != nil {
		w.Replicas = int(*d.Spec.Replicas)
	}
	return w
}

// BudgetOf reads a PodDisruptionBudget that selects one workload by its label.
func BudgetOf(b *policyv1.PodDisruptionBudget) Budget {
	out := Budget{Desired: int(b.Status.DesiredHealthy)}
	if b.Spec.Selector != nil {
		out.Workload = b.Spec.Selector.MatchLabels[LabelWorkload]
	}
	return out
}

// EventOf reads an Event. ok is false for those of other programs.
func EventOf(e *corev1.Event) (event Event, ok bool) {
	source := e.ReportingController
	if source == "" {
		source = e.Source.Component
	}
	if source != contract.AppAgent && source != contract.AppScaler {
		return Event{}, false
	}
	return Event{
		Source: strings.TrimPrefix(source, "windlass-"), Kind: strings.ToLower(e.InvolvedObject.Kind),
		Subject: e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message,
	}, true
}
