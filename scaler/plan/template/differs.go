package template

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// mostDifferences is how many differences a group's verdict tells of.
const mostDifferences = 4

// compare says in the group's verdict where nodes are not as was planned for them, and which
// tag of the group would mend that for the time when it has no node to learn from; and which
// of the specimens are not as new nodes are thought to be, as others are better.
func compare(g *cluster.Group, planned, learned fleet.Shape, like []*cluster.Node, d *Templates) {
	var found []string
	for _, n := range like {
		if len(like) > 1 {
			found = append(found, shortcomings(learned, n, d)...)
		}
	}
	n := like[0]
	if n.Zone() == planned.Zone {
		if !g.Mixed {
			found = append(found, lessRoom(planned, learned, like)...)
		}
		found = append(found, missingDevices(planned, learned, n, d)...)
		found = append(found, otherTaints(planned, learned, n)...)
		found = append(found, missingLabels(planned, learned, n, d.askedLabels)...)
		found = append(found, d.unpromisedLabels(g, planned, learned, n)...)
	}
	for _, text := range found {
		if !slices.Contains(g.Differs, text) {
			g.Differs = append(g.Differs, text)
		}
	}
}

// shortcomings are where a specimen has less than new nodes are thought to have.
func shortcomings(learned fleet.Shape, n *cluster.Node, d *Templates) []string {
	var found []string
	lacks := func(format string, args ...any) {
		found = append(found, fmt.Sprintf("node %s differs from the node template: %s", n.Name, fmt.Sprintf(format, args...)))
	}
	for name, want := range learned.Allocatable {
		has, ok := n.Allocatable[name]
		late := cluster.ByPlugin(name) && d.Now.Before(d.DueUp(n))
		if (ok || cluster.ByPlugin(name)) && !late && short(has, want) {
			lacks("it has %s %s, new nodes are expected to have %s", has.String(), name, want.String())
		}
	}
	for key, want := range learned.Labels {
		if has, ok := n.Labels[key]; has != want && d.askedLabels(key) && !slices.Contains(zonalLabels, key) && !d.Now.Before(d.DueUp(n)) {
			was := "it has no label " + key
			if ok {
				was = fmt.Sprintf("it has the label %s=%s", key, has)
			}
			lacks("%s, new nodes are expected to have %s", was, want)
		}
	}
	slices.Sort(found)
	return found
}

// difference puts what differs and its cure into words.
func difference(n *cluster.Node, what, tag, value string) string {
	return fmt.Sprintf("node %s %s: the tag %s=%s would tell", n.Name, what, tag, value)
}

// lessRoom finds resources of which nodes have less than was planned. Memory is
// learned by itself and told of only if that did not help.
func lessRoom(planned, learned fleet.Shape, like []*cluster.Node) []string {
	var found []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		want, promised := planned.Allocatable[name]
		if is := learned.Allocatable[name]; !promised || !short(is, want) {
			continue
		}
		best := slices.MaxFunc(like, func(a, b *cluster.Node) int { x, y := a.Allocatable[name], b.Allocatable[name]; return x.Cmp(y) })
		has := best.Allocatable[name]
		found = append(found, difference(best, fmt.Sprintf("has %s %s, planned were %s", has.String(), name, want.String()), contract.TagTemplateResource+string(name), has.String()))
	}
	return found
}

// missingDevices finds resources of which a device plugin should report more by now.
func missingDevices(planned, learned fleet.Shape, n *cluster.Node, d *Templates) []string {
	var found []string
	for name, want := range planned.Allocatable {
		if !cluster.ByPlugin(name) || want.IsZero() {
			continue
		}
		has, is, due := n.Allocatable[name], learned.Allocatable[name], d.DueUp(n)
		switch {
		case has.IsZero() && d.Now.Before(due):
			d.Clock.At(due)
		case has.IsZero() && is.IsZero():
			found = append(found, fmt.Sprintf("node %s has no %s %s after it registered, planned were %s: check its device plugin", n.Name, name, d.Policy.MaxNodeStartupTime, want.String()))
		case short(is, want):
			found = append(found, fmt.Sprintf("node %s has %s %s, planned were %s: check its device plugin, or set the tag %s=%s", n.Name, has.String(), name, want.String(), contract.TagTemplateResource+string(name), has.String()))
		}
	}
	slices.Sort(found)
	return found
}

