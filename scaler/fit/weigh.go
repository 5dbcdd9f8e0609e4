package fit

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"

	"windlass.dev/windlass/pkg/fleet"
)

// Scales weigh what pods say of others, before anything is learned of it: a term that so
// many kinds of pods could match is asked, and counted, for as many.
type Scales struct {
	lore *lore
	// kinds counts the kinds of pods, by namespace and, under none, all of them; carrying
	// those of them with a label.
	kinds    map[string]int
	carrying map[namespacedLabel]int
}

type namespacedLabel struct {
	namespace string
	label
}

// TermsKey tells apart what pods say of others.
type TermsKey struct{ termsKey }

// Terms is what a pod says of others.
func (r *Rules) Terms(kubernetes string, p *fleet.Pod) TermsKey {
	r.follow(kubernetes)
	t := r.traitsOf(p.Spec)
	if t.spec == nil {
		return TermsKey{}
	}
	return TermsKey{termsKey{t, p.Namespace, valuesOf(t.spec, p.Labels)}}
}

// Scales are made for all pods of a world, once their rules are known by Terms.
func (r *Rules) Scales(pods []*fleet.Pod) *Scales {
	s := &Scales{lore: r.lore, kinds: map[string]int{}, carrying: map[namespacedLabel]int{}}
	type kind struct {
		traits    *traits
		namespace string
		labels    uint64
	}
	known := map[kind]bool{}
	seed := maphash.MakeSeed()
	for _, p := range pods {
		if p.Ended() {
			continue
		}
		k := kind{traits: r.traitsOf(p.Spec), namespace: p.Namespace}
		for key, value := range p.Labels {
			k.labels += maphash.Comparable(seed, label{key, value})
		}
		if known[k] {
			continue
		}
		known[k] = true
		for _, in := range []string{"", p.Namespace} {
			s.kinds[in]++
			for key, value := range p.Labels {
				s.carrying[namespacedLabel{in, label{key, value}}]++
			}
		}
	}
	return s
}

// Weigh is how much it weighs what a pod says of others, if it says anything.
func (s *Scales) Weigh(p *fleet.Pod) (weight int) {
	t := s.lore.traitsOf(p.Spec)
	if a := t.spec.Affinity; a != nil {
		var terms []corev1.PodAffinityTerm
		if a.PodAffinity != nil {
			terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		if a.PodAntiAffinity != nil {
			terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		for i := range terms {
			in := p.Namespace
			if len(terms[i].Namespaces) > 0 || terms[i].NamespaceSelector != nil {
				in = ""
			}
			weight += s.reach(in, terms[i].LabelSelector)
		}
	}
	for i := range t.spec.TopologySpreadConstraints {
		weight += s.reach(p.Namespace, t.spec.TopologySpreadConstraints[i].LabelSelector)
	}
	return max(1, weight)
}

// reach is how many kinds of pods a selector is asked about.
func (s *Scales) reach(namespace string, of *metav1.LabelSelector) int {
	pods, err := parsed(of)
	if err != nil {
		return 1
	}
	requirements, selectable := pods.Requirements()
	if !selectable {
		return 1
	}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			n := 1
			for value := range r.Values() {
				n += s.carrying[namespacedLabel{namespace, label{r.Key(), value}}]
			}
			return n
		}
	}
	return 1 + s.kinds[namespace]
}

// CountTerms counts the terms by which other pods decide where those of a spec fit, or the
// reverse.
func CountTerms(spec *corev1.PodSpec) int {
	if spec == nil || !hasTerms(spec) {
		return 0
	}
	n := 1 + len(spec.TopologySpreadConstraints)
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		n += len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		n += len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return n
}
