package plan

import (
	"fmt"

	"windlass.dev/windlass/scaler/fit"
)

// reserve is a head-room while nodes are looked for that may go. Their pods may land on
// any node that stays, not only where we would put them. On each node the pods that land
// there cost as many of the head-room's as they take room of, rounded up. So all together
// they cost at most their sum, and one more for each node on which they may land.
type reserve struct {
	*headRoom
	// slots is how many pods of the head-room have room on each node that serves, room
	// how many on all that stay, and holders on how many of these.
	slots         map[*node]int
	room, holders int
	// beside is how many more pods every one of these nodes takes by their number.
	beside int
	// adrift are the pods that may land anywhere, and filled the nodes on which some of
	// these have seats in thought: if they land elsewhere, there is more room on them.
	adrift adrift
	filled map[*fit.Place]bool

	// own are the pods of a buffer that have their seats on each node: these seats are its
	// own, and what is free beside those of all buffers is everybody's. Homeless is how
	// many have lost their seats with the nodes that go.
	own      map[*node]int
	homeless int
}

// adrift is pods without a place of their own, measured in those of a head-room.
type adrift struct {
	count int
	// share is what they take room of, in thousandths, and whole the same in pods, each
	// of them rounded up and at least one.
	share, whole int64
}

func (a adrift) with(b adrift) adrift {
	return adrift{a.count + b.count, a.share + b.share, a.whole + b.whole}
}

func (a adrift) times(n int) adrift {
	return adrift{a.count * n, a.share * int64(n), a.whole * int64(n)}
}

// newReserves are the head-rooms as they stand before any further node goes.
func (r *retirement) newReserves() []*reserve {
	if len(r.headRooms)+len(r.buffers) == 0 {
		return nil
	}
	var list []*reserve
	unlanded, filled := r.unlanded()
	for _, h := range r.headRooms {
		s := &reserve{headRoom: r.withWaiting(h, unlanded), filled: filled, adrift: r.measured(h, unlanded)}
		s.count(r)
		list = append(list, s)
	}
	return append(list, r.bufferReserves(unlanded, filled)...)
}

// withWaiting is the cluster's head-room when the pods that wait are where they have seats:
// then a percentage is of theirs too. In a group, pods that may land there count as adrift.
func (d *decision) withWaiting(h *headRoom, unlanded []fit.Tenant) *headRoom {
	if h.group != nil || h.asked.Percent == 0 {
		return h
	}
	milli, bytes := d.requested(nil)
	for _, t := range unlanded {
		if t.Pod.Node == "" {
			c, m := t.Class.CPUAndMemory()
			milli, bytes = milli+c, bytes+m
		}
	}
	then := *h
	then.wanted = h.percentage(milli, bytes)
	return &then
}

// count counts the slots on the nodes that serve.
func (s *reserve) count(r *retirement) {
	s.slots, s.beside = map[*node]int{}, 1<<30
	for _, n := range r.in(serving) {
		if !n.open || !s.has(n) {
			continue
		}
		slots, beside := r.fit.Slots(s.tenant.Class, n.place)
		slots += s.own[n]
		if slots == 0 {
			continue
		}
		s.slots[n], s.beside = slots, min(s.beside, beside)
		s.room, s.holders = s.room+slots, s.holders+1
	}
}

// unlanded are the pods that have seats in thought, on nodes where they do not run, and
// where these are.
func (r *retirement) unlanded() (list []fit.Tenant, on map[*fit.Place]bool) {
	on = map[*fit.Place]bool{}
	add := func(p *fit.Place, name string) {
		for _, t := range p.Seated() {
			if t.Pod.Node != name && !imaginary(t.Pod) {
				list = append(list, t)
				on[p] = true
			}
		}
	}
	own := map[*fit.Place]bool{}
	for _, n := range r.nodes {
		own[n.place] = true
		if n.open {
			add(n.place, n.Name)
		}
	}
	for _, p := range r.unsettledPlaces() {
		if !own[p] {
			add(p, "")
		}
	}
	return list, on
}

