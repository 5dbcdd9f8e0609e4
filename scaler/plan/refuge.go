package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/fit"
)

// Pods of nodes that we retire have places on nodes that serve. Nobody remembers which:
// they are found anew in each look, until the pods are there. What fits in one order may
// not in another, so that all looks try the order in which the retirements began.

// findRefuges lists the places where pods of nodes that go may seek others, nodes that
// serve: first those that stay, the fullest of them at the front, then what nobody needs,
// in the order in which it goes last.
func (d *decision) findRefuges(unneeded map[*node]time.Time) []*fit.Place {
	nodes := d.in(serving)
	slices.SortStableFunc(nodes, func(a, b *node) int {
		return cmp.Or(
			compareBool(!unneeded[a].IsZero(), !unneeded[b].IsZero()),
			unneeded[b].Compare(unneeded[a]),
			cmp.Compare(d.used(b), d.used(a)),
		)
	})
	return places(nodes)
}

// refugesBeside lists the places for pods of those of the chosen nodes that go now.
func (r *retirement) refugesBeside(chosen []*candidate) []*fit.Row {
	if len(chosen) == 0 {
		return nil
	}
	unneeded := map[*node]time.Time{}
	for _, c := range chosen {
		unneeded[c.node] = c.since
		if c.since.IsZero() {
			unneeded[c.node] = r.now // it is marked now
		}
	}
	return r.bothWays(slices.DeleteFunc(r.findRefuges(unneeded), r.isClaimed))
}

// bothWays makes rows of places in their order and in the reverse: where one does not do,
// the other may.
func (d *decision) bothWays(places []*fit.Place) []*fit.Row {
	back := slices.Clone(places)
	slices.Reverse(back)
	return []*fit.Row{d.fit.NewRow(places), d.fit.NewRow(back)}
}

// seatRetiring lets the pods of nodes that we retire keep the places that they were
// promised, before any other pod is looked at. If there is none for one any more, the
// retirement is taken back.
func (d *decision) seatRetiring() {
	nodes := d.in(retiring)
	if len(nodes) == 0 {
		return
	}
	since := d.unneededSince()
	for _, n := range nodes {
		d.spend(n)
	}
	slices.SortStableFunc(nodes, func(a, b *node) int {
		return cmp.Or(a.request.At.Compare(b.request.At.Time), since[a].Compare(since[b]))
	})
	for _, s := range d.moveMost(nodes, d.bothWays(d.findRefuges(since))) {
		d.keep(s.node, fmt.Sprintf("pod %s has no other place any more", s.pod.Pod.Key()))
	}
	d.fit.Stand()
}

// unneededSince is since when each node is marked; zero without a mark.
func (d *decision) unneededSince() map[*node]time.Time {
	since := map[*node]time.Time{}
	for _, n := range d.nodes {
		since[n], _ = d.marked(n)
	}
	return since
}

// reorders is how often nodes are tried in another order where pods of some find no place.
const reorders = 5

// moveMost gives the pods of as many nodes as it can seats elsewhere. Nodes that are stuck
// in one order come first in the next.
func (d *decision) moveMost(nodes []*node, rows []*fit.Row) (stuck []stuckNode) {
	best, in, fewest := nodes, rows[0], len(nodes)+1
	for range 1 + reorders {
		for _, row := range rows {
			start := d.fit.Try()
			stuck = d.moveOff(nodes, row)
			if len(stuck) == 0 {
				return nil
			}
			if len(stuck) < fewest {
				best, in, fewest = nodes, row, len(stuck)
			}
			d.fit.Revert(start)
		}
		nodes = inFront(stuck, nodes)
	}
	d.fit.Try()
	return d.moveOff(best, in)
}

// stuckNode is a node of which a pod has no other place.
type stuckNode struct {
	node *node
	pod  fit.Tenant
}

// moveOff gives the pods of one node after the other seats elsewhere. Those of a node of
// which one finds none stay; but one that is ending goes whatever becomes of its node.
func (d *decision) moveOff(nodes []*node, row *fit.Row) (stuck []stuckNode) {
	for _, n := range nodes {
		start := d.fit.Fork()
		n.moved = nil
		for _, t := range d.lifted(n) {
			to := row.Seat(t)
			if to == nil && d.unsucceeded()[t.Pod] {
				d.settleBack(t)
				continue
			}
			if to == nil {
				d.fit.Revert(start)
				n.moved = nil
				stuck = append(stuck, stuckNode{n, t})
				break
			}
			n.moved = append(n.moved, move{pod: t, to: to})
		}
	}
	return stuck
}

// inFront is the nodes with those that are stuck before the others.
func inFront(stuck []stuckNode, nodes []*node) []*node {
	list := make([]*node, 0, len(nodes))
	for _, s := range stuck {
		list = append(list, s.node)
	}
	for _, n := range nodes {
		if !slices.Contains(list[:len(stuck)], n) {
			list = append(list, n)
		}
	}
	return list
}
