package template

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// mostDifferences is how many differences a group's verdict names.
const mostDifferences = 4

// compare notes in the group's verdict where nodes differ from their template, and which tag of the
// group would mend that for the time when it has no node to learn from; and which of the specimens
// have less than new nodes are thought to have, as others have more.
func compare(g *cluster.Group, planned, learned fleet.NodeTemplate, like []*cluster.Node, d *Templates) {
	var found verdict.Details
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
	g.Differs = g.Differs.With(found)
}

// shortcomings are where a specimen has less than new nodes are thought to have.
func shortcomings(learned fleet.NodeTemplate, n *cluster.Node, d *Templates) (found verdict.Details) {
	for name, want := range learned.Allocatable {
		has, ok := n.Allocatable[name]
		late := cluster.ByPlugin(name) && d.Now.Before(d.DueUp(n))
		if (ok || cluster.ByPlugin(name)) && !late && short(has, want) {
			found = append(found, verdict.Say("node {node} differs from the node template: it has {has} {resource}, new nodes are expected to have {planned}",
				verdict.Node(n.Name), verdict.Has(has.String()), verdict.Resource(string(name)), verdict.Planned(want.String()))...)
		}
	}
	for key, want := range learned.Labels {
		if has, ok := n.Labels[key]; has != want && d.askedLabels(key) && !slices.Contains(zonalLabels, key) && !d.Now.Before(d.DueUp(n)) {
			lacks := verdict.Say("node {node} differs from the node template: it has no label {label}", verdict.Node(n.Name), verdict.Label(key))
			if ok {
				lacks = verdict.Say("node {node} differs from the node template: it has the label {label}={has}", verdict.Node(n.Name), verdict.Label(key), verdict.Has(has))
			}
			found = append(found, lacks.And(", new nodes are expected to have {planned}", verdict.Planned(want))...)
		}
	}
	return found.Sorted()
}

// told puts the remedy into words.
func told(difference verdict.Details, tag, value string) verdict.Details {
	return difference.And(": set the tag {tag}={value}", verdict.Tag(tag), verdict.Value(value))
}

// lessRoom finds resources of which nodes have less than was planned. Memory is learned by itself
// and reported only if that did not help.
func lessRoom(planned, learned fleet.NodeTemplate, like []*cluster.Node) (found verdict.Details) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		want, promised := planned.Allocatable[name]
		if is := learned.Allocatable[name]; !promised || !short(is, want) {
			continue
		}
		best := slices.MaxFunc(like, func(a, b *cluster.Node) int { x, y := a.Allocatable[name], b.Allocatable[name]; return x.Cmp(y) })
		has := best.Allocatable[name]
		found = append(found, told(verdict.Say("node {node} has {has} {resource}, its node template has {planned}",
			verdict.Node(best.Name), verdict.Has(has.String()), verdict.Resource(string(name)), verdict.Planned(want.String())), contract.TagTemplateResource+string(name), has.String())...)
	}
	return found
}

// missingDevices finds resources of which a device plugin should report more by now.
func missingDevices(planned, learned fleet.NodeTemplate, n *cluster.Node, d *Templates) (found verdict.Details) {
	for name, want := range planned.Allocatable {
		if !cluster.ByPlugin(name) || want.IsZero() {
			continue
		}
		has, is, due := n.Allocatable[name], learned.Allocatable[name], d.DueUp(n)
		switch {
		case has.IsZero() && d.Now.Before(due):
			d.Clock.At(due)
		case has.IsZero() && is.IsZero():
			found = append(found, verdict.Say("node {node} has no {resource} {after} after it registered, its node template has {planned}: check its device plugin",
				verdict.Node(n.Name), verdict.Resource(string(name)), verdict.After(d.Policy.MaxNodeStartupTime), verdict.Planned(want.String()))...)
		case short(is, want):
			found = append(found, verdict.Say("node {node} has {has} {resource}, its node template has {planned}: check its device plugin, or set the tag {tag}={has}",
				verdict.Node(n.Name), verdict.Has(has.String()), verdict.Resource(string(name)), verdict.Planned(want.String()), verdict.Tag(contract.TagTemplateResource+string(name)))...)
		}
	}
	return found.Sorted()
}

