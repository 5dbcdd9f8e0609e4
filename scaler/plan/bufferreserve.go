package plan

import (
	"fmt"

	"windlass.dev/windlass/scaler/fit"
)

// bufferReserves are the buffers while nodes are looked for that may go. Each has the seats
// of its own pods, and all share what is free beside those. Pods that move may land on
// seats of any buffer, whose pods then take what is free: so they are adrift to the others
// as moving pods are.
func (r *retirement) bufferReserves(unlanded []fit.Tenant, filled map[*fit.Place]bool) []*reserve {
	var list []*reserve
	for _, b := range r.buffers {
		if b.room == nil || b.room.wanted == 0 {
			continue
		}
		b.put(r.decision)
		list = append(list, &reserve{headRoom: b.room, filled: filled, adrift: r.measured(b.room, unlanded), own: r.seatsOn(b)})
	}
	for _, s := range list {
		s.count(r)
		if !r.fit.Unrelated(s.tenant.Class) {
			r.choosy = true
		}
	}
	for _, b := range r.buffers {
		b.lift(r.decision)
	}
	return list
}

// seatsOn counts the buffer's seats on each node.
func (d *decision) seatsOn(b *buffer) map[*node]int {
	at := map[*fit.Place]*node{}
	for _, n := range d.nodes {
		at[n.place] = n
	}
	own := map[*node]int{}
	for i, p := range b.seats.places {
		if n := at[p]; n != nil {
			own[n] += b.seats.counts[i]
		}
	}
	return own
}

// keeper is who keeps the room, for people.
func (s *reserve) keeper() string {
	if s.buffer != nil {
		return "kept for " + s.String()
	}
	return s.String()
}

// unseats says that pods of other buffers lose their seats with the candidate's node.
func (r *retirement) unseats(s *reserve, c *candidate) bool {
	if s.buffer == nil {
		return false
	}
	for _, o := range r.reserves {
		if o != s && o.own[c.node] > 0 {
			return true
		}
	}
	return false
}

// displaced are the pods of other buffers that have no seats for certain when the
// candidate is gone, in the measure of this one.
func (r *retirement) displaced(s *reserve, c *candidate) adrift {
	var sum adrift
	if s.buffer == nil {
		return sum
	}
	for i, o := range r.reserves {
		if o == s || o.buffer == nil {
			continue
		}
		lost := o.homeless + o.own[c.node] + o.adrift.with(r.loads(c)[i]).cost(o.free)
		each := r.measured(s.headRoom, []fit.Tenant{o.tenant})
		sum = sum.with(each.times(min(o.wanted, lost)))
	}
	return sum
}

// seatsChoosy seats the pods of all buffers on the nodes that stay, where some buffer's
// are choosy about who else is where, and says how many find a seat. It leaves all as it
// was.
func (r *retirement) seatsChoosy() map[*buffer]int {
	if !r.choosy {
		return nil
	}
	start := r.fit.Fork()
	defer r.fit.Revert(start)
	row, refused := r.fit.NewRow(places(r.in(serving))), map[*fit.Class]bool{}
	seated := map[*buffer]int{}
	pods, of := r.bufferPods()
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
func (r *retirement) crowdsOut() (Reason, string) {
	if !r.choosy {
		return "", ""
	}
	after := r.seatsChoosy()
	for _, b := range r.buffers {
		if before := r.seatedBefore[b]; after[b] < before {
			return NodeHeadRoom, fmt.Sprintf("kept for %s: room for %s %s is wanted, and without this node there is for %d, by all that they ask", b.room, counted(b.room.wanted, "pod"), b.room.size(), after[b])
		}
	}
	return "", ""
}
