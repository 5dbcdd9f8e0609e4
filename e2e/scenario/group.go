package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
)

// groupDraft is a group while its line is read: its shapes depend on several
// words and are made at the end.
type groupDraft struct {
	*fleet.Group
	kind      string
	shape     fleet.NodeTemplate // without its zone
	resources corev1.ResourceList
	shapeless bool
}

// group NAME: min=0 max=10 desired=0 zones=a type=m5.large. hook and launchhook are
// as in hooks.go; failed is time/cause[/zone].
func group(w *World, l line) error {
	g := w.group(l.name)
	if g == nil {
		w.Groups = append(w.Groups, fleet.Group{Name: l.name, Max: 10, Zones: []string{"a"}})
		g = w.group(l.name)
	}
	d := groupDraft{Group: g, kind: "m5.large", resources: corev1.ResourceList{}}
	if len(g.NodeTemplates) > 0 {
		d.shape = g.NodeTemplates[0]
		d.kind = d.shape.InstanceType
	}
	if err := groupWords.apply(&d, l.words); err != nil {
		return err
	}
	return d.finish()
}

var groupWords = table[groupDraft]{
	"min":      setter(integer, func(d *groupDraft, n int) { d.Min = n }),
	"max":      setter(integer, func(d *groupDraft, n int) { d.Max = n }),
	"desired":  setter(integer, func(d *groupDraft, n int) { d.Desired = n }),
	"zones":    setter(text, func(d *groupDraft, v string) { d.Zones = list(v) }),
	"type":     setter(text, func(d *groupDraft, v string) { d.kind = v }),
	"cpu":      setter(quantity, func(d *groupDraft, q resource.Quantity) { d.resources[corev1.ResourceCPU] = q }),
	"mem":      setter(quantity, func(d *groupDraft, q resource.Quantity) { d.resources[corev1.ResourceMemory] = q }),
	"pods":     setter(quantity, func(d *groupDraft, q resource.Quantity) { d.resources[corev1.ResourcePods] = q }),
	"gpu":      setter(quantity, func(d *groupDraft, q resource.Quantity) { d.resources[gpu] = q }),
	"labels":   setter(pairs, func(d *groupDraft, m map[string]string) { d.shape.Labels = m }),
	"taints":   setter(taints, func(d *groupDraft, t []corev1.Taint) { d.shape.Taints = t }),
	"template": setter(text, func(d *groupDraft, v string) { d.Template = v }),
	"image":    setter(text, func(d *groupDraft, v string) { d.shape.Image = v }),
	// largest is cpu/memory of the largest node that may come.
	"largest":   setter(largest, func(d *groupDraft, l corev1.ResourceList) { d.shape.Largest = l }),
	"mixed":     func(d *groupDraft, _ string) error { d.Mixed = true; return nil },
	"spot":      func(d *groupDraft, _ string) error { d.Spot = true; return nil },
	"shapeless": func(d *groupDraft, _ string) error { d.shapeless = true; return nil },
	// uncountable: its capacity is not counted in instances.
	"uncountable": func(d *groupDraft, _ string) error { d.Uncountable = true; return nil },
	"steered":     func(d *groupDraft, _ string) error { d.Synchronous = true; return nil },
	"price":       setter(share, func(d *groupDraft, f float64) { d.shape.PricePerHour = f }), // dollars an hour
	"pool":        func(d *groupDraft, _ string) error { d.WarmPool = &fleet.WarmPool{State: "Stopped"}; return nil },
	"refreshed": func(d *groupDraft, _ string) error {
		d.Refresh = &fleet.Refresh{ID: "r-1", Status: "InProgress"}
		return nil
	},
	"unrefreshed": func(d *groupDraft, _ string) error { d.Refresh = nil; return nil }, // it is over
	// replaced is cause, or cause/time of its end.
	"replaced": setter(replacement, func(d *groupDraft, r *fleet.Replacement) { d.Replacement = r }),
	"headroom": setter(fleet.ParseHeadroom, func(d *groupDraft, h fleet.Headroom) { d.Headroom = h }),
	// external: of a provider of one's own; held: which contradicts itself.
	"external":   func(d *groupDraft, _ string) error { d.External = true; return nil },
	"held":       setter(text, func(d *groupDraft, v string) { d.Held = v }),
	"unread":     func(d *groupDraft, _ string) error { d.Unread = true; return nil },
	"owner":      setter(text, func(d *groupDraft, v string) { d.Owner = types.UID(v) }),
	"observed":   func(d *groupDraft, _ string) error { d.Observed = true; return nil },
	"unobserved": func(d *groupDraft, _ string) error { d.Observed = false; return nil }, // no more
	"suspended":  setter(text, func(d *groupDraft, v string) { d.Suspended = list(v) }),
	"fault":      setter(text, func(d *groupDraft, v string) { d.Faults = append(d.Faults, v) }),
	"faultless":  func(d *groupDraft, _ string) error { d.Faults = nil; return nil },
	"hook": setter(hook, func(d *groupDraft, h fleet.Hook) {
		d.Hooks, d.HooksUnknown = append(d.Hooks, h), false
	}),
	"launchhook": setter(hook, func(d *groupDraft, h fleet.Hook) {
		h.Transition = fleet.OnLaunch
		d.Hooks, d.HooksUnknown = append(d.Hooks, h), false
	}),
	// unhooked: they were not read yet, or could not be for that reason.
	"unhooked":         func(d *groupDraft, v string) error { d.HooksUnknown, d.HooksFault = true, v; return nil },
	"failed":           setter(failure, func(d *groupDraft, f fleet.Failure) { d.Failures = append(d.Failures, f) }),
	"threshold":        setter(share, func(d *groupDraft, f float64) { d.ScaleDown.UtilizationThreshold = &f }),
	"gputhreshold":     setter(share, func(d *groupDraft, f float64) { d.ScaleDown.GPUUtilizationThreshold = &f }),
	"ignoredaemonsets": setter(strconv.ParseBool, func(d *groupDraft, b bool) { d.ScaleDown.IgnoreDaemonSets = &b }),
	"provisiontime": setter(duration, func(d *groupDraft, t time.Duration) {
		d.ScaleDown.MaxNodeProvisionTime = &metav1.Duration{Duration: t}
	}),
	"unreadytime": setter(duration, func(d *groupDraft, t time.Duration) {
		d.ScaleDown.UnreadyTime = &metav1.Duration{Duration: t}
	}),
	"unneeded": setter(duration, func(d *groupDraft, t time.Duration) {
		d.ScaleDown.UnneededTime = &metav1.Duration{Duration: t}
	}),
}

