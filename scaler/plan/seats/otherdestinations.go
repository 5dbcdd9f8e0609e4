package seats

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// otherDestinations finds room for pods that wait where pods of retiring nodes were to go, if these
// can go elsewhere instead. When a node is retired, pods that wait have their seats before
// its pods, and at all later looks after them: without this, a pod that had the room that
// one of those takes then would bring the node back at once. The room is there in truth,
// and kube-scheduler may bind the pod to it at any moment. So law 12 needs it, though it is rare:
// of 6,000 random worlds with nodes that are scaled down and pods that wait 42 differ by it. While
// yielding is in use, nothing may leave the nodes but by it and by reprieve, nor any change from
// before be taken back.
type otherDestinations struct {
	*Seats
	// destinations are where pods of retiring nodes may go, and elsewhere the same as a row; nil
	// before anybody asked. What a kept node's pods leave free there is not looked at.
	destinations []*fit.Place
	elsewhere    *fit.Row
	// hosts are in the order in which they are asked; nil before anybody asked.
	hosts []host
	// able are, for each class that asked, the indices of those that might take it.
	able map[*fit.Class][]int
	// refused is the moment at which a class asked last, if no host took it: as long as
	// nothing else changes either, none does.
	refused map[*fit.Class]fit.Mark
}

// host is a place where pods of retiring nodes were to go when yielding began, and guests
// are these. A guest that has gone elsewhere stays there, so that the load never grows.
type host struct {
	place  *fit.Place
	guests []guest
	load   fit.Load
}

// guest is a pod of a retiring node, and the index of its move.
type guest struct {
	pod   fit.Tenant
	of    *cluster.Node
	index int
}

// to is where the guest goes by now; nil where its node is kept.
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
	for _, n := range y.In(cluster.ScalingDown) {
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

// goElsewhere gives a guest a seat at a refuge that is not closed.
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

// remember tells the nodes where their pods go now. Whoever has kept the moves from before
// has them still.
func remember(gone []movedOn) {
	for _, g := range gone {
		g.of.Moved = slices.Clone(g.of.Moved)
		g.of.Moved[g.index].To = g.elsewhere
	}
}
