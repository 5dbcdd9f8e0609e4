package template

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/scaler/plan/cluster"
)

// learnedRoom is what new nodes will have of each resource, from what the specimens report.
// A device plugin may start long after its node is Ready: what it was planned to report is
// believed until some specimen has had its time.
func (d *Templates) learnedRoom(g *cluster.Group, planned corev1.ResourceList, like []*cluster.Node, of func(*cluster.Node) corev1.ResourceList) corev1.ResourceList {
	room := maps.Clone(planned)
	if room == nil {
		room = corev1.ResourceList{}
	}
	// Of a mixed group those of one type are compared: among them one may differ.
	reported := map[corev1.ResourceName]map[string][]resource.Quantity{}
	for _, n := range like {
		kind := ""
		if g.Mixed {
			kind = n.Instance.Type
		}
		for name, q := range of(n) {
			if reported[name] == nil {
				reported[name] = map[string][]resource.Quantity{}
			}
			reported[name][kind] = append(reported[name][kind], q)
		}
	}
	for name := range planned {
		if _, ok := reported[name]; !ok && cluster.ByPlugin(name) && d.hadTime(like) {
			delete(room, name)
		}
	}
	for name, kinds := range reported {
		has, promised := planned[name]
		var q resource.Quantity
		first := true
		for _, all := range kinds {
			if agree := agreed(all, has, promised); first || agree.Cmp(q) < 0 {
				q, first = agree, false
			}
		}
		switch {
		case cluster.ByPlugin(name) && (q.IsZero() || promised && short(q, has)) && !d.hadTime(like):
			continue
		case g.Mixed && (!promised || has.Cmp(q) < 0):
			continue
		}
		room[name] = near(name, q, has)
	}
	if len(room) == 0 {
		return nil
	}
	return room
}

// noticeable is the share of a resource by which a node may fall short of its like without
// differing from the template: hosts of one kind differ by a little memory.
const noticeable = 0.01

// short reports whether a node which reports q has noticeably less than want.
func short(q, want resource.Quantity) bool {
	return want.AsApproximateFloat64()-q.AsApproximateFloat64() > noticeable*want.AsApproximateFloat64()
}

// agreed is the amount of a resource that new nodes will have, of what specimens report and
// the definition promises. The promise holds unless all differ from it in the same direction;
// the specimens that come nearest to it count then, and the least of these.
func agreed(reported []resource.Quantity, planned resource.Quantity, promised bool) resource.Quantity {
	slices.SortFunc(reported, func(a, b resource.Quantity) int { return a.Cmp(b) })
	least, most := reported[0], reported[len(reported)-1]
	best := planned
	switch {
	case !promised || short(most, planned):
		best = most
	case short(planned, least):
		return least
	}
	for _, q := range reported {
		if !short(q, best) && !short(best, q) {
			return q
		}
	}
	return best
}

// near is what a node reports of its processors or memory, but no less than half of what was planned
// and no more than twice as much: whatever a kubelet writes, it does not make its whole group useless,
// or a single new node enough for everybody.
func near(name corev1.ResourceName, q, planned resource.Quantity) resource.Quantity {
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory || planned.IsZero() {
		return q
	}
	least, most := *resource.NewQuantity(planned.Value()/2, planned.Format), planned.DeepCopy()
	if name == corev1.ResourceCPU {
		least = *resource.NewMilliQuantity(planned.MilliValue()/2, planned.Format)
	}
	most.Add(planned)
	switch {
	case q.Cmp(least) < 0:
		return least
	case q.Cmp(most) > 0:
		return most
	}
	return q
}

// driversOf are the volume drivers of these nodes by name, each with the least of their
// limits, but for those below half of what the middle one of them says. One that has not registered
// on a young node yet will, and one that tells no limit may do so beside others that do.
func driversOf(like []*cluster.Node, of map[string][]storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
	byName := map[string][]storagev1.CSINodeDriver{}
	for _, n := range like {
		for _, driver := range of[n.Name] {
			byName[driver.Name] = append(byName[driver.Name], driver)
		}
	}
	var drivers []storagev1.CSINodeDriver
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all := byName[name]
		if slices.ContainsFunc(all, limited) {
			all = slices.DeleteFunc(all, func(d storagev1.CSINodeDriver) bool { return !limited(d) })
		}
		slices.SortStableFunc(all, func(a, b storagev1.CSINodeDriver) int { return cmp.Compare(limit(a), limit(b)) })
		half := limit(all[len(all)/2]) / 2
		drivers = append(drivers, all[slices.IndexFunc(all, func(d storagev1.CSINodeDriver) bool { return limit(d) >= half })])
	}
	return drivers
}

func limited(d storagev1.CSINodeDriver) bool {
	return d.Allocatable != nil && d.Allocatable.Count != nil
}

// limit is how many volumes of a driver a node may have.
func limit(d storagev1.CSINodeDriver) int64 {
	if !limited(d) {
		return 1 << 32
	}
	return int64(*d.Allocatable.Count)
}

// richest are the devices of the node that reports most, in pools that are complete.
func richest(like []*cluster.Node) []*resourcev1.ResourceSlice {
	var best []*resourcev1.ResourceSlice
	most := 0
	for _, n := range like {
		pools := cluster.CompletePools(n.Slices)
		if many := devicesIn(pools); many > most {
			best, most = pools, many
		}
	}
	slices.SortFunc(best, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	return best
}

// devicesIn counts the devices of slices.
func devicesIn(list []*resourcev1.ResourceSlice) int {
	sum := 0
	for _, s := range list {
		sum += len(s.Spec.Devices)
	}
	return sum
}

// sameDevices reports whether slices list as many devices of the same drivers.
func sameDevices(a, b []*resourcev1.ResourceSlice) bool {
	return devicesIn(a) == devicesIn(b) && slices.Equal(cluster.DriversOfSlices(a), cluster.DriversOfSlices(b))
}
