package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// mostDifferences is how many differences a group's verdict tells of.
const mostDifferences = 4

// noticeable is the share of a resource by which a node may fall short of its shape
// without a word.
const noticeable = 0.01

// compare says in the group's verdict where the youngest node is not as was planned
// for it, and which tag of the group would mend that for the time when it has no
// node to learn from.
func (g *group) compare(planned fleet.Shape, like []*node, d *decision) {
	n := like[0]
	if n.Zone() != planned.Zone {
		return
	}
	var found []string
	if !g.Mixed {
		found = append(found, lessRoom(planned, n)...)
	}
	found = append(found, missingDevices(planned, n, d)...)
	found = append(found, d.policy.otherTaints(planned, like)...)
	found = append(found, missingLabels(planned, n, d.askedLabels)...)
	found = append(found, d.unpromisedLabels(g, planned, like)...)
	for _, text := range found {
		if !slices.Contains(g.differs, text) {
			g.differs = append(g.differs, text)
		}
	}
}

// difference puts what differs and its cure into words.
func difference(n *node, what, tag, value string) string {
	return fmt.Sprintf("node %s %s: the tag %s=%s would tell", n.Name, what, tag, value)
}

// lessRoom finds resources of which a node has less than was planned. Memory is
// learned by itself and told of only if that did not help.
func lessRoom(planned fleet.Shape, n *node) []string {
	var found []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		want, promised := planned.Allocatable[name]
		has, reported := n.Allocatable[name]
		if promised && reported && float64(want.MilliValue()-has.MilliValue()) > noticeable*float64(want.MilliValue()) {
			found = append(found, difference(n, fmt.Sprintf("has %s %s, planned were %s", has.String(), name, want.String()), contract.TagTemplateResource+string(name), has.String()))
		}
	}
	return found
}

// missingDevices finds resources that a device plugin should report by now.
func missingDevices(planned fleet.Shape, n *node, d *decision) []string {
	var found []string
	for name, want := range planned.Allocatable {
		if !byPlugin(name) || want.IsZero() {
			continue
		}
		due := d.dueUp(n)
		if has := n.Allocatable[name]; has.IsZero() {
			if d.now.Before(due) {
				d.clock.at(due)
				continue
			}
			found = append(found, fmt.Sprintf("node %s has no %s %s after it registered, planned were %s: look at its device plugin", n.Name, name, d.policy.MaxNodeStartupTime, want.String()))
		}
	}
	slices.Sort(found)
	return found
}

func (p Policy) otherTaints(planned fleet.Shape, like []*node) []string {
	var found []string
	real := p.lasting(sharedTaints(like))
	for _, t := range real {
		if !hasTaint(planned.Taints, t) {
			found = append(found, difference(like[0], "has the taint "+t.ToString(), contract.TagTemplateTaint+t.Key, fmt.Sprintf("%s:%s", t.Value, t.Effect)))
		}
	}
	for _, t := range planned.Taints {
		if !hasTaint(like[0].Taints, t) {
			found = append(found, fmt.Sprintf("node %s has no taint %s, which was planned: look at the tag %s and at the user data", like[0].Name, t.ToString(), contract.TagTemplateTaint+t.Key))
		}
	}
	return found
}

// driversLabel is put on nodes by the EBS CSI driver, which not every cluster has.
// It is planned lest pods that ask for it wait in vain.
// https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
const driversLabel = "topology.ebs.csi.aws.com/zone"

// missingLabels finds labels that were promised and are not there.
func missingLabels(planned fleet.Shape, n *node, asked func(string) bool) []string {
	var found []string
	for key, want := range planned.Labels {
		has, ok := n.Labels[key]
		if !ok && key == driversLabel && !asked(key) {
			continue
		}
		if (!ok || has != want) && !ofNode(key) {
			was := "no label " + key
			if ok {
				was = fmt.Sprintf("the label %s=%s", key, has)
			}
			found = append(found, fmt.Sprintf("node %s has %s, planned was %s=%s: look at the tag %s", n.Name, was, key, want, contract.TagTemplateLabel+key))
		}
	}
	slices.Sort(found)
	return found
}

// unpromisedLabels finds those that pods ask for and that nobody promised.
func (d *decision) unpromisedLabels(g *group, planned fleet.Shape, like []*node) []string {
	var found []string
	n := like[0]
	for key, has := range n.Labels {
		_, promised := planned.Labels[key]
		shared := !slices.ContainsFunc(like, func(o *node) bool { return o.Labels[key] != has })
		if promised || !shared || !d.askedLabels(key) || ofNode(key) || slices.Contains(zonalLabels, key) {
			continue
		}
		what := fmt.Sprintf("has the label %s=%s, which pods ask for", key, has)
		if d.peculiarLabel(g, planned, n, key) {
			what = fmt.Sprintf("alone has the label %s=%s, which pods ask for, and the next node is not thought to have it", key, has)
		}
		found = append(found, difference(n, what, contract.TagTemplateLabel+key, has))
	}
	slices.Sort(found)
	return found
}

// askedLabels says whether a waiting pod asks for a label.
func (d *decision) askedLabels(key string) bool {
	if d.asked == nil {
		d.asked = map[string]bool{}
		for _, p := range d.pods {
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

// differing is what to tell of the differences; empty where there are none.
func (g *group) differing() []string {
	if n := len(g.differs) - mostDifferences; n > 0 {
		return append(slices.Clone(g.differs[:mostDifferences]), fmt.Sprintf("and %d more differences between nodes and their shape", n))
	}
	return g.differs
}
