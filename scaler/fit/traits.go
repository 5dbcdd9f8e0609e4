package fit

import (
	"cmp"
	"hash/maphash"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream"
)

// traits is all of a pod's spec that decides where it fits.
type traits struct {
	key string
	// asks is what is asked for of each resource, without what is asked as none;
	// takes is what is counted as used.
	asks, takes []amount
	// extended names all resources that are asked for by a name of their own.
	extended []corev1.ResourceName
	ports    []hostPort
	demands  *demands
	// claims is true if the spec has volumes or claims that plugins are asked about.
	claims bool
	// spec is where the terms stand, nil without any.
	spec *corev1.PodSpec
}

// traitsKey is what traits are made of, in an order that encodes canonically.
type traitsKey struct {
	Requests    []amountKey                       `json:"r,omitempty"`
	Ports       []hostPort                        `json:"p,omitempty"`
	NodeName    string                            `json:"n,omitempty"`
	Selector    map[string]string                 `json:"s,omitempty"`
	Affinity    *corev1.NodeSelector              `json:"a,omitempty"`
	Tolerations []corev1.Toleration               `json:"t,omitempty"`
	Needs       string                            `json:"f,omitempty"`
	Claims      bool                              `json:"c,omitempty"`
	Pods        *corev1.PodAffinity               `json:"pa,omitempty"`
	Anti        *corev1.PodAntiAffinity           `json:"pn,omitempty"`
	Spread      []corev1.TopologySpreadConstraint `json:"ps,omitempty"`
	Extended    []corev1.ResourceName             `json:"x,omitempty"`
}

type amountKey struct {
	Name corev1.ResourceName `json:"r"`
	N    int64               `json:"n"`
}

// traitMemory finds traits by the spec itself, by its bytes, and by what of it
// counts: the cheapest question comes first.
type traitMemory struct {
	bySpec  map[*corev1.PodSpec]*traits
	byBytes map[[2]uint64]*traits
	byKey   map[string]*traits
	seeds   [2]maphash.Seed
	buffer  []byte
	// bytes is the size of all specs that were learned.
	bytes int
}

func newTraitMemory() *traitMemory {
	return &traitMemory{
		bySpec: map[*corev1.PodSpec]*traits{}, byBytes: map[[2]uint64]*traits{}, byKey: map[string]*traits{},
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

// keep forgets all specs but those of these pods.
func (m *traitMemory) keep(pods []*fleet.Pod) {
	bySpec := map[*corev1.PodSpec]*traits{}
	for _, p := range pods {
		if t, known := m.bySpec[p.Spec]; known {
			bySpec[p.Spec] = t
		}
	}
	m.bySpec = bySpec
}

// fingerprint of a spec: two hashes of its bytes, so that no two specs share it.
func (m *traitMemory) fingerprint(spec *corev1.PodSpec) ([2]uint64, bool) {
	size := spec.Size()
	m.buffer = slices.Grow(m.buffer[:0], size)[:size]
	n, err := spec.MarshalToSizedBuffer(m.buffer)
	if err != nil {
		return [2]uint64{}, false
	}
	raw := m.buffer[size-n:]
	return [2]uint64{maphash.Bytes(m.seeds[0], raw), maphash.Bytes(m.seeds[1], raw)}, true
}

func specOf(spec *corev1.PodSpec) *corev1.PodSpec {
	if spec == nil {
		return &corev1.PodSpec{}
	}
	return spec
}

func (l *lore) traitsOf(spec *corev1.PodSpec) *traits {
	m := l.traits
	if t, known := m.bySpec[spec]; known {
		return t
	}
	bounded := fleet.Bounded(specOf(spec)) // those of DaemonSets and templates are as the API server has them
	print, ok := m.fingerprint(bounded)
	t, known := m.byBytes[print]
	if !ok || !known {
		t = l.newTraits(bounded)
		m.bytes += bounded.Size()
		if same, known := m.byKey[t.key]; known {
			t = same
		}
		m.byKey[t.key], m.byBytes[print] = t, t
	}
	m.bySpec[spec] = t
	return t
}

func (l *lore) newTraits(spec *corev1.PodSpec) *traits {
	requests := helper.PodRequests(&corev1.Pod{Spec: *spec}, helper.PodResourcesOptions{SkipPodLevelResources: !l.gates.PodLevelResources})
	t := &traits{
		asks: l.names.asked(requests), takes: l.names.taken(requests),
		ports:  hostPorts(spec),
		claims: l.filters.Concerns(&corev1.Pod{Spec: corev1.PodSpec{Volumes: spec.Volumes, ResourceClaims: spec.ResourceClaims}}),
	}
	for name := range requests {
		if upstream.Countable(name) {
			t.extended = append(t.extended, name)
		}
	}
	slices.Sort(t.extended)
	k := traitsKey{
		Ports: t.ports, NodeName: spec.NodeName, Selector: spec.NodeSelector, Affinity: requiredAffinity(spec),
		Tolerations: slices.Clone(spec.Tolerations), Needs: l.filters.Needs(spec),
	}
	for _, a := range t.asks {
		k.Requests = append(k.Requests, amountKey{l.names.names[a.resource], a.n})
	}
	slices.SortFunc(k.Requests, func(a, b amountKey) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(k.Tolerations, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator),
			cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	t.demands = l.demandsOf(spec, k)

	k.Claims, k.Extended = t.claims, t.extended
	if hasTerms(spec) {
		t.spec = spec
		k.Spread = spec.TopologySpreadConstraints
		if spec.Affinity != nil {
			k.Pods, k.Anti = spec.Affinity.PodAffinity, spec.Affinity.PodAntiAffinity
		}
	}
	t.key = encoded(k)
	return t
}

// hasTerms reports whether other pods decide where these fit, or the reverse.
func hasTerms(spec *corev1.PodSpec) bool {
	if a := spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		return true
	}
	return slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	})
}

func requiredAffinity(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// request is what is asked of a resource, in thousandths for cpu and in whole
// units otherwise.
func (t *traits) request(resource int) int64 {
	for _, a := range t.asks {
		if a.resource == resource {
			return a.n
		}
	}
	return 0
}
