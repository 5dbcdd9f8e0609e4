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
// more: whatever was odd is over. A node that has noticeably less than more than half of its like
// says nothing of others.
func (d *Templates) rememberMemory() {
	used, there := map[string]bool{}, map[string][]int64{}
	for _, g := range d.Groups {
		for _, s := range g.NodeTemplates {
			used[fleet.SeenKey(s.InstanceType, s.Image)], used[fleet.SeenKey(s.InstanceType, "")] = true, true
		}
		for _, n := range g.Nodes {
			if n.MemoryThere < seenStep || n.Instance.Type == "" || !n.Up() {
				continue
			}
			keys := []string{fleet.SeenKey(n.Instance.Type, "")}
			if image := imageOf(g, n); image != "" {
				keys = append(keys, fleet.SeenKey(n.Instance.Type, image))
			}
			for _, key := range keys {
				there[key] = append(there[key], n.MemoryThere/seenStep*seenStep)
			}
		}
	}
	for key, all := range there {
		used[key] = true
		slices.Sort(all)
		middle := *resource.NewQuantity(all[(len(all)-1)/2], resource.BinarySI)
		first := slices.IndexFunc(all, func(bytes int64) bool { return !short(*resource.NewQuantity(bytes, resource.BinarySI), middle) })
		now := *resource.NewQuantity(all[first], resource.BinarySI)
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
