package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resources "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"windlass.dev/windlass/pkg/contract"
)

// node is a Node, or one that is thought of, with its pods.
type node struct {
	*corev1.Node
	group *group // nil where it is of none of its groups
	pods  []*corev1.Pod
	// leaves: its instance is being terminated.
	leaves bool
}

func (n *node) instance() string {
	return n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]
}

// ready reports whether pods run there, and may for long. A node whose kubelet is Ready has the taint of one
// that is not for a moment longer; Cluster Autoscaler counts it as not ready until then.
func (n *node) ready() bool {
	notYet := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	return !n.leaves && !notYet && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// goes reports whether it has tainted the node to remove it.
func (n *node) goes() bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == contract.TaintToBeDeleted })
}

// takes reports whether a pod fits: selectors and node affinity, taints, and what is free.
func (n *node) takes(p *corev1.Pod) bool {
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n.Node); err != nil || !fits || n.Spec.Unschedulable {
		return false
	}
	hard := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	if _, keptOff := scheduling.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, hard, false); keptOff {
		return false
	}
	if len(n.pods) >= int(n.Status.Allocatable.Pods().Value()) {
		return false
	}
	for name, wanted := range requests(p) {
		allocatable := n.Status.Allocatable[name]
		free := allocatable.DeepCopy()
		for _, other := range n.pods {
			free.Sub(requests(other)[name])
		}
		if free.Cmp(wanted) < 0 {
			return false
		}
	}
	return true
}

// utilization is the larger share of what is requested of its cores and of its memory.
func (n *node) utilization() float64 {
	share := func(name corev1.ResourceName) float64 {
		sum, all := resource.Quantity{}, n.Status.Allocatable[name]
		for _, p := range n.pods {
			sum.Add(requests(p)[name])
		}
		if all.IsZero() {
			return 0
		}
		return float64(sum.MilliValue()) / float64(all.MilliValue())
	}
	return max(share(corev1.ResourceCPU), share(corev1.ResourceMemory))
}

func requests(p *corev1.Pod) corev1.ResourceList {
	return resources.PodRequests(p, resources.PodResourcesOptions{})
}

func ofDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// place finds room for pods on the first nodes that take them, and adds them there; the others are left.
func place(pods []*corev1.Pod, nodes []*node) (left []*corev1.Pod) {
	for _, p := range pods {
		i := slices.IndexFunc(nodes, func(n *node) bool { return n.takes(p) })
		if i < 0 {
			left = append(left, p)
			continue
		}
		nodes[i].pods = append(nodes[i].pods, p)
	}
	return left
}

// copies are the same nodes to try pods on.
func copies(nodes []*node) []*node {
	all := make([]*node, len(nodes))
	for i, n := range nodes {
		all[i] = &node{Node: n.Node, group: n.group, pods: slices.Clone(n.pods), leaves: n.leaves}
	}
	return all
}
