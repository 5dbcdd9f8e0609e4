package seats

import (
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// bufferRow is where pods of buffers find room, the best first.
type bufferRow struct {
	free, staying, coming, fresh *fit.Row
}

func (d *Seats) BufferRow() bufferRow {
	room := d.OpenRoom()
	return bufferRow{room.free, room.staying, room.coming, d.Fit.NewRow(d.AllFresh())}
}

// Seat gives the pod a seat; fresh says that it is on a node that is only planned.
func (r bufferRow) Seat(t fit.Tenant) (at *fit.Place, fresh bool) {
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
	Places []*fit.Place
	Counts []int
	index  map[*fit.Place]int
}

func (s *seatCounts) Add(p *fit.Place) {
	i, known := s.index[p]
	if !known {
		if s.index == nil {
			s.index = map[*fit.Place]int{}
		}
		i = len(s.Places)
		s.index[p] = i
		s.Places, s.Counts = append(s.Places, p), append(s.Counts, 0)
	}
	s.Counts[i]++
}

// BufferPods are the pods of all buffers, in the order in which they are placed, and whose
// each is. All those of a buffer are one and the same.
func (d *Seats) BufferPods() (pods []fit.Tenant, of map[*fleet.Pod]*Buffer) {
	of = map[*fleet.Pod]*Buffer{}
	for _, b := range d.Buffers {
		if b.Room != nil {
			pods = append(pods, slices.Repeat([]fit.Tenant{b.Room.Tenant}, b.Room.Wanted)...)
			of[b.Room.Tenant.Pod] = b
		}
	}
	return d.InOrder(pods), of
}

// lackingBuffers is a pod of each buffer for which there is too little room without a new
// node.
func (d *Seats) lackingBuffers() []fit.Tenant {
	start := d.Fit.Fork()
	defer d.Fit.Revert(start)
	var list []fit.Tenant
	row, refused := d.BufferRow(), map[*fit.Class]bool{}
	pods, _ := d.BufferPods()
	for _, t := range pods {
		if refused[t.Class] {
			continue
		}
		if p, _ := row.Seat(t); p == nil {
			refused[t.Class] = true
			list = append(list, t)
		}
	}
	return list
}

// Put gives the buffer's pods the seats that they had, and lift takes them off again.
func (b *Buffer) Put(d *Seats) { b.atSeats(d.Fit.Put) }

func (b *Buffer) Lift(d *Seats) { b.atSeats(d.Fit.Lift) }

func (b *Buffer) atSeats(do func(fit.Tenant, *fit.Place)) {
	for i, p := range b.Seats.Places {
		for range b.Seats.Counts[i] {
			do(b.Room.Tenant, p)
		}
	}
}
