package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// zonalLabels are those of a zone, and never learned from a node elsewhere; typeLabels
// those of an instance type, which a mixed group does not promise.
var (
	zonalLabels = []string{
		corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, "topology.k8s.aws/zone-id", driversLabel,
	}
	typeLabels = []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType}
)

// networkLabels name the switches above a single instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-ec2-instance-topology-works.html
const networkLabels = "topology.k8s.aws/network-node-layer-"

// ofNode says that a label is of no use for another node.
func ofNode(key string) bool {
	return key == corev1.LabelHostname || strings.HasPrefix(key, networkLabels)
}

// machineDomains are those, with all below them, of labels that kubelet, cloud and
// hardware daemons set on every node of a kind; below peoplesDomains it is people who write.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
var (
	machineDomains = []string{"kubernetes.io", "k8s.io", "k8s.aws", "amazonaws.com", "csi.aws.com", "nvidia.com"}
	peoplesDomains = []string{"node-role.kubernetes.io", corev1.LabelNamespaceNodeRestriction}
)

// ofMachines says that a label is not one that people write on a single node.
func ofMachines(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	return domain != key && slices.ContainsFunc(machineDomains, within) && !slices.ContainsFunc(peoplesDomains, within)
}

// learnedLabels are those that all these nodes share, but for what people may have
// written on the only one.
func (d *decision) learnedLabels(g *group, s fleet.Shape, like []*node) map[string]string {
	labels := map[string]string{}
	for key, value := range like[0].Labels {
		if ofNode(key) || slices.Contains(zonalLabels, key) && like[0].Zone() != s.Zone {
			continue
		}
		shared := !slices.ContainsFunc(like, func(n *node) bool { v, ok := n.Labels[key]; return !ok || v != value })
		if !shared || g.Mixed && slices.Contains(typeLabels, key) || d.peculiarLabel(g, s, like[0], key) {
			continue
		}
		labels[key] = value
	}
	for key, value := range s.Labels {
		if slices.Contains(zonalLabels, key) && like[0].Zone() != s.Zone || g.Mixed && slices.Contains(typeLabels, key) {
			labels[key] = value
		}
	}
	return labels
}

// peculiarLabel says that a label of a node is not planned, and may be people's word on
// this node alone.
func (d *decision) peculiarLabel(g *group, planned fleet.Shape, n *node, key string) bool {
	if _, promised := planned.Labels[key]; promised || ofMachines(key) {
		return false
	}
	return d.peculiar(g, n, func(o *node) bool { v, ok := o.Labels[key]; return ok && v == n.Labels[key] })
}

// peculiar says that people may have written something on a node alone, for
// maintenance perhaps: no other node of its group has it, and it is not certain that
// the node had it from its first minutes on.
func (d *decision) peculiar(g *group, n *node, has func(*node) bool) bool {
	if slices.ContainsFunc(g.nodes, func(o *node) bool { return o != n && has(o) }) {
		return false
	}
	settled := n.Created.Add(d.policy.MaxNodeStartupTime)
	d.clock.at(settled)
	return !d.now.Before(settled)
}

// learnedTaints are those that all these nodes have and that do not go by themselves.
// What people may have written on one is no reason not to bring another one.
func (d *decision) learnedTaints(g *group, planned []corev1.Taint, like []*node) []corev1.Taint {
	return slices.DeleteFunc(d.policy.lasting(sharedTaints(like)), func(t corev1.Taint) bool {
		return !hasTaint(planned, t) && d.peculiar(g, like[0], func(o *node) bool { return hasTaint(o.Taints, t) })
	})
}

// sharedTaints are those that all these nodes have.
func sharedTaints(like []*node) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range like[0].Taints {
		if !slices.ContainsFunc(like, func(n *node) bool { return !hasTaint(n.Taints, t) }) {
			taints = append(taints, t)
		}
	}
	return taints
}

func hasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
}
