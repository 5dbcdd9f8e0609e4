package fit

import (
	"cmp"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// A new node is not empty: the pods of the DaemonSets that run there come with it.
// They take room and host ports, and count for affinity and spread, before any other
// pod comes.

// daemonPods are what the DaemonSets' pods on a new node are like.
func daemonPods(sets []fleet.DaemonSet) []*fleet.Pod {
	pods := make([]*fleet.Pod, len(sets))
	for i := range sets {
		set := &sets[i]
		pods[i] = &fleet.Pod{
			Namespace: set.Namespace, Name: set.Name + "-…",
			Labels: set.Template.Labels, Annotations: set.Template.Annotations,
			Owner: &metav1.OwnerReference{Kind: "DaemonSet", Name: set.Name}, Spec: &set.Template.Spec,
		}
	}
	slices.SortStableFunc(pods, func(a, b *fleet.Pod) int { return cmp.Compare(rank(b.Spec), rank(a.Spec)) })
	return pods
}

// rank is the priority of a template, as far as it states one.
// https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#how-to-use-priority-and-preemption
func rank(spec *corev1.PodSpec) int32 {
	switch spec.PriorityClassName {
	case "system-node-critical":
		return 2_000_001_000
	case "system-cluster-critical":
		return 2_000_000_000
	}
	return ptr.Deref(spec.Priority, 0)
}

// daemonClass is the class of such a pod. The pod and its spec have new addresses in every
// evaluation, so neither is kept. Volumes and claims of DaemonSets are not reckoned with:
// those that are the same on every node are on none that is new.
func (l *lore) daemonClass(p *fleet.Pod) *Class {
	t := l.traitsOf(p.Spec)
	delete(l.traits.bySpec, p.Spec)
	return l.classBy(classKey{
		traits: t, terms: l.termsOf(p, t), matched: l.selectors.matching(p.Namespace, p.Labels, l.namespaces),
	}, p)
}

// Reserve gives the template of a node the pods of those DaemonSets that run there but have
// none among the pods that are present, those of the highest priority first. One that the
// node has no room for stays pending there, and takes none: see Outsized.
func (c *Cluster) Reserve(l *NodeTemplate, present []*fleet.Pod) {
	l.room, l.key = append(vector(nil), l.room...), ""
	for _, t := range c.daemons {
		if hasPodOf(t, present) || !c.admits(t.Class.demands, c.imagined(l)) {
			continue
		}
		if why := c.lacking(t.Class, l.room); len(why) > 0 {
			l.outsized = append(l.outsized, Outsized{t.Pod.Owner.Name, t.Pod.Namespace, why})
			continue
		}
		l.daemons = append(l.daemons, t)
		l.ports = append(l.ports, t.Class.ports...)
		for _, a := range t.Class.takes {
			l.room.add(a.resource, -a.n)
		}
	}
	l.ports = l.ports[:len(l.ports):len(l.ports)] // each place adds to its own copy
}

// Outsized is a DaemonSet whose pod has no room on a node, and what it lacks there.
type Outsized struct {
	Name, Namespace string
	Why             Reasons
}

// Outsized are the DaemonSets that would run there if there were room.
func (l *NodeTemplate) Outsized() []Outsized { return l.outsized }

// lacking returns of which resources a room has less than a class asks for.
func (c *Cluster) lacking(class *Class, room vector) Reasons {
	var why Reasons
	for _, a := range class.asks {
		if have := room.at(a.resource); have < a.n {
			why = append(why, Reason{Rule: RuleResources, What: string(c.lore.names.names[a.resource]), Need: a.n, Have: have})
		}
	}
	return why
}

// hasPodOf reports whether one of some pods is of the daemon's DaemonSet.
func hasPodOf(daemon Tenant, pods []*fleet.Pod) bool {
	for _, p := range pods {
		if p.Namespace == daemon.Pod.Namespace && p.Owner != nil && p.Owner.Kind == "DaemonSet" && p.Owner.Name == daemon.Pod.Owner.Name {
			return true
		}
	}
	return false
}

// countDaemons counts the daemons of a place in, or out by -1. Most count nowhere.
func (c *Cluster) countDaemons(p *Place, n int32) {
	for _, t := range p.template.daemons {
		for _, tally := range c.members[t.Class.id].joins {
			tally.add(p, n)
		}
	}
}

// residents are all pods that count at a place.
func (p *Place) residents() iter.Seq[Tenant] {
	return func(yield func(Tenant) bool) {
		if !p.expected {
			for _, t := range p.template.daemons {
				if !yield(t) {
					return
				}
			}
		}
		for _, t := range p.tenants {
			if !yield(t) {
				return
			}
		}
	}
}

// classKeys are the canonical keys of some pods' classes.
func classKeys(tenants []Tenant) []string {
	var keys []string
	for _, t := range tenants {
		keys = append(keys, t.Class.Key)
	}
	return keys
}
