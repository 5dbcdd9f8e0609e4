package scaledown

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// reserve is a head-room while nodes are looked for that may go. Their pods may land on
// any node that stays, not only where we would put them. What that costs at most is said
// by adrift.cost.
type reserve struct {
	*seats.HeadRoom
	// slots is the room that each node has that serves, and free that of all that stay.
	slots map[*cluster.Node]stake
	free
	// adrift are the pods that may land anywhere, and filled the nodes on which some of
	// these have seats in thought: if they land elsewhere, there is more room on them.
	adrift adrift
	filled map[*fit.Place]bool

	// own are the pods of a buffer that have their seats on each node: these seats are its
	// own, and what is free beside those of all buffers is everybody's. Homeless is how
	// many have lost their seats with the nodes that go.
	own      map[*cluster.Node]int
	homeless int
}

// stake is the room that a node has for pods of a head-room.
type stake struct {
	slots int
	// brim is how much of what one pod asks for is not free beside these slots, in
	// thousandths: pods that take more than the rest of it cost a slot more than they take
	// room of.
	brim int64
	// grade tells how much of a slot at most each pod costs by its number, see grades.
	grade int
}

// grades are parts of a slot, in thousandths. A node that is full by the number of its
// pods loses its slots to as many as it has of these and beside: each costs one slot's
// share of that number.
var grades = [...]int64{16, 32, 63, 125, 250, 500, 1000}

func newStake(s fit.Slots, own int) stake {
	h := stake{slots: s.N + own, brim: 1000 - s.Over}
	for h.grade < len(grades)-1 && int64(h.slots)*1000 > grades[h.grade]*int64(h.slots+s.Beside) {
		h.grade++
	}
	return h
}

// free is the room of several nodes together.
type free struct {
	room int
	brim int64
	// graded are the slots by the grades of their nodes.
	graded [len(grades)]int
}

// with counts one more node, or by -1 one less.
func (f free) with(h stake, sign int) free {
	if h.slots == 0 {
		return f
	}
	f.room, f.brim = f.room+sign*h.slots, f.brim+int64(sign)*h.brim
	f.graded[h.grade] += sign * h.slots
	return f
}

// adrift is pods without a place of their own, measured in those of a head-room.
type adrift struct {
	// count is how many they are, and takers those of them that take any room.
	count, takers int
	// share is what they take room of, in thousandths, and whole the same in pods, each
	// of them rounded up and at least one. Graded is the share where each pod costs a
	// grade at least.
	share, whole int64
	graded       [len(grades)]int64
}

// oneAdrift is one pod that takes that share.
func oneAdrift(share int64) adrift {
	a := adrift{count: 1, share: share, whole: max(1, (share+999)/1000)}
	if share > 0 {
		a.takers = 1
	}
	for i, least := range grades {
		a.graded[i] = max(share, least)
	}
	return a
}

func (a adrift) with(b adrift) adrift {
	sum := adrift{count: a.count + b.count, takers: a.takers + b.takers, share: a.share + b.share, whole: a.whole + b.whole}
	for i := range grades {
		sum.graded[i] = a.graded[i] + b.graded[i]
	}
	return sum
}

func (a adrift) times(n int) adrift {
	product := adrift{count: a.count * n, takers: a.takers * n, share: a.share * int64(n), whole: a.whole * int64(n)}
	for i := range grades {
		product.graded[i] = a.graded[i] * int64(n)
	}
	return product
}

// newReserves are the head-rooms as they stand before any further node goes.
func (r *retirement) newReserves() []*reserve {
	if len(r.HeadRooms)+len(r.Buffers) == 0 {
		return nil
	}
	var list []*reserve
	unlanded, filled := r.unlanded()
	for _, h := range r.HeadRooms {
		s := &reserve{HeadRoom: r.withWaiting(h, unlanded), filled: filled, adrift: r.measured(h, unlanded)}
		s.count(r)
		list = append(list, s)
	}
	return append(list, r.bufferReserves(unlanded, filled)...)
}

// withWaiting is the cluster's headroom when the pods that wait are where they have seats:
// then a percentage is of theirs too. In a group, pods that may land there count as adrift.
func (d *ScaleDown) withWaiting(h *seats.HeadRoom, unlanded []fit.Tenant) *seats.HeadRoom {
	if h.Group != nil || h.Asked.Percent == 0 {
		return h
	}
	milli, bytes := d.Requested(nil)
	for _, t := range unlanded {
		if t.Pod.Node == "" {
			c, m := t.Class.CPUAndMemory()
			milli, bytes = milli+c, bytes+m
		}
	}
	then := *h
	then.Wanted = h.Percentage(milli, bytes)
	return &then
}

// count counts the slots on the nodes that serve.
func (s *reserve) count(r *retirement) {
	s.slots = map[*cluster.Node]stake{}
	for _, n := range r.In(cluster.Serving) {
		if !n.Open || !s.Has(n) {
			continue
		}
		if h := newStake(r.Fit.Slots(s.Tenant.Class, n.Place), s.own[n]); h.slots > 0 {
			s.slots[n], s.free = h, s.free.with(h, 1)
		}
	}
}

