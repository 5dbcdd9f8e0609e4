package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

const (
	// sampled is how many nodes of a group and zone its shape is learned from, the
	// youngest: they are as the next one will be.
	sampled = 3
	// mostSeen bounds fleet.State.Seen. Images come and go by the week.
	mostSeen = 300
	// seenStep is to what seen memory is rounded down: hosts of one kind differ by
	// a few KiB, and that is not worth a write.
	seenStep = 1 << 20
)

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

// zonal labels are those of a zone; per-node ones are of no use for another node.
// Either kind is never learned from a node elsewhere.
var (
	zonalLabels = []string{
		corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, "topology.k8s.aws/zone-id", "topology.ebs.csi.aws.com/zone",
	}
	ownLabels  = []string{corev1.LabelHostname}
	typeLabels = []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType}
)

// networkLabels name the switches above a single instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-ec2-instance-topology-works.html
const networkLabels = "topology.k8s.aws/network-node-layer-"

// machineDomains are those, with all below them, of labels that kubelet, cloud and
// hardware daemons set on every node of a kind. In two corners of them people write.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
var (
	machineDomains = []string{"kubernetes.io", "k8s.io", "k8s.aws", "amazonaws.com", "csi.aws.com", "nvidia.com"}
	peoplesDomains = []string{"node-role.kubernetes.io", corev1.LabelNamespaceNodeRestriction}
)

// ofMachines says that a label is not one that people write on a single node.
func ofMachines(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	return domain != key && slices.ContainsFunc(machineDomains, within) && !slices.ContainsFunc(peoplesDomains, within)
}

// learnedLabels are those that all these nodes share, but for what people may have
// written on the only one.
func (d *decision) learnedLabels(g *group, s fleet.Shape, like []*node) map[string]string {
	labels := map[string]string{}
	for key, value := range like[0].Labels {
		if slices.Contains(ownLabels, key) || strings.HasPrefix(key, networkLabels) || slices.Contains(zonalLabels, key) && like[0].Zone() != s.Zone {
			continue
		}
		shared := !slices.ContainsFunc(like, func(n *node) bool { v, ok := n.Labels[key]; return !ok || v != value })
		if !shared || g.Mixed && slices.Contains(typeLabels, key) || d.peculiarLabel(g, s, like[0], key) {
			continue
		}
		labels[key] = value
	}
	for key, value := range s.Labels {
		if slices.Contains(zonalLabels, key) && like[0].Zone() != s.Zone || g.Mixed && slices.Contains(typeLabels, key) {
			labels[key] = value
		}
	}
	return labels
}

// peculiarLabel says that a label of a node is not planned, and may be people's word on
// this node alone.
func (d *decision) peculiarLabel(g *group, planned fleet.Shape, n *node, key string) bool {
	if _, promised := planned.Labels[key]; promised || ofMachines(key) {
		return false
	}
	return d.peculiar(g, n, func(o *node) bool { v, ok := o.Labels[key]; return ok && v == n.Labels[key] })
}

// peculiar says that people may have written something on a node alone, for
// maintenance perhaps: no other node of its group has it, and it is not certain that
// the node had it from its first minutes on.
func (d *decision) peculiar(g *group, n *node, has func(*node) bool) bool {
	if slices.ContainsFunc(g.nodes, func(o *node) bool { return o != n && has(o) }) {
		return false
	}
	settled := n.Created.Add(d.policy.MaxNodeStartupTime)
	d.clock.at(settled)
	return !d.now.Before(settled)
}

// learnedTaints are those that all these nodes have and that do not go by themselves.
// What people may have written on one is no reason not to bring another one.
func (d *decision) learnedTaints(g *group, planned []corev1.Taint, like []*node) []corev1.Taint {
	return slices.DeleteFunc(d.policy.lasting(sharedTaints(like)), func(t corev1.Taint) bool {
		return !hasTaint(planned, t) && d.peculiar(g, like[0], func(o *node) bool { return hasTaint(o.Taints, t) })
	})
}

// sharedTaints are those that all these nodes have.
func sharedTaints(like []*node) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range like[0].Taints {
		if !slices.ContainsFunc(like, func(n *node) bool { return !hasTaint(n.Taints, t) }) {
			taints = append(taints, t)
		}
	}
	return taints
}

func hasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) && o.Value == t.Value })
}

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
		room[name] = q
	}
	if len(room) == 0 {
		return nil
	}
	return room
}

// pluginsDue says that the device plugins of all these nodes have had their time.
func (d *decision) pluginsDue(like []*node) bool {
	return !slices.ContainsFunc(like, func(n *node) bool { return d.now.Before(d.dueUp(n)) })
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

// rememberMemory keeps the least memory that nodes of a type and image have been
// seen with, and of a type with whatever image, for groups that have none. Less
// replaces more, and an entry that somebody else made stays otherwise.
func (d *decision) rememberMemory() {
	used := map[string]bool{}
	for _, g := range d.groups {
		for _, s := range g.Shapes {
			used[fleet.SeenKey(s.InstanceType, s.Image)], used[fleet.SeenKey(s.InstanceType, "")] = true, true
		}
		for _, n := range g.nodes {
			q, known := n.Capacity[corev1.ResourceMemory]
			if !known || q.Value() < seenStep || n.instance.Type == "" || !n.up() {
				continue
			}
			seen := resource.NewQuantity(q.Value()/seenStep*seenStep, resource.BinarySI)
			for _, key := range []string{fleet.SeenKey(n.instance.Type, ""), fleet.SeenKey(n.instance.Type, g.imageOf(n))} {
				used[key] = true
				if known, ok := d.state.Seen[key]; !ok || seen.Cmp(known) < 0 {
					d.state.Seen[key] = *seen
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.state.Seen)) {
		if len(d.state.Seen) > mostSeen && !used[key] {
			delete(d.state.Seen, key)
		}
	}
}

// imageOf is the machine image of a node, where its template tells.
func (g *group) imageOf(n *node) string {
	if n.instance.Template == "" || n.instance.Template != g.Template {
		return ""
	}
	for _, s := range g.Shapes {
		if s.InstanceType == n.instance.Type {
			return s.Image
		}
	}
	return ""
}
