package scaledown

import (
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// bufferReserves are the buffers while nodes are looked for that may go. Each has the seats
// of its own pods, and all share what is free beside those. Pods that move may land on
// seats of any buffer, whose pods then take what is free: so they are adrift to the others
// as moving pods are.
func (r *retirement) bufferReserves(unlanded []fit.Tenant, filled map[*fit.Place]bool) []*reserve {
	var list []*reserve
	for _, b := range r.Buffers {
		if b.Room == nil || b.Room.Wanted == 0 {
			continue
		}
		b.Put(r.ScaleDown.Seats)
		list = append(list, &reserve{HeadRoom: b.Room, filled: filled, adrift: r.measured(b.Room, unlanded), own: r.seatsOn(b)})
	}
	for _, s := range list {
		s.count(r)
		if !r.Fit.Unrelated(s.Tenant.Class) {
			r.choosy = true
		}
	}
	for _, b := range r.Buffers {
		b.Lift(r.ScaleDown.Seats)
	}
	return list
}

// seatsOn counts the buffer's seats on each node.
func (d *ScaleDown) seatsOn(b *seats.Buffer) map[*cluster.Node]int {
	at := map[*fit.Place]*cluster.Node{}
	for _, n := range d.Nodes {
		at[n.Place] = n
	}
	own := map[*cluster.Node]int{}
	for i, p := range b.Seats.Places {
		if n := at[p]; n != nil {
			own[n] += b.Seats.Counts[i]
		}
	}
	return own
}

// keeper is who keeps the room, for people.
// why says what keeps a node for it.
func (s *reserve) why(wanted int) verdict.Details {
	if s.Buffer != nil {
		return s.Keeps(wanted)
	}
	return s.IsWanted(wanted)
}

// unseats says that pods of other buffers lose their seats with the candidate's node.
func (r *retirement) unseats(s *reserve, c *candidate) bool {
	if s.Buffer == nil {
		return false
	}
	for _, o := range r.reserves {
		if o != s && o.own[c.Node] > 0 {
			return true
		}
	}
	return false
}

// displaced are the pods of other buffers that have no seats for certain when the
// candidate is gone, in the measure of this one.
func (r *retirement) displaced(s *reserve, c *candidate) adrift {
	var sum adrift
	if s.Buffer == nil {
		return sum
	}
	for i, o := range r.reserves {
		if o == s || o.Buffer == nil {
			continue
		}
		lost := o.homeless + o.own[c.Node] + o.adrift.with(r.loads(c)[i]).cost(o.free)
		each := r.measured(s.HeadRoom, []fit.Tenant{o.Tenant})
		sum = sum.with(each.times(min(o.Wanted, lost)))
	}
	return sum
}

// seatsChoosy seats the pods of all buffers on the nodes that stay, where some buffer's
// are choosy about who else is where, and says how many find a seat. It leaves all as it
// was.
func (r *retirement) seatsChoosy() map[*seats.Buffer]int {
	if !r.choosy {
		return nil
	}
	start := r.Fit.Fork()
	defer r.Fit.Revert(start)
	row, refused := r.Fit.NewRow(cluster.Places(r.In(cluster.Serving))), map[*fit.Class]bool{}
	seated := map[*seats.Buffer]int{}
	pods, of := r.BufferPods()
	for _, t := range pods {
		switch {
		case refused[t.Class]:
		case row.Seat(t) != nil:
			seated[of[t.Pod]]++
		default:
			refused[t.Class] = true
		}
	}
	return seated
}

// crowdsOut says which buffer's choosy pods would have fewer seats as things stand in
// thought; empty if none's.
func (r *retirement) crowdsOut() (verdict.Reason, verdict.Details) {
	if !r.choosy {
		return "", nil
	}
	after := r.seatsChoosy()
	for _, b := range r.Buffers {
		if before := r.seatedBefore[b]; after[b] < before {
			return verdict.NodeHeadRoom, b.Room.Keeps(b.Room.Wanted).And(", and without this node there is for {count}, by all that they ask", verdict.Count(after[b]))
		}
	}
	return "", nil
}