// unlanded are the pods that have seats in thought, on nodes where they do not run, and
// where these are.
func (r *retirement) unlanded() (list []fit.Tenant, on map[*fit.Place]bool) {
	on = map[*fit.Place]bool{}
	add := func(p *fit.Place, name string) { // empty for a node that has yet to register: nothing runs there
		for _, t := range p.Seated() {
			runs := t.Pod.Node != "" && t.Pod.Node == name
			if !runs && !cluster.Imaginary(t.Pod) {
				list = append(list, t)
				on[p] = true
			}
		}
	}
	own := map[*fit.Place]bool{}
	for _, n := range r.Nodes {
		own[n.Place] = true
		if n.Open {
			add(n.Place, n.Name)
		}
	}
	for _, p := range r.UnsettledPlaces() {
		if !own[p] {
			add(p, "")
		}
	}
	return list, on
}

// measured measures the pods that may come to where the head-room is.
func (d *ScaleDown) measured(h *seats.HeadRoom, pods []fit.Tenant) adrift {
	var sum adrift
	comes := map[*fit.Class]bool{}
	for _, t := range pods {
		may, known := comes[t.Class]
		if !known {
			may = h.Group == nil || d.Fit.CouldTake(t.Class, anyLooks(h.Group))
			comes[t.Class] = may
		}
		if !may {
			continue
		}
		sum = sum.with(oneAdrift(h.Tenant.Class.Share(t.Class)))
	}
	return sum
}

// anyLooks are those of the group's new nodes and of the nodes that it has, which may be
// others: of a zone that the group has left, or of an earlier launch template.
func anyLooks(g *cluster.Group) []*fit.Looks {
	if g.LooksThere == nil {
		g.LooksThere = slices.Clone(g.Looks)
		for _, n := range g.Nodes {
			if l := n.Place.Looks(); !slices.Contains(g.LooksThere, l) {
				g.LooksThere = append(g.LooksThere, l)
			}
		}
	}
	return g.LooksThere
}

// without is how many pods of the head-room have room for certain when the node is gone
// and these pods are adrift, and how many there shall be room for then.
func (s *reserve) without(n *cluster.Node, a adrift) (room, wanted int) {
	stays := s.free.with(s.slots[n], -1)
	room = stays.room - a.cost(stays)
	wanted = s.Wanted
	if s.Group != nil {
		wanted += s.PercentOf(float64(a.share) / 1000)
	}
	return room, wanted
}

// cost is how many pods of a head-room lose their room at most, wherever these land on
// nodes with such room. By what they take, a node loses that, and its brim; by their
// number, as much as its grade says for each, and never more than all it has. So nodes of
// the higher grades are given up as a whole where that costs less.
func (a adrift) cost(on free) int {
	least, givenUp := min(a.whole, 1<<30), 0
	brim := min(on.brim, int64(a.takers)*1000)
	for i := len(grades) - 1; i >= 0; i-- {
		least = min(least, int64(givenUp)+(a.graded[i]+brim)/1000)
		givenUp += on.graded[i]
	}
	return int(min(least, int64(givenUp)))
}

// reserved says why head-room needs the node; empty if none does.
func (r *retirement) reserved(c *candidate) (verdict.Reason, verdict.Details) {
	r.Fit.Spend(len(r.reserves) * len(r.reserves))
	for i, s := range r.reserves {
		mine := r.loads(c)[i]
		if s.slots[c.Node].slots == 0 && mine.count == 0 && !(s.Has(c.Node) && s.filled[c.Place]) && !r.unseats(s, c) {
			continue
		}
		room, wanted := s.without(c.Node, s.adrift.with(mine).with(r.displaced(s, c)))
		if room >= wanted {
			continue
		}
		why := s.why(wanted).And(", and without this node there is for {count}", verdict.Count(max(0, room)))
		if mine.count > 0 {
			why = why.And(", wherever its pods land")
		}
		return verdict.NodeHeadRoom, why
	}
	return "", nil
}

// withheld says why no further node may go beside those that do: for its group, for the
// cluster, or for head-room; empty if it may.
func (r *retirement) withheld(c *candidate) (verdict.Reason, verdict.Details) {
	if reason, why := r.limited(c.Node); reason != "" {
		return reason, why
	}
	return r.reserved(c)
}

// reserve counts the candidate among those that go, by -1, or that stay again: its room
// is no head-room then, and its pods are adrift.
func (r *retirement) reserve(c *candidate, sign int) {
	for i, s := range r.reserves {
		s.adrift = s.adrift.with(r.loads(c)[i].times(-sign))
		s.free = s.free.with(s.slots[c.Node], sign)
		s.homeless -= sign * s.own[c.Node]
	}
}

// loads are the candidate's movers in the measure of each head-room.
func (r *retirement) loads(c *candidate) []adrift {
	if c.adrift == nil {
		for _, s := range r.reserves {
			c.adrift = append(c.adrift, r.measured(s.HeadRoom, c.movers))
		}
	}
	return c.adrift
}

// countReserves counts the room of a new node among the reserves, until it is taken back.
func (r *retirement) countReserves(g *cluster.Group, p *fit.Place) (takeBack func()) {
	var undo []func()
	for _, s := range r.reserves {
		if s.Group != nil && s.Group != g {
			continue
		}
		before := s.free
		s.free = s.free.with(newStake(r.Fit.Slots(s.Tenant.Class, p), 0), 1)
		undo = append(undo, func() { s.free = before })
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}
