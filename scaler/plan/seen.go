package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

const (
	// mostSeen bounds fleet.State.Seen. Images come and go by the week.
	mostSeen = 300
	// seenStep is to what seen memory is rounded down: hosts of one kind differ by
	// a few KiB, and that is not worth a write.
	seenStep = 1 << 20
)

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
