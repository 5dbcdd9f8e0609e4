package template

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

const (
	// mostLessons bounds fleet.State.Lessons, and longestLesson each in bytes: what a node with
	// eight GPUs takes about three KiB for its devices.
	mostLessons, longestLesson = 200, 8 << 10
)

// remember persists what the nodes of a group have beyond its definition: when the last of them is
// removed, pods that need it still find their group. What nodes lack is not persisted: it may be
// their own trouble, and without a node it would not be seen that it is over. A change that is not
// noticeable is not worth a write. What was learned beside another definition stays while this one is
// read in part.
func (d *Templates) remember(g *cluster.Group, known []*cluster.Node) {
	of, planned := d.defined(g), g.Planned[0]
	taught := beyond(withoutZone(planned), withoutZone(g.NodeTemplates[0]))
	before, remembered := d.State.Lessons[g.Name]
	if remembered && before.Of != of && len(g.Faults) > 0 {
		return
	}
	if remembered = remembered && before.Of == of; remembered && len(d.settledOf(specimensFor(known, planned.Zone))) < 2 {
		taught = completed(taught, before.Template, g.NodeTemplates[0])
	}
	if remembered && sameTemplate(before.Template, taught) {
		return
	}
	delete(d.State.Lessons, g.Name)
	if sameTemplate(taught, fleet.NodeTemplate{}) || len(d.State.Lessons) >= mostLessons {
		return
	}
	lesson := fleet.Lesson{Of: of, Template: taught}
	if len(encoded(lesson)) > longestLesson {
		lesson.Template.Slices = nil
	}
	if len(encoded(lesson)) <= longestLesson {
		d.State.Lessons[g.Name] = lesson
	}
}

// beyond is what a learned node template has that the definition does not say.
func beyond(planned, learned fleet.NodeTemplate) fleet.NodeTemplate {
	more := fleet.NodeTemplate{DeclaredFeatures: learned.DeclaredFeatures, Drivers: learned.Drivers, Slices: learned.Slices}
	for key, value := range learned.Labels {
		if was, ok := planned.Labels[key]; !ok || was != value {
			if more.Labels == nil {
				more.Labels = map[string]string{}
			}
			more.Labels[key] = value
		}
	}
	for name, q := range learned.Allocatable {
		if short(planned.Allocatable[name], q) {
			if more.Allocatable == nil {
				more.Allocatable = corev1.ResourceList{}
			}
			more.Allocatable[name] = q
		}
	}
	return more
}

// completed is what a single node teaches, with what others taught before it that it lacks and
// does not contradict.
func completed(taught, before, now fleet.NodeTemplate) fleet.NodeTemplate {
	for key, value := range before.Labels {
		if _, has := now.Labels[key]; !has {
			taught.Labels = maps.Clone(taught.Labels)
			if taught.Labels == nil {
				taught.Labels = map[string]string{}
			}
			taught.Labels[key] = value
		}
	}
	for name, q := range before.Allocatable {
		if has := now.Allocatable[name]; has.IsZero() {
			taught.Allocatable = maps.Clone(taught.Allocatable)
			if taught.Allocatable == nil {
				taught.Allocatable = corev1.ResourceList{}
			}
			taught.Allocatable[name] = q
		}
	}
	if len(taught.DeclaredFeatures) == 0 {
		taught.DeclaredFeatures = before.DeclaredFeatures
	}
	if len(taught.Drivers) == 0 {
		taught.Drivers = before.Drivers
	}
	if len(taught.Slices) == 0 {
		taught.Slices = before.Slices
	}
	return taught
}

// recall has new nodes have what the last ones of the group had beyond its definition, if that
// is still the one that they came of. One that is read in part says nothing of that.
func (d *Templates) recall(g *cluster.Group) {
	lesson, known := d.State.Lessons[g.Name]
	if !known || lesson.Of != d.defined(g) {
		if len(g.Faults) == 0 {
			delete(d.State.Lessons, g.Name)
		}
		return
	}
	for i := range g.NodeTemplates {
		s := &g.NodeTemplates[i]
		labels, room := maps.Clone(s.Labels), maps.Clone(s.Allocatable)
		if labels == nil {
			labels = map[string]string{}
		}
		if room == nil {
			room = corev1.ResourceList{}
		}
		maps.Copy(labels, lesson.Template.Labels)
		maps.Copy(room, lesson.Template.Allocatable)
		s.Labels, s.Allocatable = labels, room
		s.DeclaredFeatures, s.Drivers, s.Slices = lesson.Template.DeclaredFeatures, lesson.Template.Drivers, lesson.Template.Slices
	}
}

// forgetLessons drops those of groups that are ours no more.
func (d *Templates) forgetLessons() {
	maps.DeleteFunc(d.State.Lessons, func(name string, _ fleet.Lesson) bool {
		return !slices.ContainsFunc(d.Groups, func(g *cluster.Group) bool { return g.Name == name })
	})
}

// withoutZone is a node template without what it owes to its zone, and without what no pod asks of
// a node.
func withoutZone(s fleet.NodeTemplate) fleet.NodeTemplate {
	s.Zone, s.InstanceType, s.Image, s.PricePerHour, s.Capacity = "", "", "", 0, nil
	s.Labels = maps.Clone(s.Labels)
	maps.DeleteFunc(s.Labels, func(key, _ string) bool { return slices.Contains(zonalLabels, key) })
	return s
}

// sameTemplate reports whether pods find the same on new nodes of either template, but for
// differences of resources that are not noticeable.
func sameTemplate(a, b fleet.NodeTemplate) bool {
	share := func(corev1.ResourceName) float64 { return noticeable }
	return maps.Equal(a.Labels, b.Labels) && SameTaints(a.Taints, b.Taints) &&
		Near(a.Allocatable, b.Allocatable, share) &&
		slices.Equal(a.DeclaredFeatures, b.DeclaredFeatures) &&
		equality.Semantic.DeepEqual(a.Drivers, b.Drivers) && sameDevices(a.Slices, b.Slices)
}
