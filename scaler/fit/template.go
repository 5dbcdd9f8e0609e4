package fit

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// NodeTemplate is all of a node, or of a new node by a group's template, that decides what
// fits it when it is empty.
type NodeTemplate struct {
	// Name is the node's, or the instance type of a new node.
	Name string
	// Zone is empty where it is not known.
	Zone string

	labels        map[string]string
	taints        []corev1.Taint
	unschedulable bool
	features      []string
	allocatable   corev1.ResourceList
	// drivers are what a new node will have: volumes that may be attached. slices are devices
	// that a node will have beside those that it reports.
	drivers []storagev1.CSINodeDriver
	slices  []*resourcev1.ResourceSlice
	// daemons are the pods that DaemonSets will run there and have not got there yet.
	daemons []Tenant
	// outsized are those that have no room there.
	outsized []Outsized
	// has is all that pods may have of it, room what daemons leave of that, and ports
	// what they take of the host's.
	has, room vector
	ports     []hostPort

	// of is the node that it is of, and lore what numbers its resources; nil where it is none's.
	of   *fleet.Node
	lore *lore

	kind    *kind
	edition int
	// key is what Key has found; empty before.
	key string
}

// TemplateFrom a node, but for the taints that ignored names: those that will go by
// themselves. Unschedulable counts unless it is ignored likewise, by the taint
// that stands for it.
func (c *Cluster) TemplateFrom(n *fleet.Node, ignored func(corev1.Taint) bool) *NodeTemplate {
	return c.TemplateAgain(nil, n, ignored)
}

// TemplateAgain is the same, and it is that of an earlier evaluation where it would be equal: that
// was made of this very node, which is never changed. Nil stands for none.
func (c *Cluster) TemplateAgain(was *NodeTemplate, n *fleet.Node, ignored func(corev1.Taint) bool) *NodeTemplate {
	unschedulable := n.Unschedulable && !ignored(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	var taints []corev1.Taint
	for _, t := range n.Taints {
		if hard(t) && !ignored(t) {
			taints = append(taints, t)
		}
	}
	if was != nil && was.of == n && was.lore == c.lore && was.unschedulable == unschedulable && slices.Equal(was.taints, taints) {
		return was
	}
	l := &NodeTemplate{
		Name: n.Name, Zone: n.Zone(), labels: n.Labels, taints: taints, unschedulable: unschedulable,
		features: n.DeclaredFeatures, allocatable: n.Allocatable,
		has: c.lore.names.vectorOf(n.Allocatable), of: n, lore: c.lore,
	}
	l.room = l.has
	return l
}

// TemplateOf is the template of a new node, with the DaemonSets on it that would run there.
func (c *Cluster) TemplateOf(s *fleet.NodeTemplate) *NodeTemplate {
	labels := maps.Clone(s.Labels)
	if s.Zone != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[corev1.LabelTopologyZone] = s.Zone
	}
	l := &NodeTemplate{
		Name: cmp.Or(s.InstanceType, "a new node"), Zone: s.Zone, labels: labels,
		features: s.DeclaredFeatures, allocatable: s.Allocatable, drivers: s.Drivers, slices: s.Slices,
		has: c.lore.names.vectorOf(s.Allocatable),
	}
	for _, t := range s.Taints {
		if hard(t) {
			l.taints = append(l.taints, t)
		}
	}
	l.room = l.has
	c.Reserve(l, nil)
	return l
}

// Await has a node that is there be one with further devices, which it has yet to report.
// They may be those of another node of its kind.
func (l *NodeTemplate) Await(devices []*resourcev1.ResourceSlice) { l.slices = devices }

// hard taints keep pods off; soft ones only turn them away if they can go
// elsewhere.
func hard(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// kind is what static questions go by: templates of one kind have equal answers, but to
// demands that name hosts.
type kind struct {
	id   int
	node *corev1.Node
	// look is the last evaluation in which it was seen.
	look int
}

// kindKey hashes all that a kind is made of.
type kindKey [2]uint64

// kindOf is the kind of a template. Labels that no pod asks for make no difference.
func (l *lore) kindOf(looks *NodeTemplate) *kind {
	k := looks.kind
	if k == nil || looks.edition != l.edition {
		key, known := l.kindKey(looks), false
		if k, known = l.kinds[key]; !known {
			k = &kind{id: l.numbered, node: nodeOf(looks, looks.Name, looks.labels)}
			l.numbered++
			l.kinds[key] = k
			l.carry(looks)
		}
		looks.kind, looks.edition = k, l.edition
	}
	if k.look != l.look {
		k.look = l.look
		l.met++
	}
	return k
}

// kindKey adds the hashes of the parts up, because they have no order.
func (l *lore) kindKey(looks *NodeTemplate) kindKey {
	var key kindKey
	add := func(part [3]string) {
		for i, seed := range l.traits.seeds {
			key[i] += maphash.Comparable(seed, part)
		}
	}
	for k, v := range looks.labels {
		if l.asked[k] {
			add([3]string{"label", k, v})
		}
	}
	for _, t := range looks.taints {
		add([3]string{string(t.Effect), t.Key, t.Value})
	}
	for _, f := range looks.features {
		add([3]string{"feature", f})
	}
	if looks.unschedulable {
		add([3]string{"cordoned"})
	}
	return key
}

// Key is equal for templates that fit the same pods, wherever they come from.
func (l *NodeTemplate) Key() string {
	if l.key == "" {
		l.key = encoded(l.parts())
	}
	return l.key
}

// parts are what two templates must have in common to fit the same pods.
func (l *NodeTemplate) parts() any {
	return struct {
		L map[string]string
		T []corev1.Taint
		U bool
		F []string
		H vector
		R vector
		D []storagev1.CSINodeDriver
		S []*resourcev1.ResourceSlice
		P []string
	}{l.labels, l.taints, l.unschedulable, l.features, l.has, l.room, l.drivers, l.slices, classKeys(l.daemons)}
}
