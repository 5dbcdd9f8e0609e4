package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"

	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

// blueprint is all that a group's shapes are made of, but for what has been
// seen of its types.
type blueprint struct {
	region  string
	zones   []string
	types   []typeInfo // none where the shape cannot be known
	volume  int64
	labels  map[string]string
	taints  []corev1.Taint
	extra   corev1.ResourceList
	options fleet.ScaleDownOptions
	faults  []string
}

// blueprint asks for all of it. What fails becomes a fault; err is the first
// failure that may pass, so that it is worth asking again soon.
func (r *Reader) blueprint(ctx context.Context, g *astypes.AutoScalingGroup) (blueprint, error) {
	tags := readTags(g.Tags)
	b := blueprint{
		region: r.account.Region, zones: slices.Sorted(slices.Values(g.AvailabilityZones)),
		labels: map[string]string{}, extra: tags.resources, options: tags.options, faults: tags.faults,
	}
	var failed error
	fault := func(err error) {
		b.faults = append(b.faults, err.Error())
		if failed == nil {
			failed = err
		}
	}

	l, err := r.launches.of(ctx, g)
	if err == nil {
		b.volume = l.volume
		b.types, err = r.types.get(ctx, l.types)
	}
	if err != nil {
		fault(fmt.Errorf("what a new node looks like is not known: %w", err))
	}
	if tags.nodegroup != "" && tags.cluster != "" {
		n, err := r.nodegroups.get(ctx, tags.cluster, tags.nodegroup)
		if err != nil {
			fault(err)
		}
		maps.Copy(b.labels, n.labels)
		b.taints = append(b.taints, n.taints...)
	}
	maps.Copy(b.labels, tags.labels)
	b.taints = mergeTaints(b.taints, tags.taints)
	return b, failed
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

// shapes draws one shape for each zone. seen is the memory that nodes of a type
// were seen to report.
func (b blueprint) shapes(seen map[string]resource.Quantity) []fleet.Shape {
	if len(b.types) == 0 {
		return nil
	}
	capacity, usable := b.resources(seen)
	shapes := make([]fleet.Shape, 0, len(b.zones))
	for _, zone := range b.zones {
		shape := fleet.Shape{Zone: zone, Capacity: capacity, Allocatable: usable, Labels: b.nodeLabels(zone), Taints: b.taints}
		if len(b.types) == 1 {
			shape.InstanceType = b.types[0].name
		}
		shapes = append(shapes, shape)
	}
	return shapes
}

// resources takes the least of each resource over all types: whatever comes
// has that much. A resource that one of them lacks counts for nothing.
func (b blueprint) resources(seen map[string]resource.Quantity) (capacity, usable corev1.ResourceList) {
	for _, t := range b.types {
		var memory *resource.Quantity
		if q, ok := seen[t.name]; ok {
			memory = &q
		}
		c := t.capacity(b.volume, memory)
		capacity, usable = least(capacity, c), least(usable, allocatable(c))
	}
	for name, quantity := range b.extra {
		capacity[name], usable[name] = quantity, quantity
	}
	return capacity, usable
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
	labelArchBeta   = "beta.kubernetes.io/arch"
	labelOSBeta     = "beta.kubernetes.io/os"
	operatingSystem = "linux"
)

// nodeLabels leaves the hostname out: each new node has one of its own.
func (b blueprint) nodeLabels(zone string) map[string]string {
	labels := map[string]string{
		corev1.LabelOSStable:                operatingSystem,
		labelOSBeta:                         operatingSystem,
		corev1.LabelTopologyZone:            zone,
		corev1.LabelTopologyRegion:          b.region,
		corev1.LabelFailureDomainBetaZone:   zone,
		corev1.LabelFailureDomainBetaRegion: b.region,
	}
	if arch, ok := b.arch(); ok {
		labels[corev1.LabelArchStable], labels[labelArchBeta] = arch, arch
	}
	if len(b.types) == 1 {
		labels[corev1.LabelInstanceTypeStable], labels[corev1.LabelInstanceType] = b.types[0].name, b.types[0].name
	}
	maps.Copy(labels, b.labels)
	return labels
}

// arch is known if all types have the same.
func (b blueprint) arch() (string, bool) {
	for _, t := range b.types[1:] {
		if t.arch != b.types[0].arch {
			return "", false
		}
	}
	return b.types[0].arch, true
}
