package template

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/plan/cluster"
)

// Definition is a hash of what new nodes of the group are defined to be, and of the DaemonSets'
// templates. Nothing that is learned from nodes or from pods is in it: that changes with them.
func (d *Templates) Definition(g *cluster.Group) string {
	if g.Definition == "" {
		if d.daemonsText == "" {
			sets := slices.Clone(d.Daemons)
			for i := range sets {
				sets[i].Template.Spec.Overhead = nil
			}
			d.daemonsText = encoded(sets)
		}
		g.Definition = Hashed(definedAs(g) + d.daemonsText)
	}
	return g.Definition
}

// defined is the same without the DaemonSets, and with the resources, but for memory, which
// is guessed by what was seen.
func (d *Templates) defined(g *cluster.Group) string {
	var rooms []corev1.ResourceList
	for _, s := range g.Planned {
		room := maps.Clone(s.Allocatable)
		delete(room, corev1.ResourceMemory)
		rooms = append(rooms, room)
	}
	return Hashed(definedAs(g) + encoded(rooms))
}

// definedAs is the group's definition as text.
func definedAs(g *cluster.Group) string {
	type shape struct {
		InstanceType, Image string
		Labels              map[string]string
		Taints              []corev1.Taint
	}
	var shapes []shape
	for _, s := range g.Planned {
		shapes = append(shapes, shape{s.InstanceType, s.Image, s.Labels, s.Taints})
	}
	return encoded([]any{g.Template, shapes})
}

// encoded is the canonical text of what always encodes.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("shapes and DaemonSets always encode: %v", err))
	}
	return string(text)
}

// Hashed is a short text that stands for a long one, the same in every process.
func Hashed(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text)) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}
