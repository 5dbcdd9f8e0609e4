package template

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/scaler/asg/userdata"
)

// Blueprint is all that a group's node templates are made of, but for what has been
// seen of its types.
type Blueprint struct {
	Zones     []string
	ScaleDown fleet.ScaleDownOptions
	Headroom  fleet.Headroom
	// Faults has a sentence for all that could not be found out, or sets nothing.
	Faults []string
	// Uncountable is true if the group's capacity is not counted in instances.
	Uncountable bool
	// Spot has the prices that EC2 reports, where it is asked; it is shared, and never changed.
	Spot prices.Spot

	region   string
	zoneIDs  map[string]string
	machines []machine // none where the node template cannot be known
	labels   map[string]string
	taints   []corev1.Taint
	extra    corev1.ResourceList
	launch   launch
	assume   Assumptions
}

// Known reports whether a new node is known well enough for a node template.
func (b Blueprint) Known() bool { return len(b.machines) > 0 }

// Version is that of the group's own launch template, as in fleet.Group; empty without one.
func (b Blueprint) Version() string { return b.launch.template.version }

// Purchases returns what may come; both may.
func (b Blueprint) Purchases() (spot, onDemand bool) { return b.launch.spot, b.launch.onDemand }

// add lays tags over what is there: they win.
func (b *Blueprint) add(tags tagged) {
	maps.Copy(b.labels, tags.labels)
	maps.Copy(b.extra, tags.resources)
	b.taints = mergeTaints(b.taints, tags.taints)
}

// readUserData takes over what the user data of the templates sets: labels that all
// of them give, and taints that any of them does.
func (b *Blueprint) readUserData() {
	for i, m := range b.machines {
		data := m.from.data
		if i == 0 {
			maps.Copy(b.labels, data.Labels)
		}
		maps.DeleteFunc(b.labels, func(name, value string) bool { other, ok := data.Labels[name]; return !ok || other != value })
		b.taints = mergeTaints(b.taints, data.Taints)
		faults := data.Faults
		if _, _, err := m.resources(); err != nil {
			faults = append(slices.Clone(faults), err.Error())
		}
		for _, f := range faults {
			if !slices.Contains(b.Faults, f) {
				b.Faults = append(b.Faults, f)
			}
		}
	}
}

