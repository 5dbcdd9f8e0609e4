package template

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// sampled is how many nodes of a group and zone its node template is learned from, the youngest:
// they are as the next one will be. What the definition promises holds unless all of them differ
// from it in the same way: one that differs from the template does not stop its group.
const sampled = 3

// learnTemplates corrects the node templates by the nodes that are there: those of the launch
// template version that the next one will have, that are up. Where there are none, what the last
// ones taught holds. It runs after nodes have joined their groups and before the templates are
// used.
func (d *Templates) learnTemplates(s fleet.Snapshot) {
	t := teaching{Templates: d, drivers: map[string][]storagev1.CSINodeDriver{}}
	for _, n := range s.Storage.Nodes {
		t.drivers[n.Name] = n.Spec.Drivers
	}
	for _, g := range d.Groups {
		known := specimens(g)
		if len(g.NodeTemplates) == 0 {
			t.standIn(g, known)
			continue
		}
		for i := range g.NodeTemplates {
			shape := &g.NodeTemplates[i]
			shape.Taints = d.Policy.Lasting(shape.Taints)
			g.Planned = append(g.Planned, *shape)
		}
		if len(known) == 0 {
			d.recall(g)
			continue
		}
		t.elders = d.settledOf(known)
		for i, planned := range g.Planned {
			like := specimensFor(known, planned.Zone)
			g.NodeTemplates[i] = t.corrected(g, planned, like, known)
			compare(g, planned, g.NodeTemplates[i], like, d)
		}
		d.remember(g, known)
	}
	d.forgetLessons()
	d.rememberMemory()
}

// teaching is the templates with what nodes say of their volume drivers, by node name, and the
// specimens of the group at hand that had their time.
type teaching struct {
	*Templates
	drivers map[string][]storagev1.CSINodeDriver
	elders  []*cluster.Node
}

// specimens are the nodes of the present template that are up, the youngest
// first. Where no template is known any node of the group is one, if its definition says
// nothing else either.
func specimens(g *cluster.Group) []*cluster.Node {
	list := make([]*cluster.Node, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		alike := g.Template != "" && n.Instance.Template == g.Template || g.Template == "" && len(g.NodeTemplates) == 0
		if alike && n.Instance.State == fleet.InService && n.Up() {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b *cluster.Node) int { return b.Created.Compare(a.Created) })
	return list
}

// specimensFor are those to learn a zone's node template from: those that are there, or else those
// of other zones.
func specimensFor(all []*cluster.Node, zone string) []*cluster.Node {
	var there []*cluster.Node
	for _, n := range all {
		if len(there) == sampled {
			break
		}
		if n.Zone() == zone {
			there = append(there, n)
		}
	}
	if len(there) > 0 {
		return there
	}
	return all[:min(sampled, len(all))]
}

// standIn takes the nodes of a group as its definition, where that cannot be read.
func (t teaching) standIn(g *cluster.Group, known []*cluster.Node) {
	if len(known) == 0 || g.Uncountable {
		return
	}
	t.elders = t.settledOf(known)
	for _, zone := range g.Zones {
		like := specimensFor(known, zone)
		// What these say of their own zone holds for this one, too.
		defined := fleet.NodeTemplate{Zone: zone, InstanceType: like[0].Instance.Type, Labels: map[string]string{}}
		for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, driversLabel} {
			if value, ok := like[0].Labels[key]; ok {
				defined.Labels[key] = cmp.Or(zone, value) // which zone is not known of an external group
			}
		}
		g.Planned = append(g.Planned, defined)
		g.NodeTemplates = append(g.NodeTemplates, t.corrected(g, defined, like, known))
	}
	g.Note(verdict.Say("its node template is taken from node {node}", verdict.Node(known[0].Name)))
}

// corrected is the node template as the nodes are. In a mixed group the next node may be of
// another type than they, and so it promises no more than its definition does.
func (t teaching) corrected(g *cluster.Group, s fleet.NodeTemplate, like, known []*cluster.Node) fleet.NodeTemplate {
	s.Labels = t.learnedLabels(g, s, like, t.elders)
	s.Taints = t.learnedTaints(g, s.Taints, like)
	s.Allocatable = t.learnedRoom(g, s.Allocatable, like, func(n *cluster.Node) corev1.ResourceList { return n.Allocatable })
	s.Capacity = t.learnedRoom(g, s.Capacity, like, func(n *cluster.Node) corev1.ResourceList { return n.Capacity })
	s.DeclaredFeatures = declaredFeatures(like)
	s.Drivers = driversOf(like, t.drivers)
	s.Slices = t.learnedDevices(g, like, known)
	return s
}

// declaredFeatures are those that one of these nodes declares, by name: another may be of an
// older version.
func declaredFeatures(like []*cluster.Node) []string {
	var features []string
	for _, n := range like {
		features = append(features, n.DeclaredFeatures...)
	}
	slices.Sort(features)
	return slices.Compact(features)
}

// learnedDevices are those that new nodes will report. A driver may take a while on young nodes:
// older ones know until then, or those that taught a lesson.
func (d *Templates) learnedDevices(g *cluster.Group, like, known []*cluster.Node) []*resourcev1.ResourceSlice {
	devices := richest(like)
	if len(devices) > 0 || len(d.settledOf(like)) > 0 {
		return devices
	}
	if devices = richest(known); len(devices) > 0 {
		return devices
	}
	if lesson := d.State.Lessons[g.Name]; lesson.Of == d.defined(g) {
		return lesson.Template.Slices
	}
	return nil
}
