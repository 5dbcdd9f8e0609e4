package seats

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// Pods of nodes that we scale down have places on nodes that serve. Which ones is not persisted:
// they are found anew in each evaluation, until the pods are there. What fits in one order may not
// in another, so that all evaluations try the order in which the scale-downs began.

// FindDestinations lists the places where pods of nodes that go may seek others, nodes that serve:
// first those that stay, the fullest of them at the front, then the unneeded ones, in the order in
// which they go last.
func (d *Seats) FindDestinations(unneeded map[*cluster.Node]time.Time) []*fit.Place {
	nodes := slices.SortedStableFunc(d.In(cluster.Serving), func(a, b *cluster.Node) int {
		return cmp.Or(
			cluster.CompareBool(!unneeded[a].IsZero(), !unneeded[b].IsZero()),
			unneeded[b].Compare(unneeded[a]),
			cmp.Compare(d.Used(b), d.Used(a)),
		)
	})
	return cluster.Places(nodes)
}

// BothWays makes rows of places in their order and in the reverse: where one does not do,
// the other may.
func (d *Seats) BothWays(places []*fit.Place) []*fit.Row {
	back := slices.Clone(places)
	slices.Reverse(back)
	return []*fit.Row{d.Fit.NewRow(places), d.Fit.NewRow(back)}
}

// UnneededSince is since when each node is marked; zero without a mark.
func (d *Seats) UnneededSince() map[*cluster.Node]time.Time {
	since := map[*cluster.Node]time.Time{}
	for _, n := range d.Nodes {
		since[n], _ = d.Marked(n)
	}
	return since
}

// reorders is how often nodes are tried in another order where pods of some find no place.
const reorders = 5

// MoveMost gives the pods of as many nodes as it can seats elsewhere. Nodes that are stuck
// in one order come first in the next.
func (d *Seats) MoveMost(nodes []*cluster.Node, rows []*fit.Row) (stuck []stuckNode) {
	best, in, fewest := nodes, rows[0], len(nodes)+1
	for range 1 + reorders {
		for _, row := range rows {
			start := d.Fit.Try()
			stuck = d.moveOff(nodes, row)
			if len(stuck) == 0 {
				return nil
			}
			if len(stuck) < fewest {
				best, in, fewest = nodes, row, len(stuck)
			}
			d.Fit.Revert(start)
		}
		nodes = inFront(stuck, nodes)
	}
	d.Fit.Try()
	return d.moveOff(best, in)
}

// stuckNode is a node of which a pod has no other place.
type stuckNode struct {
	Node *cluster.Node
	Pod  fit.Tenant
}

// moveOff gives the pods of one node after the other seats elsewhere. Those of a node of which one
// finds none stay; but one that is ending ends whatever becomes of its node.
func (d *Seats) moveOff(nodes []*cluster.Node, row *fit.Row) (stuck []stuckNode) {
	for _, n := range nodes {
		start := d.Fit.Fork()
		n.Moved = nil
		for _, t := range d.Lifted(n) {
			to := row.Seat(t)
			if to == nil && d.Unsucceeded()[t.Pod] {
				d.SettleBack(t)
				continue
			}
			if to == nil {
				d.Fit.Revert(start)
				n.Moved = nil
				stuck = append(stuck, stuckNode{n, t})
				break
			}
			n.Moved = append(n.Moved, cluster.Move{Pod: t, To: to})
		}
	}
	return stuck
}

// inFront is the nodes with those that are stuck before the others.
func inFront(stuck []stuckNode, nodes []*cluster.Node) []*cluster.Node {
	list := make([]*cluster.Node, 0, len(nodes))
	for _, s := range stuck {
		list = append(list, s.Node)
	}
	for _, n := range nodes {
		if !slices.Contains(list[:len(stuck)], n) {
			list = append(list, n)
		}
	}
	return list
}