// measured measures the pods that may come to where the head-room is.
func (d *decision) measured(h *headRoom, pods []fit.Tenant) adrift {
	var sum adrift
	comes := map[*fit.Class]bool{}
	for _, t := range pods {
		may, known := comes[t.Class]
		if !known {
			may = h.group == nil || d.fit.CouldTake(t.Class, h.group.looks)
			comes[t.Class] = may
		}
		if !may {
			continue
		}
		share := h.tenant.Class.Share(t.Class)
		sum = sum.with(adrift{1, share, max(1, (share+999)/1000)})
	}
	return sum
}

// without is how many pods of the head-room have room for certain when the node is gone
// and these pods are adrift, and how many there shall be room for then.
func (s *reserve) without(n *node, a adrift) (room, wanted int) {
	holders := s.holders
	if s.slots[n] > 0 {
		holders--
	}
	room = s.room - s.slots[n] - a.cost(holders, s.beside)
	wanted = s.wanted
	if s.group != nil {
		wanted += s.percentOf(float64(a.share) / 1000)
	}
	return room, wanted
}

// cost is how many pods of a head-room lose their room at most, wherever these land on so
// many nodes, each of which has seats beside for some more pods.
func (a adrift) cost(nodes, beside int) int {
	switch {
	case a.count > beside:
		return int(min(a.whole, 1<<30)) // their mere number may be what costs
	case a.share == 0:
		return 0
	}
	return int(min(a.whole, (a.share+999)/1000+int64(max(0, min(a.count, nodes)-1)), 1<<30))
}

// reserved says why head-room needs the node; empty if none does.
func (r *retirement) reserved(c *candidate) (Reason, string) {
	for i, s := range r.reserves {
		mine := r.loads(c)[i]
		if s.slots[c.node] == 0 && mine.count == 0 && !(s.has(c.node) && s.filled[c.place]) && !r.unseats(s, c) {
			continue
		}
		room, wanted := s.without(c.node, s.adrift.with(mine).with(r.displaced(s, c)))
		if room >= wanted {
			continue
		}
		landing := ""
		if mine.count > 0 {
			landing = ", wherever its pods land"
		}
		return NodeHeadRoom, fmt.Sprintf("%s: room for %s %s is wanted, and without this node there is for %d%s", s.keeper(), counted(wanted, "pod"), s.size(), max(0, room), landing)
	}
	return "", ""
}

// withheld says why no further node may go beside those that do: for its group, for the
// cluster, or for head-room; empty if it may.
func (r *retirement) withheld(c *candidate) (Reason, string) {
	if reason, why := r.limited(c.node); reason != "" {
		return reason, why
	}
	return r.reserved(c)
}

// reserve counts the candidate among those that go, by -1, or that stay again: its room
// is no head-room then, and its pods are adrift.
func (r *retirement) reserve(c *candidate, sign int) {
	for i, s := range r.reserves {
		s.adrift = s.adrift.with(r.loads(c)[i].times(-sign))
		if slots := s.slots[c.node]; slots > 0 {
			s.room, s.holders = s.room+sign*slots, s.holders+sign
		}
		s.homeless -= sign * s.own[c.node]
	}
}

// loads are the candidate's movers in the measure of each head-room.
func (r *retirement) loads(c *candidate) []adrift {
	if c.adrift == nil {
		for _, s := range r.reserves {
			c.adrift = append(c.adrift, r.measured(s.headRoom, c.movers))
		}
	}
	return c.adrift
}

// countReserves counts the room of a new node among the reserves, until it is taken back.
func (r *retirement) countReserves(g *group, p *fit.Place) (takeBack func()) {
	var undo []func()
	for _, s := range r.reserves {
		if s.group != nil && s.group != g {
			continue
		}
		slots, beside := r.fit.Slots(s.tenant.Class, p)
		if slots == 0 {
			continue
		}
		before := *s
		s.room, s.holders, s.beside = s.room+slots, s.holders+1, min(s.beside, beside)
		undo = append(undo, func() { s.room, s.holders, s.beside = before.room, before.holders, before.beside })
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}
