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
	type seen struct {
		instanceType, image string
		bytes               int64
	}
	used, nodes := map[string]bool{}, map[seen]int{}
	for _, g := range d.Groups {
		for _, s := range g.NodeTemplates {
			used[fleet.SeenKey(s.InstanceType, s.Image)], used[fleet.SeenKey(s.InstanceType, "")] = true, true
		}
		for _, n := range g.Nodes {
			if n.MemoryThere >= seenStep && n.Instance.Type != "" && n.Up() {
				nodes[seen{n.Instance.Type, imageOf(g, n), n.MemoryThere / seenStep * seenStep}]++
			}
		}
	}
	there := map[string]map[int64]int{} // how many nodes of a key have each amount
	for s, count := range nodes {
		// Without an image both keys are one.
		for _, key := range slices.Compact([]string{fleet.SeenKey(s.instanceType, ""), fleet.SeenKey(s.instanceType, s.image)}) {
			if there[key] == nil {
				there[key] = map[int64]int{}
			}
			there[key][s.bytes] += count
		}
	}
	for key, nodesWith := range there {
		used[key] = true
		now := usualLeast(nodesWith)
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

// usualLeast is the least amount of memory that is not noticeably less than what more than half of the nodes
// have. nodesWith is how many nodes have each amount; there is at least one.
func usualLeast(nodesWith map[int64]int) resource.Quantity {
	amounts, nodes := slices.Sorted(maps.Keys(nodesWith)), 0
	for _, count := range nodesWith {
		nodes += count
	}
	middle := 0
	for upTo := nodesWith[amounts[0]]; upTo <= (nodes-1)/2; upTo += nodesWith[amounts[middle]] {
		middle++
	}
	quantity := func(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }
	least := slices.IndexFunc(amounts, func(bytes int64) bool { return !short(quantity(bytes), quantity(amounts[middle])) })
	return quantity(amounts[least])
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
