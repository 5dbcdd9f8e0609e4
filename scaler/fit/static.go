package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// demands is what a pod asks of a node that no other pod and no amount of room
// decides: its name, labels, taints and features.
type demands struct {
	key         string
	spec        *corev1.PodSpec
	required    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	// comparison is true if tolerations may compare numbers.
	comparison bool
	// singular demands separate nodes of one kind, by name. compared is what there is to compare at
	// each of them: requirements and values.
	singular bool
	compared int
	// affinityKey and tolerationsKey are canonical texts of these parts.
	affinityKey, tolerationsKey string
	// verdicts are known answers, by the number of the kind of node.
	verdicts []verdict
	// lacking is the state of lore.carried in which no kind had one of the labels of the
	// node selector.
	lacking int
}

// verdict is the answer to a static question.
type verdict uint8

const (
	unknown verdict = iota
	admitted
	barred
)

func (l *lore) demandsOf(spec *corev1.PodSpec, k traitsKey) *demands {
	k.Requests, k.Ports = nil, nil
	key := encoded(k)
	if d, known := l.demands[key]; known {
		return d
	}
	pod := &corev1.Pod{Spec: *spec}
	d := &demands{
		key: key, spec: spec, required: nodeaffinity.GetRequiredNodeAffinity(pod),
		tolerations: spec.Tolerations, comparison: l.gates.Comparison,
		affinityKey:    encoded(traitsKey{Selector: k.Selector, Affinity: k.Affinity}),
		tolerationsKey: encoded(traitsKey{Tolerations: k.Tolerations}),
	}
	if d.singular = spec.NodeName != "" || asksForHosts(spec); d.singular {
		d.compared = comparisons(spec)
	}
	for key := range spec.NodeSelector {
		l.ask(key)
	}
	if k.Affinity != nil {
		for _, term := range k.Affinity.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				l.ask(e.Key)
			}
		}
	}
	l.demands[key] = d
	return d
}

// ask notes that nodes differ by a label from now on.
func (l *lore) ask(key string) {
	if key == corev1.LabelHostname || l.asked[key] {
		return
	}
	l.asked[key] = true
	l.edition++
	clear(l.kinds)
	clear(l.carried)
	l.carriages++
}

// carry notes the labels of a kind that some pod may ask for.
func (l *lore) carry(looks *NodeTemplate) {
	for k, v := range looks.labels {
		if at := (label{k, v}); l.asked[k] && !l.carried[at] {
			l.carried[at] = true
			l.carriages++
		}
	}
}

// unheard reports whether no kind that was met has one of the labels of the node selector. Of
// such demands there may be thousands, and none of them is worth a question or an answer that
// is kept.
func (l *lore) unheard(d *demands) bool {
	if d.lacking == l.carriages {
		return true
	}
	for k, v := range d.spec.NodeSelector {
		if !l.carried[label{k, v}] {
			d.lacking = l.carriages
			return true
		}
	}
	return false
}

// asksForHosts reports whether labels or fields that differ from node to node of
// one kind are asked for.
func asksForHosts(spec *corev1.PodSpec) bool {
	if _, ok := spec.NodeSelector[corev1.LabelHostname]; ok {
		return true
	}
	affinity := requiredAffinity(spec)
	return affinity != nil && slices.ContainsFunc(affinity.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchFields) > 0 || slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == corev1.LabelHostname
		})
	})
}

// comparisons counts the requirements of a pod about nodes and the values that these list.
func comparisons(spec *corev1.PodSpec) int {
	n := 1 + len(spec.NodeSelector)
	if affinity := requiredAffinity(spec); affinity != nil {
		for _, t := range affinity.NodeSelectorTerms {
			for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
				n += 1 + len(e.Values)
			}
		}
	}
	return n
}

// admits reports whether nothing static keeps the demands off a place. kube-scheduler's
// plugins are asked once for each demands and kind of node.
func (c *Cluster) admits(d *demands, p *Place) bool {
	if d.singular {
		return c.admitsSingle(d, p)
	}
	return c.admitsKind(d, c.lore.kindOf(p.template))
}

// admitsKind asks of all nodes of one kind.
func (c *Cluster) admitsKind(d *demands, kind *kind) bool {
	if kind.id >= len(d.verdicts) || d.verdicts[kind.id] == unknown {
		if c.lore.unheard(d) {
			return false
		}
		for len(d.verdicts) <= kind.id {
			d.verdicts = append(d.verdicts, unknown)
		}
		d.verdicts[kind.id] = barred
		if len(c.lore.filters.Static(d.pod(), kind.node)) == 0 {
			d.verdicts[kind.id] = admitted
		}
	}
	return d.verdicts[kind.id] == admitted
}

// single names a place and demands that separate places.
type single struct {
	demands *demands
	place   *Place
}

// admitsSingle asks the plugins about one place, unless its name or labels settle
// it, as they do for nearly all.
func (c *Cluster) admitsSingle(d *demands, p *Place) bool {
	if d.spec.NodeName != "" && d.spec.NodeName != p.nodeName() {
		return false
	}
	if ok, err := d.required.Match(p.node()); !ok || err != nil {
		return false
	}
	key := single{d, p}
	known := c.singles[key]
	if known == unknown {
		known = barred
		if len(c.lore.filters.Static(d.pod(), p.node())) == 0 {
			known = admitted
		}
		c.singles[key] = known
	}
	return known == admitted
}

func (d *demands) pod() *corev1.Pod { return &corev1.Pod{Spec: *d.spec} }

// Tolerates reports whether none of these taints keeps the class off.
func (c *Class) Tolerates(taints ...corev1.Taint) bool {
	for _, t := range taints {
		if !c.demands.tolerates(t) {
			return false
		}
	}
	return true
}

func (d *demands) tolerates(t corev1.Taint) bool {
	return helper.TolerationsTolerateTaint(klog.Logger{}, d.tolerations, &t, d.comparison)
}

// explained returns in our words why the plugins bar demands from a place. They decide: of
// what we find, only what they refuse for is reported, and what they refuse for and we cannot
// find is reported in their words.
func (c *Cluster) explained(d *demands, p *Place) Reasons {
	found := map[string]Reasons{}
	note := func(r ...Reason) {
		for _, reason := range r {
			found[reason.Rule.plugin()] = append(found[reason.Rule.plugin()], reason)
		}
	}
	if p.template.unschedulable {
		note(Reason{Rule: RuleUnschedulable})
	}
	if d.spec.NodeName != "" {
		note(Reason{Rule: RuleName, What: d.spec.NodeName})
	}
	for _, t := range p.template.taints {
		if !d.tolerates(t) {
			note(Reason{Rule: RuleTaint, What: t.ToString()})
		}
	}
	note(selectorMisses(d.spec.NodeSelector, p)...)
	note(affinityMisses(requiredAffinity(d.spec), p.node())...)

	var why Reasons
	for _, refusal := range c.lore.filters.Static(d.pod(), p.node()) {
		if ours := found[refusal.Plugin]; len(ours) > 0 {
			why = append(why, ours...)
		} else {
			why = append(why, theirs(refusal))
		}
	}
	return why
}

// nodeOf is a node as the static plugins see it.
func nodeOf(l *NodeTemplate, name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: l.taints, Unschedulable: l.unschedulable},
		Status:     corev1.NodeStatus{Allocatable: l.allocatable, DeclaredFeatures: l.features},
	}
}
