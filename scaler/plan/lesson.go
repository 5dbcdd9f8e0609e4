package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"windlass.dev/windlass/pkg/fleet"
)

const (
	// mostLessons bounds fleet.State.Lessons, and longestLesson each in bytes: what a node
	// with eight GPUs tells of its devices takes about three KiB.
	mostLessons, longestLesson = 200, 8 << 10
)

// remember keeps what the nodes of a group teach, if its definition says something else:
// when the last of them goes, pods that need it find their group all the same. A change that
// is not noticeable is not worth a write.
func (d *decision) remember(g *group, known []*node) {
	learned, base := withoutZone(g.Shapes[0]), withoutZone(g.planned[0])
	of := d.defined(g)
	before, taught := d.state.Lessons[g.Name]
	if taught = taught && before.Of == of; taught {
		base = before.Shape
	}
	if len(d.settledOf(specimensFor(known, g.planned[0].Zone))) < 2 {
		learned = widened(base, learned)
	}
	if taught && sameShape(before.Shape, learned) {
		return
	}
	delete(d.state.Lessons, g.Name)
	if sameShape(withoutZone(g.planned[0]), learned) || len(d.state.Lessons) >= mostLessons {
		return
	}
	lesson := fleet.Lesson{Of: of, Shape: learned}
	if len(encoded(lesson)) > longestLesson {
		lesson.Shape.Slices = nil
	}
	if len(encoded(lesson)) <= longestLesson {
		d.state.Lessons[g.Name] = lesson
	}
}

// widened is a shape with what a single node has beyond it. What that lacks may be its own
// trouble, and must not outlive it: nobody would see a node of the group again that is better.
func widened(base, by fleet.Shape) fleet.Shape {
	labels := maps.Clone(by.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, base.Labels)
	base.Labels = labels
	base.Allocatable = moreOf(base.Allocatable, by.Allocatable)
	if len(by.DeclaredFeatures) > 0 {
		base.DeclaredFeatures = by.DeclaredFeatures
	}
	if len(by.Drivers) > 0 {
		base.Drivers = by.Drivers
	}
	if len(by.Slices) > 0 {
		base.Slices = by.Slices
	}
	return base
}

// moreOf takes the larger amount of each resource.
func moreOf(a, b corev1.ResourceList) corev1.ResourceList {
	most := maps.Clone(a)
	for name, q := range b {
		if has, ok := most[name]; most != nil && (!ok || has.Cmp(q) < 0) {
			most[name] = q
		}
	}
	return most
}

// recall has new nodes look as the last ones of the group did, if its definition is still
// the one that they came of.
func (d *decision) recall(g *group) {
	lesson, known := d.state.Lessons[g.Name]
	if !known || lesson.Of != d.defined(g) {
		delete(d.state.Lessons, g.Name)
		return
	}
	for i := range g.Shapes {
		s := &g.Shapes[i]
		labels := maps.Clone(lesson.Shape.Labels)
		for _, key := range zonalLabels {
			if value, ok := s.Labels[key]; ok {
				if labels == nil {
					labels = map[string]string{}
				}
				labels[key] = value
			}
		}
		s.Labels, s.Taints, s.Allocatable = labels, lesson.Shape.Taints, lesson.Shape.Allocatable
		s.DeclaredFeatures, s.Drivers, s.Slices = lesson.Shape.DeclaredFeatures, lesson.Shape.Drivers, lesson.Shape.Slices
	}
}

// forgetLessons drops those of groups that are ours no more.
func (d *decision) forgetLessons() {
	maps.DeleteFunc(d.state.Lessons, func(name string, _ fleet.Lesson) bool {
		return !slices.ContainsFunc(d.groups, func(g *group) bool { return g.Name == name })
	})
}

// withoutZone is a shape without what it owes to its zone, and without what no pod asks of a
// node.
func withoutZone(s fleet.Shape) fleet.Shape {
	s.Zone, s.InstanceType, s.Image, s.PricePerHour, s.Capacity = "", "", "", 0, nil
	s.Labels = maps.Clone(s.Labels)
	maps.DeleteFunc(s.Labels, func(key, _ string) bool { return slices.Contains(zonalLabels, key) })
	return s
}

// sameShape says that pods find the same on new nodes of either shape, but for differences
// of resources that are not noticeable.
func sameShape(a, b fleet.Shape) bool {
	share := func(corev1.ResourceName) float64 { return noticeable }
	return maps.Equal(a.Labels, b.Labels) && sameTaints(a.Taints, b.Taints) &&
		near(a.Allocatable, b.Allocatable, share) &&
		slices.Equal(a.DeclaredFeatures, b.DeclaredFeatures) &&
		equality.Semantic.DeepEqual(a.Drivers, b.Drivers) && sameDevices(a.Slices, b.Slices)
}
