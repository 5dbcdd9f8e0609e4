package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// A device plugin starts when its node is Ready, and only then does the node report
// what it has of its resource: none before, or nothing at all. A node whose group
// promises such a resource is not there for the pods that it came for before it
// reports some. It is waited for as long as a node may take to start; after that the
// node is one without it.
//
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/

// A driver of dynamic resource allocation does the same with ResourceSlices, a pool of
// which may be several: it is complete when all that the newest of them speaks of are there.
//
// https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/

// byPlugin says that a resource is one that a device plugin reports.
func byPlugin(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// awaitedDevices are what the device plugins of a node should report, as the present
// shape of its group promises it, and do not.
func (n *node) awaitedDevices() corev1.ResourceList {
	if n.group == nil || n.instance.Template != n.group.Template {
		return nil
	}
	shape := n.group.shapeIn(n.Zone())
	if shape == nil {
		return nil
	}
	var missing corev1.ResourceList
	for name, want := range shape.Allocatable {
		if has := n.Allocatable[name]; !byPlugin(name) || want.IsZero() || !has.IsZero() {
			continue
		}
		if missing == nil {
			missing = corev1.ResourceList{}
		}
		missing[name] = want
	}
	return missing
}

// shapeIn is what new nodes of a zone look like, or those of any zone where that is
// none of the group's; nil without any.
func (g *group) shapeIn(zone string) *fleet.Shape {
	if len(g.Shapes) == 0 {
		return nil
	}
	return &g.Shapes[max(0, slices.IndexFunc(g.Shapes, func(s fleet.Shape) bool { return s.Zone == zone }))]
}

// awaitedDrivers are those of dynamic resource allocation whose devices new nodes of its
// group have, by name, and of which the node has no complete pool yet.
func (n *node) awaitedDrivers() []string {
	if n.group == nil || n.instance.Template != n.group.Template {
		return nil
	}
	shape := n.group.shapeIn(n.Zone())
	if shape == nil || len(shape.Slices) == 0 {
		return nil
	}
	drivers := driversOfSlices(shape.Slices)
	there := driversOfSlices(completePools(n.slices))
	return slices.DeleteFunc(drivers, func(name string) bool { return slices.Contains(there, name) })
}

// devicePool names a pool of devices: its name is one of its driver.
type devicePool struct{ driver, name string }

func poolOf(s *resourcev1.ResourceSlice) devicePool {
	return devicePool{s.Spec.Driver, s.Spec.Pool.Name}
}

// takeDevices gives every node the slices that are its own, and counts what claims hold.
func (d *decision) takeDevices(all fleet.Devices) {
	if len(all.Slices) == 0 {
		return
	}
	for _, s := range all.Slices {
		if name := s.Spec.NodeName; name != nil {
			if n := d.node(*name); n != nil {
				n.slices = append(n.slices, s)
			}
		}
	}
	d.allocated = map[devicePool]int64{}
	type device struct {
		pool devicePool
		name string
	}
	seen := map[device]bool{} // several claims may share one
	for _, c := range all.Claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			x := device{devicePool{r.Driver, r.Pool}, r.Device}
			if seen[x] || r.AdminAccess != nil && *r.AdminAccess { // who looks after devices uses none
				continue
			}
			seen[x] = true
			d.allocated[x.pool]++
		}
	}
}

// driversOfSlices are the drivers that slices are of, by name.
func driversOfSlices(list []*resourcev1.ResourceSlice) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Spec.Driver)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completePools are the slices of pools of which all are there, of the newest generation.
// https://pkg.go.dev/k8s.io/api/resource/v1#ResourcePool
func completePools(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	newest, count := map[devicePool]int64{}, map[devicePool]int64{}
	for _, s := range list {
		newest[poolOf(s)] = max(newest[poolOf(s)], s.Spec.Pool.Generation)
	}
	current := slices.DeleteFunc(slices.Clone(list), func(s *resourcev1.ResourceSlice) bool { return s.Spec.Pool.Generation < newest[poolOf(s)] })
	for _, s := range current {
		count[poolOf(s)]++
	}
	return slices.DeleteFunc(current, func(s *resourcev1.ResourceSlice) bool { return count[poolOf(s)] < s.Spec.Pool.ResourceSliceCount })
}

// expected is a node as it will be once it is up, but for devices; see expectedDevices.
func (n *node) expected() *fleet.Node {
	if n.stage != coming {
		return n.Node
	}
	missing := n.awaitedDevices()
	if len(missing) == 0 {
		return n.Node
	}
	soon := *n.Node
	soon.Allocatable = maps.Clone(n.Allocatable)
	if soon.Allocatable == nil {
		soon.Allocatable = corev1.ResourceList{}
	}
	maps.Copy(soon.Allocatable, missing)
	return &soon
}

// expectedDevices are those that a node will have once it is up beside its own.
func (n *node) expectedDevices() []*resourcev1.ResourceSlice {
	if n.stage != coming {
		return nil
	}
	awaited := n.awaitedDrivers()
	if len(awaited) == 0 {
		return nil
	}
	var list []*resourcev1.ResourceSlice
	for _, s := range n.group.shapeIn(n.Zone()).Slices {
		if slices.Contains(awaited, s.Spec.Driver) {
			list = append(list, s)
		}
	}
	return list
}

// whyComing says what a node that is coming has yet to do.
func (n *node) whyComing() string {
	if !n.up() {
		return "it has registered and is not up yet"
	}
	var names []string
	for name := range n.awaitedDevices() {
		names = append(names, string(name))
	}
	if len(names) > 0 {
		slices.Sort(names)
		return fmt.Sprintf("it is Ready, and its device plugin has yet to report %s", listed(names))
	}
	return fmt.Sprintf("it is Ready, and has yet to publish its ResourceSlices of %s", listed(n.awaitedDrivers()))
}
