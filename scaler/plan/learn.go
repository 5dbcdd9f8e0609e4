package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// sampled is how many nodes of a group and zone its shape is learned from, the
// youngest: they are as the next one will be.
const sampled = 3

// learnShapes corrects what is thought of new nodes by the nodes that are there:
// those of the launch template version that the next one will have, that are up.
// It belongs between joining and looking.
func (d *decision) learnShapes(s fleet.Snapshot) {
	drivers := map[string][]storagev1.CSINodeDriver{}
	for _, n := range s.Storage.Nodes {
		drivers[n.Name] = n.Spec.Drivers
	}
	slicesOf := map[string][]*resourcev1.ResourceSlice{}
	for _, slice := range s.Devices.Slices {
		if name := slice.Spec.NodeName; name != nil {
			slicesOf[*name] = append(slicesOf[*name], slice)
		}
	}
	for _, g := range d.groups {
		known := g.specimens()
		for i := range g.Shapes {
			shape := &g.Shapes[i]
			shape.Taints = d.policy.lasting(shape.Taints)
			g.planned = append(g.planned, *shape)
			lesson := specimensFor(known, shape.Zone)
			if len(lesson) == 0 {
				continue
			}
			planned := *shape
			*shape = d.corrected(g, planned, lesson)
			shape.Drivers = driversOf(lesson, drivers)
			shape.Slices = richest(lesson, slicesOf)
			g.compare(planned, lesson, d)
		}
	}
	d.rememberMemory()
}

// specimens are the nodes of the present template that are up, the youngest
// first.
func (g *group) specimens() []*node {
	var list []*node
	for _, n := range g.nodes {
		if g.Template != "" && n.instance.Template == g.Template && n.instance.State == fleet.InService && n.up() {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b *node) int { return b.Created.Compare(a.Created) })
	return list
}

// specimensFor are those to learn a zone's shape from: those that are there, or
// else what they are like in other zones.
func specimensFor(all []*node, zone string) []*node {
	var there []*node
	for _, n := range all {
		if n.Zone() == zone && len(there) < sampled {
			there = append(there, n)
		}
	}
	if len(there) > 0 {
		return there
	}
	return all[:min(sampled, len(all))]
}

// corrected is the shape as the nodes are. In a mixed group the next node may be of
// another type than they, and so it promises no more than its definition does.
func (d *decision) corrected(g *group, s fleet.Shape, like []*node) fleet.Shape {
	pluginsDue := d.pluginsDue(like)
	s.Labels = d.learnedLabels(g, s, like)
	s.Taints = d.learnedTaints(g, s.Taints, like)
	s.Allocatable = g.learnedRoom(s.Allocatable, like, pluginsDue, func(n *node) corev1.ResourceList { return n.Allocatable })
	s.Capacity = g.learnedRoom(s.Capacity, like, pluginsDue, func(n *node) corev1.ResourceList { return n.Capacity })
	s.DeclaredFeatures = sharedFeatures(like)
	return s
}

// sharedFeatures are those that all these nodes declare.
func sharedFeatures(like []*node) []string {
	var features []string
	for _, f := range like[0].DeclaredFeatures {
		if !slices.ContainsFunc(like, func(n *node) bool { return !slices.Contains(n.DeclaredFeatures, f) }) {
			features = append(features, f)
		}
	}
	return features
}
