package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// A device plugin starts when its node is Ready, and only then does the node report
// what it has of its resource: none before, or nothing at all. A node whose group
// promises such a resource is not there for the pods that it came for before it
// reports some. It is waited for as long as a node may take to start; after that the
// node is one without it.
//
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/

// byPlugin says that a resource is one that a device plugin reports.
func byPlugin(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// pluginsDue says that the device plugins of all these nodes have had their time.
func (d *decision) pluginsDue(like []*node) bool {
	return !slices.ContainsFunc(like, func(n *node) bool { return d.now.Before(d.dueUp(n)) })
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

// expected is a node as it will be once it is up.
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

// whyComing says what a node that is coming has yet to do.
func (n *node) whyComing() string {
	if !n.up() {
		return "it has registered and is not up yet"
	}
	var names []string
	for name := range n.awaitedDevices() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return fmt.Sprintf("it is Ready, and its device plugin has yet to report %s", listed(names))
}
