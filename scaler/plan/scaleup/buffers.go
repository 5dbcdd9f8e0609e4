package scaleup

import (
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// growForBuffers gives the pods of buffers seats beside all real ones, keeps nodes that
// were to go, and plans new ones, for those that have none. Nobody else sees these seats:
// putBack takes those on new nodes again.
func (d *ScaleUp) growForBuffers() (putBack func()) {
	if len(d.Buffers) == 0 {
		return func() {}
	}
	left, of := d.seatBuffers()
	sizes := map[*cluster.Group]int{}
	for _, g := range d.Groups {
		sizes[g] = len(g.Fresh)
	}
	for _, t := range d.growFor(left) {
		of[t.Pod].Short++
	}
	for _, g := range d.Groups {
		d.noteBuffers(g, g.Fresh[sizes[g]:], of)
	}
	for _, b := range d.Buffers {
		if b.Short > 0 {
			b.Why = d.sayShort(b.Room, b.Short)
		}
	}
	return d.liftBuffers(of)
}

// seatBuffers seats what has room without a new node, and returns what has none.
func (d *ScaleUp) seatBuffers() (left []fit.Tenant, of map[*fleet.Pod]*seats.Buffer) {
	pods, of := d.BufferPods()
	row, retiring, refused := d.BufferRow(), d.Reprieve(), map[*fit.Class]bool{}
	for _, t := range pods {
		if refused[t.Class] {
			left = append(left, t)
			continue
		}
		b := of[t.Pod]
		if !d.Ration.Ask(b.Namespace) {
			left = append(left, t) // it is told there
			continue
		}
		if p, fresh := row.Seat(t); p != nil {
			if !fresh {
				b.Seats.Add(p)
			}
			continue
		}
		if n := retiring.Seat(t); n != nil {
			b.Seats.Add(n.Place)
			d.Keep(n, verdict.Say("{headroom} needs it", verdict.HeadRoom(b.Room.String())))
			row = d.BufferRow() // what was to move to other nodes has left room there
			continue
		}
		refused[t.Class] = true
		left = append(left, t)
	}
	return left, of
}

// noteBuffers tells a group for which buffers it grows.
func (d *ScaleUp) noteBuffers(g *cluster.Group, fresh []*fit.Place, of map[*fleet.Pod]*seats.Buffer) {
	brought := map[*seats.Buffer]int{}
	for _, p := range fresh {
		for _, t := range p.Seated() {
			if b := of[t.Pod]; b != nil {
				brought[b]++
			}
		}
	}
	for _, b := range d.Buffers {
		if n := brought[b]; n > 0 {
			g.Note(b.Room.IsWanted(b.Room.Wanted).And(", and new nodes have it for {count}", verdict.Count(n)))
		}
	}
}

// liftBuffers takes the pods of buffers off their seats. On nodes that are there, or come
// anyway, the buffers remember these.
func (d *ScaleUp) liftBuffers(of map[*fleet.Pod]*seats.Buffer) (putBack func()) {
	for _, b := range d.Buffers {
		b.Lift(d.Seats)
	}
	var back []cluster.Move
	for _, p := range d.AllFresh() {
		for _, t := range p.Tenants() {
			if of[t.Pod] != nil {
				d.Fit.Lift(t, p)
				back = append(back, cluster.Move{Pod: t, To: p})
			}
		}
	}
	return func() {
		for _, m := range back {
			d.Fit.Put(m.Pod, m.To)
		}
	}
}
