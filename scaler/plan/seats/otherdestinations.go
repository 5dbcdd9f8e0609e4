package seats

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// otherDestinations finds room for pending pods where pods of scaled-down nodes were to go, if
// these can go elsewhere instead. When a node is scaled down, pending pods have their seats before
// its pods, and at all later evaluations after them: without this, a pod that had the room that one
// of those takes then would cancel the scale-down at once. The room is really there, and
// kube-scheduler may bind the pod to it at any moment. So law 12 needs it, though it is rare: of
// 6,000 random worlds with nodes that are scaled down and pending pods 42 differ by it. While it is
// in use, only it and cancellable may take pods off the nodes, and no change from before may be
// undone.
type otherDestinations struct {
	*Seats
	// destinations are where pods of nodes that are scaled down may go, and elsewhere the same as a
	// row; nil before the first question. What pods leave free there when their node's scale-down
	// is cancelled is not considered.
	destinations []*fit.Place
	elsewhere    *fit.Row
	// hosts are in the order in which they are asked; nil before the first question.
	hosts []host
	// able are, for each class that asked, the indices of those that might take it.
	able map[*fit.Class][]int
	// refused is the moment at which a class asked last, if no host took it: as long as
	// nothing else changes either, none does.
	refused map[*fit.Class]fit.Mark
}

// host is a place where pods of nodes that are scaled down were to go when otherDestinations began,
// and guests are these pods. A guest that has gone elsewhere stays there, so that the load never
// grows.
type host struct {
	place  *fit.Place
	guests []guest
	load   fit.Load
}

// guest is a pod of a node that is scaled down, and the index of its move.
type guest struct {
	pod   fit.Tenant
	of    *cluster.Node
	index int
}

// to is where the guest goes by now; nil where its node's scale-down is cancelled.
func (g guest) to() *fit.Place {
	if g.index >= len(g.of.Moved) {
		return nil
	}
	return g.of.Moved[g.index].To
}

func (d *Seats) yielding() *otherDestinations {
	return &otherDestinations{Seats: d, able: map[*fit.Class][]int{}, refused: map[*fit.Class]fit.Mark{}}
}

// seat gives the pod a seat at the first host whose guests can make room for it, and nil if
// none can.
func (y *otherDestinations) seat(t fit.Tenant) *fit.Place {
	now := y.Fit.Fork()
	if at, asked := y.refused[t.Class]; asked && at == now {
		return nil
	}
	for _, i := range y.stillAble(t.Class) {
		if y.makeRoom(t, &y.hosts[i]) {
			y.elsewhere = nil // who went may have left more room than the pod takes
			return y.hosts[i].place
		}
	}
	y.refused[t.Class] = now
	return nil
}

// stillAble lists the hosts that might take a pod of the class without their guests: the
// others never will.
func (y *otherDestinations) stillAble(class *fit.Class) []int {
	list, asked := y.able[class]
	if !asked {
		y.findHosts()
		for i := range y.hosts {
			list = append(list, i)
		}
	}
	list = slices.DeleteFunc(list, func(i int) bool { return !y.Fit.MightHoldWithout(class, y.hosts[i].load, y.hosts[i].place) })
	y.able[class] = list
	return list
}

func (y *otherDestinations) findHosts() {
	if y.hosts != nil {
		return
	}
	y.hosts = []host{}
	index := map[*fit.Place]int{}
	for n := range y.In(cluster.ScalingDown) {
		for i, m := range n.Moved {
			at, known := index[m.To]
			if !known {
				at = len(y.hosts)
				index[m.To] = at
				y.hosts = append(y.hosts, host{place: m.To})
			}
			h := &y.hosts[at]
			h.guests = append(h.guests, guest{m.Pod, n, i})
			h.load.Add(m.Pod.Class)
		}
	}
}

// makeRoom lets guests go elsewhere, one after the other, until the pod fits, and gives it
// the seat. If it never does, all is as before.
func (y *otherDestinations) makeRoom(t fit.Tenant, h *host) bool {
	start := y.Fit.Try()
	defer y.Fit.Stand()
	y.Fit.Close(h.place)
	var gone []movedOn
	var stuck *fit.Class // of the guest for which there was nothing else; its like come next
	for _, g := range h.guests {
		if g.to() != h.place || g.pod.Class == stuck {
			continue
		}
		y.Fit.Lift(g.pod, h.place)
		to := y.goElsewhere(g.pod)
		if to == nil {
			y.Fit.Put(g.pod, h.place)
			stuck = g.pod.Class
			continue
		}
		gone = append(gone, movedOn{g, to})
		if y.Fit.TrySeat(t, h.place) {
			y.Fit.Reopen(h.place)
			remember(gone)
			return true
		}
	}
	y.Fit.Revert(start)
	return false
}

// goElsewhere gives a guest a seat at a destination that is not closed.
func (y *otherDestinations) goElsewhere(pod fit.Tenant) *fit.Place {
	if y.elsewhere == nil {
		if y.destinations == nil {
			y.destinations = y.FindDestinations(y.UnneededSince())
		}
		y.elsewhere = y.Fit.NewRow(y.destinations)
	}
	return y.elsewhere.Seat(pod)
}

// movedOn is a guest that goes elsewhere.
type movedOn struct {
	guest
	elsewhere *fit.Place
}

// remember writes to the nodes where their pods go now. A copy of the earlier moves does not
// change.
func remember(gone []movedOn) {
	for _, g := range gone {
		g.of.Moved = slices.Clone(g.of.Moved)
		g.of.Moved[g.index].To = g.elsewhere
	}
}
