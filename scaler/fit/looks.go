package fit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Looks is all of a node, or of a new node of some shape, that decides what
// fits it when it is empty.
type Looks struct {
	// Name is the node's, or the instance type of a shape.
	Name string
	// Zone is empty where it is not known.
	Zone string

	node          *corev1.Node // name and labels only
	taints        []corev1.Taint
	unschedulable bool
	// room is what pods may have of it.
	room vector
	key  string
}

// LooksOf a node, but for the taints that ignored names: those that will go by
// themselves. Unschedulable counts unless it is ignored likewise, by the taint
// that stands for it.
func (c *Cluster) LooksOf(n *fleet.Node, ignored func(corev1.Taint) bool) *Looks {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	l := &Looks{
		Name: n.Name, Zone: n.Zone(),
		node:          &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}},
		unschedulable: n.Unschedulable && !ignored(cordon),
		room:          c.names.vectorOf(n.Allocatable),
	}
	for _, t := range n.Taints {
		if hard(t) && !ignored(t) {
			l.taints = append(l.taints, t)
		}
	}
	l.key = l.canonical()
	return l
}

// LooksLike a new node of a shape, with the DaemonSets on it that would run
// there.
func (c *Cluster) LooksLike(s *fleet.Shape, daemons []fleet.DaemonSet) *Looks {
	labels := map[string]string{}
	for k, v := range s.Labels {
		labels[k] = v
	}
	if s.Zone != "" {
		labels[corev1.LabelTopologyZone] = s.Zone
	}
	l := &Looks{
		Name: cmp.Or(s.InstanceType, "a new node"), Zone: s.Zone,
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		room: c.names.vectorOf(s.Allocatable),
	}
	for _, t := range s.Taints {
		if hard(t) {
			l.taints = append(l.taints, t)
		}
	}
	l.key = l.canonical()
	c.reserve(l, daemons, nil)
	return l
}

// Reserve takes from the looks of a node what those DaemonSets will take that
// run there but have no pod there yet.
func (c *Cluster) Reserve(l *Looks, daemons []fleet.DaemonSet, present []*fleet.Pod) {
	c.reserve(l, daemons, present)
}

func (c *Cluster) reserve(l *Looks, daemons []fleet.DaemonSet, present []*fleet.Pod) {
	for i := range daemons {
		ds := &daemons[i]
		if slices.ContainsFunc(present, func(p *fleet.Pod) bool { return ownedBy(p, ds) }) {
			continue
		}
		class := newClass(c.names, &ds.Template.Spec, nil)
		if len(c.static(class, l)) > 0 {
			continue
		}
		for _, r := range class.requests {
			l.room.add(r.resource, -r.n)
		}
	}
}

func ownedBy(p *fleet.Pod, ds *fleet.DaemonSet) bool {
	return p.Namespace == ds.Namespace && p.Owner != nil && p.Owner.Kind == "DaemonSet" && p.Owner.Name == ds.Name
}

// hard taints keep pods off; soft ones only turn them away if they can go
// elsewhere.
func hard(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// canonical is equal for looks that every class but singular ones answers
// alike.
func (l *Looks) canonical() string {
	labels := map[string]string{}
	for k, v := range l.node.Labels {
		if k != corev1.LabelHostname {
			labels[k] = v
		}
	}
	taints := make([]string, len(l.taints))
	for i, t := range l.taints {
		taints[i] = t.ToString()
	}
	slices.Sort(taints)
	out, err := json.Marshal(struct {
		L map[string]string
		T []string
		U bool
	}{labels, taints, l.unschedulable})
	if err != nil {
		panic(fmt.Sprintf("labels and taints always encode: %v", err))
	}
	return string(out)
}
