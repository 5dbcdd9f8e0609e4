package fit

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Scales weigh the terms of pods about others, before anything is learned of them: a term that so
// many kinds of pods could match is asked, and counted, for as many.
type Scales struct {
	// kinds are a pod of each kind.
	kinds []*fleet.Pod
	// among counts the kinds of each namespace and those of them with a label, and all
	// those of every namespace, once somebody speaks of these.
	among census
	all   *census
}

// census counts kinds of pods by what selects them.
type census struct {
	kinds    map[string]int
	carrying map[namespacedLabel]int
}

func newCensus(kinds int) census {
	return census{map[string]int{}, make(map[namespacedLabel]int, kinds)}
}

func (c census) add(namespace string, labels map[string]string) {
	c.kinds[namespace]++
	for key, value := range labels {
		c.carrying[namespacedLabel{namespace, label{key, value}}]++
	}
}

// everywhere is the census of all namespaces.
func (s *Scales) everywhere() census {
	if s.all == nil {
		all := newCensus(len(s.kinds))
		for _, p := range s.kinds {
			all.add("", p.Labels)
		}
		s.all = &all
	}
	return *s.all
}

type namespacedLabel struct {
	namespace string
	label
}

// TermsKey identifies the terms that pods have about others.
type TermsKey struct{ termsKey }

// Terms is the terms of a pod about others.
func (r *Rules) Terms(kubernetes string, p *fleet.Pod) TermsKey {
	r.follow(kubernetes)
	t := r.traitsOf(p.Spec)
	if t.spec == nil {
		return TermsKey{}
	}
	return TermsKey{termsKey{t, p.Namespace, valuesOf(t.spec, p.Labels)}}
}

// Scales are made for all pods of a world, once their rules are known by Terms. There are
// about so many kinds of them.
func (r *Rules) Scales(pods []*fleet.Pod, kinds int) *Scales {
	s := &Scales{kinds: make([]*fleet.Pod, 0, kinds), among: newCensus(kinds)}
	type kind struct {
		traits    *traits
		namespace string
		labels    uint64
	}
	known := make(map[kind]bool, kinds)
	seed := maphash.MakeSeed()
	var last kind // pods of one owner follow each other
	for _, p := range pods {
		if p.Ended() {
			continue
		}
		k := kind{traits: r.traitsOf(p.Spec), namespace: p.Namespace}
		for key, value := range p.Labels {
			k.labels += maphash.Comparable(seed, label{key, value})
		}
		if k == last || known[k] {
			continue
		}
		last, known[k] = k, true
		s.kinds = append(s.kinds, p)
		s.among.add(p.Namespace, p.Labels)
	}
	return s
}

// Each label, value and namespace that terms name beyond valuesOfTerm of each weighs valueWeighs: a
// kilobyte is kept of it.
const valuesOfTerm, valueWeighs = 8, 10

// Weigh is how much terms about others weigh, if there are any.
func (s *Scales) Weigh(said TermsKey) (weight int) {
	spec := said.traits.spec
	weight = valueWeighs * LongValues(spec)
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			weight += s.reachOf(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, said.namespace)
		}
		if a.PodAntiAffinity != nil {
			weight += s.reachOf(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, said.namespace)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		weight += s.among.reach(said.namespace, spec.TopologySpreadConstraints[i].LabelSelector)
	}
	return max(1, weight)
}

func (s *Scales) reachOf(terms []corev1.PodAffinityTerm, namespace string) (sum int) {
	for i := range terms {
		in, among := namespace, s.among
		if len(terms[i].Namespaces) > 0 || terms[i].NamespaceSelector != nil {
			in, among = "", s.everywhere()
		}
		sum += among.reach(in, terms[i].LabelSelector)
	}
	return sum
}

// reach is how many kinds of pods a selector is asked about: no more than have one of the
// labels that it demands. It is not parsed for that, which costs more than all the rest.
func (c census) reach(namespace string, of *metav1.LabelSelector) int {
	if of == nil {
		return 1
	}
	least := c.kinds[namespace]
	for key, value := range of.MatchLabels {
		least = min(least, c.carrying[namespacedLabel{namespace, label{key, value}}])
	}
	for _, r := range of.MatchExpressions {
		if r.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		n := 0
		for _, value := range r.Values {
			n += c.carrying[namespacedLabel{namespace, label{r.Key, value}}]
		}
		least = min(least, n)
	}
	return 1 + least
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

// LongValues is how many labels, values and namespaces the terms of a pod name beyond what most do.
func LongValues(spec *corev1.PodSpec) int {
	return max(0, CountValues(spec)-valuesOfTerm*CountTerms(spec))
}

// CountValues is how many labels, values and namespaces the terms of a pod name that CountTerms counts.
func CountValues(spec *corev1.PodSpec) (n int) {
	if spec == nil || !hasTerms(spec) {
		return 0
	}
	count := func(selectors ...*metav1.LabelSelector) {
		for _, s := range selectors {
			if s == nil {
				continue
			}
			n += len(s.MatchLabels)
			for _, e := range s.MatchExpressions {
				n += 1 + len(e.Values)
			}
		}
	}
	terms := func(list []corev1.PodAffinityTerm) {
		for i := range list {
			count(list[i].LabelSelector, list[i].NamespaceSelector)
			n += len(list[i].Namespaces) + len(list[i].MatchLabelKeys) + len(list[i].MismatchLabelKeys)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		count(spec.TopologySpreadConstraints[i].LabelSelector)
		n += len(spec.TopologySpreadConstraints[i].MatchLabelKeys)
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return n
}
