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
// of a type with whatever image, for groups that have none. Less replaces more, and so does noticeably
// more: whatever was odd is over. A node that has noticeably less than half of its kind says nothing
// of others.
func (d *Templates) rememberMemory() {
	used, there := map[string]bool{}, map[kindSeen][]int64{}
	for _, g := range d.Groups {
		for _, s := range g.NodeTemplates {
			used[fleet.SeenKey(s.InstanceType, s.Image)], used[fleet.SeenKey(s.InstanceType, "")] = true, true
		}
		for _, n := range g.Nodes {
			if n.MemoryThere < seenStep || n.Instance.Type == "" || !n.Up() {
				continue
			}
			kind := kindSeen{n.Instance.Type, imageOf(g, n)}
			there[kind] = append(there[kind], n.MemoryThere/seenStep*seenStep)
		}
	}
	least := map[string]resource.Quantity{}
	for kind, all := range there {
		slices.Sort(all)
		middle := *resource.NewQuantity(all[(len(all)-1)/2], resource.BinarySI)
		all = slices.DeleteFunc(all, func(bytes int64) bool { return short(*resource.NewQuantity(bytes, resource.BinarySI), middle) })
		now := *resource.NewQuantity(all[0], resource.BinarySI)
		for _, key := range []string{fleet.SeenKey(kind.instanceType, ""), fleet.SeenKey(kind.instanceType, kind.image)} {
			if known, ok := least[key]; !ok || now.Cmp(known) < 0 {
				least[key] = now
			}
		}
	}
	for key, now := range least {
		used[key] = true
		if known, ok := d.State.Seen[key]; !ok || now.Cmp(known) < 0 || short(known, now) {
			d.State.Seen[key] = now
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