func otherTaints(planned, learned fleet.NodeTemplate, n *cluster.Node) (found verdict.Details) {
	for _, t := range learned.Taints {
		if !hasTaint(planned.Taints, t) {
			found = append(found, told(verdict.Say("node {node} has the taint {taint}", verdict.Node(n.Name), verdict.Taint(t.ToString())), contract.TagTemplateTaint+t.Key, fmt.Sprintf("%s:%s", t.Value, t.Effect))...)
		}
	}
	for _, t := range planned.Taints {
		if !hasTaint(learned.Taints, t) {
			found = append(found, verdict.Say("node {node} has no taint {taint}, which its node template has: check the tag {tag} and the user data",
				verdict.Node(n.Name), verdict.Taint(t.ToString()), verdict.Tag(contract.TagTemplateTaint+t.Key))...)
		}
	}
	return found
}

// driversLabel is put on nodes by the EBS CSI driver, which not every cluster has.
// It is planned lest pods that ask for it wait in vain.
// https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
const driversLabel = "topology.ebs.csi.aws.com/zone"

// missingLabels finds labels that were promised and are not there.
func missingLabels(planned, learned fleet.NodeTemplate, n *cluster.Node, asked func(string) bool) (found verdict.Details) {
	for key, want := range planned.Labels {
		has, ok := learned.Labels[key]
		if !ok && key == driversLabel && !asked(key) {
			continue
		}
		if (!ok || has != want) && !ofNode(key) {
			was := verdict.Say("node {node} has no label {label}", verdict.Node(n.Name), verdict.Label(key))
			if ok {
				was = verdict.Say("node {node} has the label {label}={has}", verdict.Node(n.Name), verdict.Label(key), verdict.Has(has))
			}
			found = append(found, was.And(", its node template has {label}={planned}: check the tag {tag}", verdict.Planned(want), verdict.Tag(contract.TagTemplateLabel+key))...)
		}
	}
	return found.Sorted()
}

// unpromisedLabels finds those that pods ask for and that were not promised: of the youngest
// specimen, and what others have taught.
func (d *Templates) unpromisedLabels(g *cluster.Group, planned, learned fleet.NodeTemplate, n *cluster.Node) (found verdict.Details) {
	for key, has := range n.Labels {
		_, promised := planned.Labels[key]
		if promised || !d.askedLabels(key) || ofNode(key) || slices.Contains(zonalLabels, key) {
			continue
		}
		what := "node {node} has the label {label}={has}, which pods ask for"
		switch _, taught := learned.Labels[key]; {
		case taught:
		case d.peculiarLabel(g, planned, n, key, []*cluster.Node{n}):
			what = "node {node} alone has the label {label}={has}, which pods ask for, and new nodes are not expected to have it"
		default:
			continue
		}
		found = append(found, told(verdict.Say(what, verdict.Node(n.Name), verdict.Label(key), verdict.Has(has)), contract.TagTemplateLabel+key, has)...)
	}
	return found.Sorted()
}

// askedLabels reports whether a pending pod asks for a label.
func (d *Templates) askedLabels(key string) bool {
	if d.asked == nil {
		d.asked = map[string]bool{}
		for _, p := range d.Unbound.Pods {
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

// Differing is what to report of the differences; nil where there are none.
func Differing(g *cluster.Group) verdict.Details {
	if n := len(g.Differs) - mostDifferences; n > 0 {
		return g.Differs[:mostDifferences].Then(verdict.Say("and {count} more differences between nodes and their template", verdict.Count(n)))
	}
	return g.Differs
}
