package template

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

const (
	// mostSeen bounds fleet.State.Seen. Images come and go by the week.
	mostSeen = 300
	// seenStep is to what seen memory is rounded down: hosts of one kind differ by
	// a few KiB, and that is not worth a write.
	seenStep = 1 << 20
)

// rememberMemory persists the least memory that nodes of a type and image have been seen with, and
// of a type with whatever image, for groups that have none. Less replaces more, and an entry of
// others stays otherwise.
func (d *Templates) rememberMemory() {
	used, least := map[string]bool{}, map[kindSeen]int64{}
	for _, g := range d.Groups {
		for _, s := range g.NodeTemplates {
			used[fleet.SeenKey(s.InstanceType, s.Image)], used[fleet.SeenKey(s.InstanceType, "")] = true, true
		}
		for _, n := range g.Nodes {
			if n.MemoryThere < seenStep || n.Instance.Type == "" || !n.Up() {
				continue
			}
			kind, seen := kindSeen{n.Instance.Type, imageOf(g, n)}, n.MemoryThere/seenStep*seenStep
			if known, ok := least[kind]; !ok || seen < known {
				least[kind] = seen
			}
		}
	}
	for kind, bytes := range least {
		seen := resource.NewQuantity(bytes, resource.BinarySI)
		for _, key := range []string{fleet.SeenKey(kind.instanceType, ""), fleet.SeenKey(kind.instanceType, kind.image)} {
			used[key] = true
			if known, ok := d.State.Seen[key]; !ok || seen.Cmp(known) < 0 {
				d.State.Seen[key] = *seen
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.State.Seen)) {
		if len(d.State.Seen) > mostSeen && !used[key] {
			delete(d.State.Seen, key)
		}
	}
}

// kindSeen are nodes of one type and image.
type kindSeen struct{ instanceType, image string }

// imageOf is the machine image of a node, where its template has it.
func imageOf(g *cluster.Group, n *cluster.Node) string {
	if n.Instance.Template == "" || n.Instance.Template != g.Template {
		return ""
	}
	for _, s := range g.NodeTemplates {
		if s.InstanceType == n.Instance.Type {
			return s.Image
		}
	}
	return ""
}
