package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
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

// ByPlugin reports whether a resource is one that a device plugin reports.
func ByPlugin(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// Labels come late as well: the cloud controller writes those of the zone and of the instance type
// a moment after the node has registered, and others write theirs when they have started.
//
// https://kubernetes.io/docs/concepts/architecture/cloud-controller/#node-controller

// promised is the present node template that the node came of; nil where that is not known.
func (n *Node) promised() *fleet.NodeTemplate {
	if n.Group == nil || n.Instance.Template != n.Group.Template {
		return nil
	}
	return n.Group.templateIn(n.InstanceZone())
}

// awaitedDevices are what the device plugins of a node should report, as its node template promises
// it, and do not.
func (n *Node) awaitedDevices() corev1.ResourceList {
	shape := n.promised()
	if shape == nil {
		return nil
	}
	var missing corev1.ResourceList
	for name, want := range shape.Allocatable {
		if has := n.Allocatable[name]; !ByPlugin(name) || want.IsZero() || !has.IsZero() {
			continue
		}
		if missing == nil {
			missing = corev1.ResourceList{}
		}
		missing[name] = want
	}
	return missing
}

// templateIn is the node template of a zone, or that of any zone where that is none of the group's;
// nil without any.
func (g *Group) templateIn(zone string) *fleet.NodeTemplate {
	if len(g.NodeTemplates) == 0 {
		return nil
	}
	return &g.NodeTemplates[max(0, slices.IndexFunc(g.NodeTemplates, func(s fleet.NodeTemplate) bool { return s.Zone == zone }))]
}

// awaitedDrivers are those of dynamic resource allocation whose devices new nodes of its
// group have, by name, and of which the node has no complete pool yet.
func (n *Node) awaitedDrivers() []string {
	shape := n.promised()
	if shape == nil || len(shape.Slices) == 0 {
		return nil
	}
	drivers := DriversOfSlices(shape.Slices)
	there := DriversOfSlices(CompletePools(n.Slices))
	return slices.DeleteFunc(drivers, func(name string) bool { return slices.Contains(there, name) })
}

// DevicePool names a pool of devices: its name is one of its driver.
type DevicePool struct{ driver, name string }

func PoolOf(s *resourcev1.ResourceSlice) DevicePool {
	return DevicePool{s.Spec.Driver, s.Spec.Pool.Name}
}

// takeDevices gives every node the slices that are its own, and counts what claims hold.
func (d *Cluster) takeDevices(all fleet.Devices) {
	if len(all.Slices) == 0 {
		return
	}
	for _, s := range all.Slices {
		if name := s.Spec.NodeName; name != nil {
			if n := d.Node(*name); n != nil {
				n.Slices = append(n.Slices, s)
			}
		}
	}
	d.Allocated = map[DevicePool]int64{}
	type device struct {
		pool DevicePool
		name string
	}
	seen := map[device]bool{} // several claims may share one
	for _, c := range all.Claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			x := device{DevicePool{r.Driver, r.Pool}, r.Device}
			if seen[x] || r.AdminAccess != nil && *r.AdminAccess { // admin access uses no device
				continue
			}
			seen[x] = true
			d.Allocated[x.pool]++
		}
	}
}

// DriversOfSlices are the drivers that slices are of, by name.
func DriversOfSlices(list []*resourcev1.ResourceSlice) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Spec.Driver)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CompletePools are the slices of pools of which all are there, of the newest generation.
// https://pkg.go.dev/k8s.io/api/resource/v1#ResourcePool
func CompletePools(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	newest, count := map[DevicePool]int64{}, map[DevicePool]int64{}
	for _, s := range list {
		newest[PoolOf(s)] = max(newest[PoolOf(s)], s.Spec.Pool.Generation)
	}
	current := slices.DeleteFunc(slices.Clone(list), func(s *resourcev1.ResourceSlice) bool { return s.Spec.Pool.Generation < newest[PoolOf(s)] })
	for _, s := range current {
		count[PoolOf(s)]++
	}
	return slices.DeleteFunc(current, func(s *resourcev1.ResourceSlice) bool { return count[PoolOf(s)] < s.Spec.Pool.ResourceSliceCount })
}

// Expected is a node as it will be once it is up, but for devices; see ExpectedDevices.
func (n *Node) Expected() *fleet.Node {
	if n.Stage != Upcoming {
		return n.Node
	}
	labels, devices := n.awaitedLabels(), n.awaitedDevices()
	if len(labels) == 0 && len(devices) == 0 {
		return n.Node
	}
	soon := *n.Node
	soon.Labels, soon.Allocatable = with(n.Labels, labels), with(n.Allocatable, devices)
	return &soon
}

// awaitedLabels are those that the node template of a node promises and that it has not got yet; none
// where it is of another zone, or its zone is not known and templates of several are there.
func (n *Node) awaitedLabels() map[string]string {
	shape := n.promised()
	if shape == nil {
		return nil
	}
	zone := n.InstanceZone()
	known := shape.Zone != "" && zone != "" || len(n.Group.NodeTemplates) > 1
	if known && shape.Zone != zone {
		return nil
	}
	var missing map[string]string
	if shape.Zone != "" && n.Zone() == "" {
		missing = map[string]string{corev1.LabelTopologyZone: shape.Zone}
	}
	for key, value := range shape.Labels {
		if _, has := n.Labels[key]; has {
			continue
		}
		if missing == nil {
			missing = map[string]string{}
		}
		missing[key] = value
	}
	return missing
}

// with is a map with the entries of another.
func with[M ~map[K]V, K comparable, V any](m, more M) M {
	both := make(M, len(m)+len(more))
	maps.Copy(both, m)
	maps.Copy(both, more)
	return both
}

// ExpectedDevices are those that a node will have once it is up beside its own.
func (n *Node) ExpectedDevices() []*resourcev1.ResourceSlice {
	if n.Stage != Upcoming {
		return nil
	}
	awaited := n.awaitedDrivers()
	if len(awaited) == 0 {
		return nil
	}
	var list []*resourcev1.ResourceSlice
	for _, s := range n.promised().Slices {
		if slices.Contains(awaited, s.Spec.Driver) {
			list = append(list, s)
		}
	}
	return list
}

// WhyUpcoming says what an upcoming node has yet to do.
func (n *Node) WhyUpcoming() verdict.Details {
	if !n.Up() {
		return verdict.Say("it has registered and is still starting")
	}
	var names []string
	for name := range n.awaitedDevices() {
		names = append(names, string(name))
	}
	if len(names) > 0 {
		slices.Sort(names)
		return verdict.Say("it is Ready, and its device plugin has yet to report {resources}", verdict.Resources(names))
	}
	return verdict.Say("it is Ready, and has yet to publish its ResourceSlices of {drivers}", verdict.Drivers(n.awaitedDrivers()))
}
