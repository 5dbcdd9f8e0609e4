package plan

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// learnedRoom is what the least of these nodes has of each resource. A device
// plugin may start long after its node is Ready: what it was planned to report is
// believed for as long as a node may take to start.
func (g *group) learnedRoom(planned corev1.ResourceList, like []*node, pluginsDue bool, of func(*node) corev1.ResourceList) corev1.ResourceList {
	room := maps.Clone(planned)
	if room == nil {
		room = corev1.ResourceList{}
	}
	reported := leastOf(like, of)
	for name := range planned {
		if _, ok := reported[name]; !ok && byPlugin(name) && pluginsDue {
			delete(room, name)
		}
	}
	for name, q := range reported {
		has, promised := planned[name]
		switch {
		case q.IsZero() && byPlugin(name) && !pluginsDue:
			continue
		case g.Mixed && (!promised || has.Cmp(q) < 0):
			continue
		}
		room[name] = atLeast(name, q, has)
	}
	if len(room) == 0 {
		return nil
	}
	return room
}

// atLeast is what a node reports of its processors or memory, but no less than half of what
// was planned: whatever one kubelet writes, it does not make its whole group useless.
func atLeast(name corev1.ResourceName, q, planned resource.Quantity) resource.Quantity {
	half := planned
	switch name {
	case corev1.ResourceCPU:
		half = *resource.NewMilliQuantity(planned.MilliValue()/2, planned.Format)
	case corev1.ResourceMemory:
		half = *resource.NewQuantity(planned.Value()/2, planned.Format)
	default:
		return q
	}
	if q.Cmp(half) < 0 {
		return half
	}
	return q
}

// leastOf is the smallest amount of each resource, but for nothing at all where
// another node has some.
func leastOf(like []*node, of func(*node) corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, n := range like {
		for name, q := range of(n) {
			if has, ok := out[name]; !ok || has.IsZero() || !q.IsZero() && q.Cmp(has) < 0 {
				out[name] = q
			}
		}
	}
	return out
}

// driversOf are the volume drivers of these nodes, each with the least of their
// limits, by name. One that has not registered on a young node yet will.
func driversOf(like []*node, of map[string][]storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
	byName := map[string]storagev1.CSINodeDriver{}
	for _, n := range like {
		for _, driver := range of[n.Name] {
			if known, ok := byName[driver.Name]; !ok || limit(driver) < limit(known) {
				byName[driver.Name] = driver
			}
		}
	}
	var drivers []storagev1.CSINodeDriver
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		drivers = append(drivers, byName[name])
	}
	return drivers
}

// limit is how many volumes of a driver a node may have.
func limit(d storagev1.CSINodeDriver) int64 {
	if d.Allocatable == nil || d.Allocatable.Count == nil {
		return 1 << 32
	}
	return int64(*d.Allocatable.Count)
}

// richest are the devices of the node that tells of most.
func richest(like []*node, of map[string][]*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	var best []*resourcev1.ResourceSlice
	for _, n := range like {
		if len(of[n.Name]) > len(best) {
			best = of[n.Name]
		}
	}
	best = slices.Clone(best)
	slices.SortFunc(best, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	return best
}
