package plan

import (
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
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

// seatCounts counts the pods of a buffer that have room at each place, in the order in
// which the places were found.
type seatCounts struct {
	places []*fit.Place
	counts []int
	index  map[*fit.Place]int
}

func (s *seatCounts) add(p *fit.Place) {
	i, known := s.index[p]
	if !known {
		if s.index == nil {
			s.index = map[*fit.Place]int{}
		}
		i = len(s.places)
		s.index[p] = i
		s.places, s.counts = append(s.places, p), append(s.counts, 0)
	}
	s.counts[i]++
}

// bufferPods are the pods of all buffers, in the order in which they are placed, and whose
// each is. All those of a buffer are one and the same.
func (d *decision) bufferPods() (pods []fit.Tenant, of map[*fleet.Pod]*buffer) {
	of = map[*fleet.Pod]*buffer{}
	for _, b := range d.buffers {
		if b.room != nil {
			pods = append(pods, slices.Repeat([]fit.Tenant{b.room.tenant}, b.room.wanted)...)
			of[b.room.tenant.Pod] = b
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
		of[t.Pod].short++
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
func (d *decision) seatBuffers() (left []fit.Tenant, of map[*fleet.Pod]*buffer) {
	pods, of := d.bufferPods()
	row, retiring, refused := d.bufferRow(), d.reprieve(), map[*fit.Class]bool{}
	for _, t := range pods {
		if refused[t.Class] {
			left = append(left, t)
			continue
		}
		b := of[t.Pod]
		if !d.ration.Ask(b.Namespace) {
			left = append(left, t) // it is told there
			continue
		}
		if p, fresh := row.seat(t); p != nil {
			if !fresh {
				b.seats.add(p)
			}
			continue
		}
		if n := retiring.seat(t); n != nil {
			b.seats.add(n.place)
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
func (d *decision) noteBuffers(g *group, fresh []*fit.Place, of map[*fleet.Pod]*buffer) {
	brought := map[*buffer]int{}
	for _, p := range fresh {
		for _, t := range p.Seated() {
			if b := of[t.Pod]; b != nil {
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
func (d *decision) liftBuffers(of map[*fleet.Pod]*buffer) (putBack func()) {
	for _, b := range d.buffers {
		b.lift(d)
	}
	var back []move
	for _, p := range d.allFresh() {
		for _, t := range p.Tenants() {
			if of[t.Pod] != nil {
				d.fit.Lift(t, p)
				back = append(back, move{pod: t, to: p})
			}
		}
	}
	return func() {
		for _, m := range back {
			d.fit.Put(m.pod, m.to)
		}
	}
}

// put gives the buffer's pods the seats that they had, and lift takes them off again.
func (b *buffer) put(d *decision) { b.atSeats(d.fit.Put) }

func (b *buffer) lift(d *decision) { b.atSeats(d.fit.Lift) }

func (b *buffer) atSeats(do func(fit.Tenant, *fit.Place)) {
	for i, p := range b.seats.places {
		for range b.seats.counts[i] {
			do(b.room.tenant, p)
		}
	}
}