// finish gives the group its shapes, one a zone.
func (d *groupDraft) finish() error {
	d.NodeTemplates = nil
	if d.shapeless {
		return nil
	}
	room := d.shape.Allocatable
	if d.kind != d.shape.InstanceType || room == nil {
		known, ok := instanceTypes[d.kind]
		if !ok {
			return fmt.Errorf("unknown instance type %q: want one of %s", d.kind, strings.Join(slices.Sorted(maps.Keys(instanceTypes)), ", "))
		}
		room = known
	}
	room = maps.Clone(room)
	maps.Copy(room, d.resources)
	for _, zone := range d.Zones {
		d.NodeTemplates = append(d.NodeTemplates, fleet.NodeTemplate{
			Zone: zone, InstanceType: d.kind, Allocatable: room, Largest: d.shape.Largest, Labels: d.shape.Labels, Taints: d.shape.Taints, PricePerHour: d.shape.PricePerHour, Image: d.shape.Image,
		})
	}
	return nil
}

func largest(value string) (corev1.ResourceList, error) {
	cpu, memory, _ := strings.Cut(value, "/")
	milli, err := quantity(cpu)
	if err != nil {
		return nil, err
	}
	bytes, err := quantity(memory)
	return corev1.ResourceList{corev1.ResourceCPU: milli, corev1.ResourceMemory: bytes}, err
}

func failure(value string) (fleet.Failure, error) {
	at, cause, ok := strings.Cut(value, "/")
	if !ok {
		return fleet.Failure{}, fmt.Errorf("want time/cause such as 10:00:00/InsufficientInstanceCapacity")
	}
	cause, zone, _ := strings.Cut(cause, "/")
	t, err := clockTime(at)
	return fleet.Failure{At: t, Zone: zone, Cause: cause, Text: cause}, err
}

func replacement(value string) (*fleet.Replacement, error) {
	cause, ended, over := strings.Cut(value, "/")
	switch {
	case cause == "none":
		return nil, nil
	case cause != fleet.ZoneRebalance && cause != fleet.MaxLifetime:
		return nil, fmt.Errorf("want %s or %s, with /10:00:00 behind it if it has ended, or none", fleet.ZoneRebalance, fleet.MaxLifetime)
	case !over:
		return &fleet.Replacement{Cause: cause}, nil
	}
	t, err := clockTime(ended)
	return &fleet.Replacement{Cause: cause, Ended: t}, err
}

func share(value string) (float64, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("want a number such as 0.5")
	}
	return f, nil
}

// instance ID group=NAME: state=InService, zone= that of the group's first
// shape, leaving=TIME, which is that of the activity if it is exact.
func instance(w *World, l line) error {
	i := w.instance(l.name)
	if i == nil {
		g := w.group(l.value("group"))
		if g == nil {
			return fmt.Errorf("its group %q is not there", l.value("group"))
		}
		g.Instances = append(g.Instances, fleet.Instance{ID: l.name, State: fleet.InService, Zone: firstZone(g), Type: instanceType(g)})
		i = w.instance(l.name)
	}
	return instanceWords.apply(i, l.without("group"))
}

var instanceWords = table[fleet.Instance]{
	"zone":     setter(text, func(i *fleet.Instance, v string) { i.Zone = v }),
	"template": setter(text, func(i *fleet.Instance, v string) { i.Template = v }),
	"type":     setter(text, func(i *fleet.Instance, v string) { i.Type = v }),
	"state":    setter(text, func(i *fleet.Instance, v string) { i.State = v }),
	"leaving":  setter(clockTime, func(i *fleet.Instance, t time.Time) { i.TerminatingSince = t }),
	"exact":    func(i *fleet.Instance, _ string) error { i.TerminatingExact = true; return nil },
	// unmade is time/cause: since when its provider cannot create it, and why.
	"unmade":    setter(failure, func(i *fleet.Instance, f fleet.Failure) { i.Failed, i.FailedSince = f.Cause, f.At }),
	"protected": func(i *fleet.Instance, _ string) error { i.Protected = true; return nil },
	"unhealthy": func(i *fleet.Instance, _ string) error { i.Unhealthy = true; return nil },
}