func otherTaints(planned, learned fleet.Shape, n *cluster.Node) []string {
	var found []string
	for _, t := range learned.Taints {
		if !hasTaint(planned.Taints, t) {
			found = append(found, difference(n, "has the taint "+t.ToString(), contract.TagTemplateTaint+t.Key, fmt.Sprintf("%s:%s", t.Value, t.Effect)))
		}
	}
	for _, t := range planned.Taints {
		if !hasTaint(learned.Taints, t) {
			found = append(found, fmt.Sprintf("node %s has no taint %s, which was planned: check the tag %s and the user data", n.Name, t.ToString(), contract.TagTemplateTaint+t.Key))
		}
	}
	return found
}

// driversLabel is put on nodes by the EBS CSI driver, which not every cluster has.
// It is planned lest pods that ask for it wait in vain.
// https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
const driversLabel = "topology.ebs.csi.aws.com/zone"

// missingLabels finds labels that were promised and are not there.
func missingLabels(planned, learned fleet.Shape, n *cluster.Node, asked func(string) bool) []string {
	var found []string
	for key, want := range planned.Labels {
		has, ok := learned.Labels[key]
		if !ok && key == driversLabel && !asked(key) {
			continue
		}
		if (!ok || has != want) && !ofNode(key) {
			was := "no label " + key
			if ok {
				was = fmt.Sprintf("the label %s=%s", key, has)
			}
			found = append(found, fmt.Sprintf("node %s has %s, planned was %s=%s: check the tag %s", n.Name, was, key, want, contract.TagTemplateLabel+key))
		}
	}
	slices.Sort(found)
	return found
}

// unpromisedLabels finds those that pods ask for and that nobody promised: of the youngest
// specimen, and what others have taught.
func (d *Templates) unpromisedLabels(g *cluster.Group, planned, learned fleet.Shape, n *cluster.Node) []string {
	var found []string
	for key, has := range n.Labels {
		_, promised := planned.Labels[key]
		if promised || !d.askedLabels(key) || ofNode(key) || slices.Contains(zonalLabels, key) {
			continue
		}
		what := fmt.Sprintf("has the label %s=%s, which pods ask for", key, has)
		switch _, taught := learned.Labels[key]; {
		case taught:
		case d.peculiarLabel(g, planned, n, key, []*cluster.Node{n}):
			what = fmt.Sprintf("alone has the label %s=%s, which pods ask for, and the next node is not thought to have it", key, has)
		default:
			continue
		}
		found = append(found, difference(n, what, contract.TagTemplateLabel+key, has))
	}
	slices.Sort(found)
	return found
}

// askedLabels says whether a waiting pod asks for a label.
func (d *Templates) askedLabels(key string) bool {
	if d.asked == nil {
		d.asked = map[string]bool{}
		for _, p := range d.Pods {
			if p.Node == "" && p.Spec != nil {
				noteAsked(d.asked, p.Spec)
			}
		}
	}
	return d.asked[key]
}

func noteAsked(asked map[string]bool, spec *corev1.PodSpec) {
	for key := range spec.NodeSelector {
		asked[key] = true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			asked[e.Key] = true
		}
	}
}

// Differing is what to tell of the differences; empty where there are none.
func Differing(g *cluster.Group) []string {
	if n := len(g.Differs) - mostDifferences; n > 0 {
		return append(slices.Clone(g.Differs[:mostDifferences]), fmt.Sprintf("and %d more differences between nodes and their template", n))
	}
	return g.Differs
}
