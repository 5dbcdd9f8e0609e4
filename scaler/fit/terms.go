package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// terms are a pod's demands on other pods, with all selectors numbered.
type terms struct {
	key            string
	affinity, anti []podTerm
	spread         []spreadTerm
	// broken is what of it is unreadable: kube-scheduler places no such pod.
	broken Reasons
	// shuns is true if no pod is thought to fit beside these pods.
	shuns bool
}

// podTerm is a required term of affinity or anti-affinity.
type podTerm struct {
	// selected are the pods that it speaks of when its own pod is placed; repelled
	// are those that it keeps away after that. See asksAll.
	selected, repelled int
	topology           string
	text               string
}

// spreadTerm is a topology spread constraint that forbids placements.
type spreadTerm struct {
	// selected are the pods that count; none of them where all is set.
	selected int
	// all is true if the selector is empty: then no pod counts but the one that is being
	// placed.
	all                        bool
	topology                   string
	maxSkew, minDomains        int32
	honorAffinity, honorTaints bool
	text                       string
}

// termsKey is all that terms are made of.
type termsKey struct {
	traits            *traits
	namespace, values string
}

// termsOf reads the terms of a pod, nil for a pod that has none.
func (l *lore) termsOf(p *fleet.Pod, t *traits) *terms {
	if t.spec == nil {
		return &noTerms
	}
	if len(l.mute) > 0 && l.mute[p] {
		if speaksAbroad(t.spec) {
			return &muteAbroad
		}
		return &muteTerms
	}
	key := termsKey{t, p.Namespace, valuesOf(t.spec, p.Labels)}
	known, ok := l.terms[key]
	if !ok {
		known = l.newTerms(t.spec, p)
		known.key = "of " + p.Namespace + key.values
		l.terms[key] = known
	}
	return known
}

var (
	noTerms terms
	// muteTerms are those of pods on nodes that have no say, and muteAbroad of such as
	// speak of other namespaces.
	muteTerms  = terms{key: "mute", broken: mute}
	muteAbroad = terms{key: "mute abroad", broken: mute, shuns: true}
	mute       = Reasons{{Rule: RuleInterPodAffinity, What: "its affinity, anti-affinity and spread terms concern more kinds of pods than an evaluation considers, so it is taken to fit nowhere else"}}
)

// speaksAbroad reports whether anti-affinity keeps away pods of other namespaces.
func speaksAbroad(spec *corev1.PodSpec) bool {
	return spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil &&
		slices.ContainsFunc(spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(t corev1.PodAffinityTerm) bool {
			return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
		})
}

// valuesOf the labels that the matchLabelKeys of spread constraints name.
func valuesOf(spec *corev1.PodSpec, labels map[string]string) string {
	if !slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return len(c.MatchLabelKeys) > 0 }) {
		return ""
	}
	var text strings.Builder
	for _, c := range spec.TopologySpreadConstraints {
		for _, key := range c.MatchLabelKeys {
			value, has := labels[key]
			fmt.Fprintf(&text, " %s=%q/%v", key, value, has)
		}
	}
	return text.String()
}

func (l *lore) newTerms(spec *corev1.PodSpec, p *fleet.Pod) *terms {
	t := &terms{}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		t.affinity = l.podTerms(t, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, p.Namespace)
		readable(t, unweighted(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution))
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		t.anti = l.podTerms(t, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, p.Namespace)
		readable(t, unweighted(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution))
	}
	t.spread = l.spreadTerms(t, spec, p)
	return t
}

func unweighted(terms []corev1.WeightedPodAffinityTerm) []corev1.PodAffinityTerm {
	var list []corev1.PodAffinityTerm
	for _, t := range terms {
		list = append(list, t.PodAffinityTerm)
	}
	return list
}

// readable finds out whether terms can be read that forbid nothing: a pod of which one
// cannot is not placed at all.
func readable(of *terms, list []corev1.PodAffinityTerm) {
	for i := range list {
		if _, _, ok := readTerm(of, &list[i]); !ok {
			return
		}
	}
}

// readTerm reads the selectors of a term, or notes that they cannot be read.
func readTerm(of *terms, t *corev1.PodAffinityTerm) (pods, among labels.Selector, ok bool) {
	pods, err1 := parsed(t.LabelSelector)
	among, err2 := parsed(t.NamespaceSelector)
	if err := cmp.Or(err1, err2); err != nil {
		of.broken = append(of.broken, Reason{Rule: RuleInterPodAffinity, What: fmt.Sprintf("its terms cannot be read: %v", err)})
		return nil, nil, false
	}
	return pods, among, true
}

// podTerms reads the terms of one kind. If one is broken, none of them counts.
func (l *lore) podTerms(of *terms, list []corev1.PodAffinityTerm, namespace string) []podTerm {
	var read []podTerm
	for i := range list {
		pods, among, ok := readTerm(of, &list[i])
		if !ok {
			return nil
		}
		names := slices.Clone(list[i].Namespaces)
		if len(names) == 0 && list[i].NamespaceSelector == nil {
			names = []string{namespace}
		}
		repelled := l.selectors.of(selector{namespaces: names, among: among, pods: pods})
		selected := repelled
		if asksAll(among) {
			selected = l.selectors.of(selector{namespaces: names, among: labels.Everything(), pods: pods})
		}
		read = append(read, podTerm{selected: selected, repelled: repelled, topology: list[i].TopologyKey, text: forPeople(pods)})
	}
	return read
}

// asksAll reports whether kube-scheduler takes a namespace selector for one that selects all
// namespaces while it places the pod itself: so it does with one that a namespace without
// labels meets, such as !team. (InterPodAffinity unrolls the selector into names but goes
// on to ask it, about no labels.)
// https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/scheduler/framework/plugins/interpodaffinity/plugin.go
func asksAll(among labels.Selector) bool { return among.Matches(labels.Set{}) }

func (l *lore) spreadTerms(of *terms, spec *corev1.PodSpec, p *fleet.Pod) []spreadTerm {
	var read []spreadTerm
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		pods, err := parsed(c.LabelSelector)
		if err != nil {
			of.broken = append(of.broken, Reason{Rule: RulePodTopologySpread, What: fmt.Sprintf("its constraints cannot be read: %v", err)})
			return nil
		}
		if l.gates.MatchLabelKeys {
			pods = withLabels(pods, c.MatchLabelKeys, p.Labels)
		}
		t := spreadTerm{
			all: pods.Empty(), topology: c.TopologyKey, maxSkew: c.MaxSkew, minDomains: ptr.Deref(c.MinDomains, 1),
			honorAffinity: true, text: forPeople(pods),
		}
		if !t.all {
			t.selected = l.selectors.of(selector{namespaces: []string{p.Namespace}, among: labels.Nothing(), pods: pods})
		}
		if l.gates.NodeInclusionPolicy {
			t.honorAffinity = ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor
			t.honorTaints = ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor
		}
		read = append(read, t)
	}
	return read
}

// withLabels is a selector that also demands the pod's own values of those labels
// that it has.
func withLabels(s labels.Selector, keys []string, own map[string]string) labels.Selector {
	demanded := map[string]string{}
	for _, key := range keys {
		if value, has := own[key]; has {
			demanded[key] = value
		}
	}
	requirements, selectable := s.Requirements()
	if len(demanded) == 0 || !selectable {
		return s
	}
	return labels.SelectorFromSet(demanded).Add(requirements...)
}
