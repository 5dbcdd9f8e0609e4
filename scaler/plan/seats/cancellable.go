package seats

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// cancellable finds nodes whose scale-down is cancelled because a pod has no other place. Without
// it groups grow by 1.7 times as many nodes in random worlds with nodes that are scaled down. To
// ask a node is to put its pods back in the simulation, which a burst of pods cannot do at every
// node for each: what a node refuses for good is not asked of it again. While it is in use, no pod
// may be taken off the nodes, and no change from before may be undone.
type cancellable struct {
	*Seats
	// nodes are in the order in which they are asked. loads are of the pods that would come back to
	// each; nil before the first question.
	nodes []*cluster.Node
	loads []fit.Load
	// able are, for each class that asked, the indices of those that might take it.
	able map[*fit.Class][]int
	// refused is the moment at which a class asked last, if none took it: as long as
	// nothing else changes either, none takes it.
	refused map[*fit.Class]fit.Mark
}

// Cancellable asks the scaled-down nodes for which of reports true.
func (d *Seats) Cancellable(of func(*cluster.Node) bool) *cancellable {
	nodes := slices.DeleteFunc(slices.Collect(d.In(cluster.ScalingDown)), func(n *cluster.Node) bool { return !n.Open || !of(n) })
	return &cancellable{Seats: d, nodes: nodes, able: map[*fit.Class][]int{}, refused: map[*fit.Class]fit.Mark{}}
}

// Seat gives the pod a seat at one of the scaled-down nodes, if it has room beside the pods that
// would stay there then; nil if none has.
func (b *cancellable) Seat(t fit.Tenant) *cluster.Node {
	now := b.Fit.Fork()
	if at, asked := b.refused[t.Class]; asked && at == now {
		return nil
	}
	for _, i := range b.stillAble(t.Class) {
		n := b.nodes[i]
		moved := n.Moved
		b.UndoMoves(n)
		if b.Fit.TrySeat(t, n.Place) {
			b.loads[i] = fit.Load{} // it is on the node now
			return n
		}
		b.Fit.Revert(now)
		n.Moved = moved
	}
	b.refused[t.Class] = now
	return nil
}

// stillAble lists the nodes that might take a pod of the class: the others never will.
func (b *cancellable) stillAble(class *fit.Class) []int {
	list, asked := b.able[class]
	if !asked {
		for i := range b.nodes {
			list = append(list, i)
		}
	}
	b.weigh()
	list = slices.DeleteFunc(list, func(i int) bool { return !b.Fit.MightHold(class, b.loads[i], b.nodes[i].Place) })
	b.able[class] = list
	return list
}

// weigh finds the loads.
func (b *cancellable) weigh() {
	if b.loads != nil {
		return
	}
	b.loads = make([]fit.Load, len(b.nodes))
	for i, n := range b.nodes {
		for _, m := range n.Moved {
			b.loads[i].Add(m.Pod.Class)
		}
	}
}

// UndoMoves seats the pods of a node again that were given seats elsewhere.
func (d *Seats) UndoMoves(n *cluster.Node) {
	for _, m := range n.Moved {
		d.Fit.Lift(m.Pod, m.To)
		d.Fit.Put(m.Pod, n.Place)
	}
	n.Moved = nil
}