// mergeTaints lets a later taint of the same key and effect win.
func mergeTaints(first, later []corev1.Taint) []corev1.Taint {
	out := slices.Clone(first)
	for _, t := range later {
		out = slices.DeleteFunc(out, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
		out = append(out, t)
	}
	slices.SortFunc(out, compareTaints)
	return out
}

// Types are those that may come.
func (b Blueprint) Types() []string {
	names := make([]string, 0, len(b.launch.offers))
	for _, o := range b.launch.offers {
		names = append(names, o.name)
	}
	return names
}

// mostPrice is that of the dearest that may come to a zone, as the resources are those of the
// smallest: whatever comes has no less and costs no more. It is 0 if one of them
// has none that is known.
func (b Blueprint) mostPrice(zone string) float64 {
	most := 0.0
	for _, o := range b.launch.offers {
		one := b.assume.Prices.Of(b.region, o.name)
		if !b.launch.onDemand {
			one = b.spotPrice(zone, o.name)
		}
		if one == 0 {
			return 0
		}
		most = max(most, one)
	}
	return most
}

func (b Blueprint) spotPrice(zone, instanceType string) float64 {
	price, _ := b.assume.Prices.OfSpot(b.Spot, b.region, prices.Offer{Zone: zone, Type: instanceType}, b.assume.SpotFactor)
	return price
}

// PriceOf is what an instance of the type costs in the zone in an hour. It is 0 where that is not
// known: nobody says of an instance whether it is spot where both may come.
func (b Blueprint) PriceOf(zone, instanceType string) float64 {
	switch spot, onDemand := b.Purchases(); {
	case spot == onDemand:
		return 0
	case spot:
		return b.spotPrice(zone, instanceType)
	}
	return b.assume.Prices.Of(b.region, instanceType)
}

// NodeTemplates draws one node template for each zone. seen is the memory that nodes were seen to
// report, by fleet.SeenKey.
func (b Blueprint) NodeTemplates(seen map[string]resource.Quantity) []fleet.NodeTemplate {
	if !b.Known() {
		return nil
	}
	capacity, largest, usable := b.resources(seen)
	shapes := make([]fleet.NodeTemplate, 0, len(b.Zones))
	for _, zone := range b.Zones {
		shapes = append(shapes, fleet.NodeTemplate{
			Zone: zone, InstanceType: b.instanceType(), Image: b.image(), PricePerHour: b.mostPrice(zone),
			Capacity: capacity, Largest: largest, Allocatable: usable, Labels: b.nodeLabels(zone), Taints: b.taints,
		})
	}
	return shapes
}

// instanceType is empty where several may come.
func (b Blueprint) instanceType() string {
	return same(b.machines, func(m machine) string { return m.name })
}

// image is empty where several may come.
func (b Blueprint) image() string {
	return same(b.machines, func(m machine) string { return m.from.image })
}

// same is what all have in common; empty if nothing.
func same(machines []machine, of func(machine) string) string {
	for _, m := range machines {
		if of(m) != of(machines[0]) {
			return ""
		}
	}
	return of(machines[0])
}

// resources takes the least of each resource over all machines: whatever comes
// has that much. A resource that one of them lacks counts for nothing. largest is the
// most cpu and memory that may come, if that is more.
func (b Blueprint) resources(seen map[string]resource.Quantity) (capacity, largest, usable corev1.ResourceList) {
	cpu, memory := resource.Quantity{}, resource.Quantity{}
	for _, m := range b.machines {
		m.seen = memorySeen(seen, m.name, m.from.image)
		c, u, _ := m.resources() // the error is a fault of the blueprint already
		capacity, usable = least(capacity, c), least(usable, u)
		cpu, memory = greater(cpu, *c.Cpu()), greater(memory, *c.Memory())
	}
	if cpu.Cmp(*capacity.Cpu()) > 0 || memory.Cmp(*capacity.Memory()) > 0 {
		largest = corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
	}
	for name, quantity := range b.extra {
		capacity[name], usable[name] = quantity, quantity
	}
	return capacity, largest, usable
}

func greater(a, b resource.Quantity) resource.Quantity {
	if b.Cmp(a) > 0 {
		return b
	}
	return a
}

// memorySeen prefers nodes of the same image; another image keeps a few MiB more or
// less.
func memorySeen(seen map[string]resource.Quantity, instanceType, image string) *resource.Quantity {
	for _, key := range []string{fleet.SeenKey(instanceType, image), fleet.SeenKey(instanceType, "")} {
		if q, ok := seen[key]; ok {
			return &q
		}
	}
	return nil
}

func least(a, b corev1.ResourceList) corev1.ResourceList {
	if a == nil {
		return b
	}
	out := corev1.ResourceList{}
	for name, qa := range a {
		qb, ok := b[name]
		if !ok {
			continue
		}
		if qb.Cmp(qa) < 0 {
			qa = qb
		}
		out[name] = qa
	}
	return out
}

// Labels that the kubelet and the cloud controllers put on every node, with
// those that are deprecated and still written.
// https://kubernetes.io/docs/reference/labels-annotations-taints/
const (
	labelOSBeta = "beta.kubernetes.io/os"
	// labelZoneID is the cloud controller's; its value means the same zone in every
	// account.
	// https://github.com/kubernetes/cloud-provider-aws/blob/master/docs/zone_topology.md
	labelZoneID = "topology.k8s.aws/zone-id"
	// labelEBSZone is that of the EBS CSI driver: its volumes ask for it.
	// https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
	labelEBSZone = "topology.ebs.csi.aws.com/zone"
)

// nodeLabels leaves the hostname out: each new node has one of its own.
func (b Blueprint) nodeLabels(zone string) map[string]string {
	system := b.system()
	labels := map[string]string{
		corev1.LabelOSStable:                system,
		labelOSBeta:                         system,
		corev1.LabelTopologyZone:            zone,
		corev1.LabelTopologyRegion:          b.region,
		corev1.LabelFailureDomainBetaZone:   zone,
		corev1.LabelFailureDomainBetaRegion: b.region,
		labelEBSZone:                        zone,
	}
	if id := b.zoneIDs[zone]; id != "" {
		labels[labelZoneID] = id
	}
	if arch := same(b.machines, func(m machine) string { return m.arch }); arch != "" {
		labels[corev1.LabelArchStable], labels[contract.LabelArchBeta] = arch, arch
	}
	if name := b.instanceType(); name != "" {
		labels[corev1.LabelInstanceTypeStable], labels[corev1.LabelInstanceType] = name, name
	}
	maps.Copy(labels, b.labels)
	return labels
}

// system is the operating system, which user data gives away.
func (b Blueprint) system() string {
	if b.machines[0].from.data.Family == userdata.Windows {
		return string(corev1.Windows)
	}
	return string(corev1.Linux)
}
