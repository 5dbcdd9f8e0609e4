package template

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// zonalLabels are those of a zone, and never learned from a node elsewhere; typeLabels
// those of an instance type, which a mixed group does not promise.
var (
	zonalLabels = []string{
		corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, "topology.k8s.aws/zone-id", driversLabel,
	}
	typeLabels = []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, corev1.LabelArchStable, contract.LabelArchBeta}
)

// networkLabels name the switches above a single instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-ec2-instance-topology-works.html
const networkLabels = "topology.k8s.aws/network-node-layer-"

// ofNode reports whether a label is of no use for another node.
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

// ofMachines reports whether a label is not one that people write on a single node.
func ofMachines(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	return domain != key && slices.ContainsFunc(machineDomains, within) && !slices.ContainsFunc(peoplesDomains, within)
}

// learnedLabels are those that new nodes will have: what is promised unless all specimens that had
// their time lack it or have the same other value, and what at least half of the specimens have
// beside that, but for what people may have written on a single node.
func (d *Templates) learnedLabels(g *cluster.Group, s fleet.NodeTemplate, like, elders []*cluster.Node) map[string]string {
	// Daemons write labels on nodes that are up already: older nodes know them.
	if len(elders) > 0 {
		like = slices.Concat(like, slices.DeleteFunc(slices.Clone(specimensFor(elders, s.Zone)), func(n *cluster.Node) bool { return slices.Contains(like, n) }))
	}
	labels := map[string]string{}
	ofOthers := func(key string) bool {
		return slices.Contains(zonalLabels, key) && like[0].Zone() != s.Zone || g.Mixed && slices.Contains(typeLabels, key)
	}
	for key, value := range s.Labels {
		if has, ok := d.witnessed(like, key, value); ofOthers(key) {
			labels[key] = value
		} else if ok {
			labels[key] = has
		}
	}
	for _, n := range like {
		for key, value := range n.Labels {
			if _, promised := s.Labels[key]; promised || ofNode(key) || ofOthers(key) {
				continue
			}
			if d.commonLabel(like, key, value) && !d.peculiarLabel(g, s, n, key, like) {
				labels[key] = value
			}
		}
	}
	return labels
}

// witnessed is what specimens make of a label that is promised; ok is true where they have it.
func (d *Templates) witnessed(like []*cluster.Node, key, promise string) (value string, ok bool) {
	if slices.ContainsFunc(like, func(n *cluster.Node) bool { v, ok := n.Labels[key]; return ok && v == promise }) {
		return promise, true
	}
	if !d.hadTime(like) {
		return promise, true
	}
	settled := d.settledOf(like)
	value, ok = settled[0].Labels[key]
	for _, n := range settled[1:] {
		if v, has := n.Labels[key]; has != ok || v != value {
			return promise, true
		}
	}
	return value, ok
}

// settledOf are the specimens that had time for all that starts on a node.
func (d *Templates) settledOf(like []*cluster.Node) []*cluster.Node {
	return slices.DeleteFunc(slices.Clone(like), func(n *cluster.Node) bool { return d.Now.Before(d.DueUp(n)) })
}

// hadTime reports whether one of the specimens had its time; the next evaluation is when one has.
func (d *Templates) hadTime(like []*cluster.Node) bool {
	if len(d.settledOf(like)) > 0 {
		return true
	}
	for _, n := range like {
		d.Clock.At(d.DueUp(n))
	}
	return false
}

// commonLabel reports whether at least half of the specimens have a label, and none has another
// value. One that had no time yet may get it.
func (d *Templates) commonLabel(like []*cluster.Node, key, value string) bool {
	bear, lack := 0, 0
	for _, n := range like {
		switch v, ok := n.Labels[key]; {
		case ok && v != value:
			return false
		case ok:
			bear++
		case !d.Now.Before(d.DueUp(n)):
			lack++
		}
	}
	return bear >= lack
}

// peculiarLabel reports whether a label of a specimen is not planned, and may be one that people
// wrote on this node alone.
func (d *Templates) peculiarLabel(g *cluster.Group, planned fleet.NodeTemplate, n *cluster.Node, key string, like []*cluster.Node) bool {
	if _, promised := planned.Labels[key]; promised || ofMachines(key) {
		return false
	}
	return d.peculiar(g, n, like, func(o *cluster.Node) bool { v, ok := o.Labels[key]; return ok && v == n.Labels[key] })
}

// peculiar reports whether people may have written something on a specimen alone, for
// maintenance perhaps: no other node of its group has it, and other specimens would, or it is
// not certain that the node had it from its first minutes on.
func (d *Templates) peculiar(g *cluster.Group, n *cluster.Node, like []*cluster.Node, has func(*cluster.Node) bool) bool {
	if slices.ContainsFunc(g.Nodes, func(o *cluster.Node) bool { return o != n && has(o) }) {
		return false
	}
	return len(like) > 1 || d.hadTime(like)
}

// learnedTaints are those that all these nodes have and that do not go by themselves, and what is
// promised unless all that had their time lack it. What people may have written on one is no reason
// not to launch another one.
func (d *Templates) learnedTaints(g *cluster.Group, planned []corev1.Taint, like []*cluster.Node) []corev1.Taint {
	taints := slices.DeleteFunc(d.Policy.Lasting(sharedTaints(like)), func(t corev1.Taint) bool {
		return !hasTaint(planned, t) && d.peculiar(g, like[0], like, func(o *cluster.Node) bool { return hasTaint(o.Taints, t) })
	})
	for _, t := range planned {
		if hasTaint(taints, t) || d.hadTime(like) && !slices.ContainsFunc(like, func(n *cluster.Node) bool { return hasTaint(n.Taints, t) }) {
			continue
		}
		taints = append(taints, t)
	}
	return taints
}

// sharedTaints are those that all these nodes have.
func sharedTaints(like []*cluster.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range like[0].Taints {
		if !slices.ContainsFunc(like, func(n *cluster.Node) bool { return !hasTaint(n.Taints, t) }) {
			taints = append(taints, t)
		}
	}
	return taints
}

func hasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
}
