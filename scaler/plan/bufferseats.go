package plan

import (
	"fmt"

	"windlass.dev/windlass/scaler/fit"
)

// bufferRow is where pods of buffers find room, the best first.
type bufferRow struct {
	free, staying, coming, fresh *fit.Row
}

func (d *decision) bufferRow() bufferRow {
	room := d.openRoom()
	return bufferRow{room.free, room.staying, room.coming, d.fit.NewRow(d.allFresh())}
}

// seat gives the pod a seat; fresh says that it is on a node that is only planned.
func (r bufferRow) seat(t fit.Tenant) (at *fit.Place, fresh bool) {
	for _, row := range []*fit.Row{r.free, r.staying, r.coming} {
		if p := row.Seat(t); p != nil {
			return p, false
		}
	}
	p := r.fresh.Seat(t)
	return p, p != nil
}

// bufferPods are the pods of all buffers, in the order in which they are placed, and whose
// each is.
func (d *decision) bufferPods() (pods []fit.Tenant, of map[fit.Tenant]*buffer) {
	of = map[fit.Tenant]*buffer{}
	for _, b := range d.buffers {
		pods = append(pods, b.tenants...)
		for _, t := range b.tenants {
			of[t] = b
		}
	}
	return d.inOrder(pods), of
}

// lackingBuffers is a pod of each buffer for which there is too little room without a new
// node.
func (d *decision) lackingBuffers() []fit.Tenant {
	start := d.fit.Fork()
	defer d.fit.Revert(start)
	var list []fit.Tenant
	row, refused := d.bufferRow(), map[*fit.Class]bool{}
	pods, _ := d.bufferPods()
	for _, t := range pods {
		if refused[t.Class] {
			continue
		}
		if p, _ := row.seat(t); p == nil {
			refused[t.Class] = true
			list = append(list, t)
		}
	}
	return list
}

// growForBuffers gives the pods of buffers seats beside all real ones, keeps nodes that
// were to go, and plans new ones, for those that have none. Nobody else sees these seats:
// putBack takes those on new nodes again.
func (d *decision) growForBuffers() (putBack func()) {
	if len(d.buffers) == 0 {
		return func() {}
	}
	left, of := d.seatBuffers()
	sizes := map[*group]int{}
	for _, g := range d.groups {
		sizes[g] = len(g.fresh)
	}
	for _, t := range d.growFor(left) {
		of[t].short++
	}
	for _, g := range d.groups {
		d.noteBuffers(g, g.fresh[sizes[g]:], of)
	}
	for _, b := range d.buffers {
		if b.short > 0 {
			b.why = d.sayShort(b.room, b.short)
		}
	}
	return d.liftBuffers(of)
}

// seatBuffers seats what has room without a new node, and returns what has none.
func (d *decision) seatBuffers() (left []fit.Tenant, of map[fit.Tenant]*buffer) {
	pods, of := d.bufferPods()
	row, retiring, refused := d.bufferRow(), d.reprieve(), map[*fit.Class]bool{}
	for _, t := range pods {
		if refused[t.Class] {
			left = append(left, t)
			continue
		}
		b := of[t]
		if p, fresh := row.seat(t); p != nil {
			if !fresh {
				b.seats = append(b.seats, bufferSeat{t, p})
			}
			continue
		}
		if n := retiring.seat(t); n != nil {
			b.seats = append(b.seats, bufferSeat{t, n.place})
			d.keep(n, fmt.Sprintf("%s needs it", b.room))
			row = d.bufferRow() // what was to move to other nodes has left room there
			continue
		}
		refused[t.Class] = true
		left = append(left, t)
	}
	return left, of
}

// noteBuffers tells a group for which buffers it grows.
func (d *decision) noteBuffers(g *group, fresh []*fit.Place, of map[fit.Tenant]*buffer) {
	brought := map[*buffer]int{}
	for _, p := range fresh {
		for _, t := range p.Seated() {
			if b := of[t]; b != nil {
				brought[b]++
			}
		}
	}
	for _, b := range d.buffers {
		if n := brought[b]; n > 0 {
			g.note(fmt.Sprintf("%s: room for %s %s is wanted, and new nodes have it for %d", b.room, counted(b.room.wanted, "pod"), b.room.size(), n))
		}
	}
}

// liftBuffers takes the pods of buffers off their seats. On nodes that are there, or come
// anyway, the buffers remember these.
func (d *decision) liftBuffers(of map[fit.Tenant]*buffer) (putBack func()) {
	for _, b := range d.buffers {
		b.lift(d)
	}
	var back []bufferSeat
	for _, p := range d.allFresh() {
		for _, t := range p.Tenants() {
			if of[t] != nil {
				d.fit.Lift(t, p)
				back = append(back, bufferSeat{t, p})
			}
		}
	}
	return func() {
		for _, s := range back {
			d.fit.Put(s.pod, s.at)
		}
	}
}

// put gives the buffer's pods the seats that they had, and lift takes them off again.
func (b *buffer) put(d *decision) {
	for _, s := range b.seats {
		d.fit.Put(s.pod, s.at)
	}
}

func (b *buffer) lift(d *decision) {
	for _, s := range b.seats {
		d.fit.Lift(s.pod, s.at)
	}
}
