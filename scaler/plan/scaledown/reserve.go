package scaledown

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// reserve is a headroom while the search for unneeded nodes goes on. Their pods may land on any
// node that stays, not only where we would put them. What that costs at most is adrift.cost.
type reserve struct {
	*seats.Headroom
	// slots is the room that each node has that serves, and free that of all that stay.
	slots map[*cluster.Node]stake
	free
	// adrift are the pods that may land anywhere, and filled the nodes on which some of
	// these have seats in the simulation: if they land elsewhere, there is more room on them.
	adrift adrift
	filled map[*fit.Place]bool

	// list is the number of the list whose headrooms add up. Own are its pods that have their seats
	// on each node: these seats are its own, and what is free beside those of the whole list
	// belongs to all in it. Unplaced is how many have lost their seats with the nodes that go.
	list     int
	own      map[*cluster.Node]int
	unplaced int
}

// newReserves are the headrooms as they stand before any further node is removed. Pods that move
// may land on seats of any headroom of a list, whose pods then take what is free: so they are
// adrift to the others as moving pods are.
func (r *nodeSearch) newReserves() (all []*reserve) {
	if len(r.Headrooms) == 0 {
		return nil
	}
	unlanded, filled := r.unlanded()
	start := r.Fit.Fork()
	for i, list := range r.Headrooms {
		pods, of := r.HeadRoomPods(list)
		have, _ := seats.SeatHeadRoom(pods, r.HeadRoomRow(list).Seat)
		at := map[*seats.Headroom][]cluster.Move{}
		for _, m := range have {
			at[of[m.Pod.Pod]] = append(at[of[m.Pod.Pod]], m)
		}
		for _, h := range list {
			s := &reserve{Headroom: r.withWaiting(h, unlanded), filled: filled, adrift: r.measured(h, unlanded), list: i}
			s.count(r, at[h])
			all = append(all, s)
		}
		r.Fit.Revert(start)
		if slices.ContainsFunc(list, func(h *seats.Headroom) bool { return !r.Fit.Unrelated(h.Tenant.Class) }) {
			r.choosy = append(r.choosy, list)
		}
	}
	return all
}

// withWaiting is the cluster's headroom when the pending pods are where they have seats: then a
// percentage is of theirs too. In a group, pods that may land there count as adrift.
func (d *ScaleDown) withWaiting(h *seats.Headroom, unlanded []fit.Tenant) *seats.Headroom {
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

// count counts the slots on the nodes that serve, beside the seats of others in its list, and
// its own seats.
func (s *reserve) count(r *nodeSearch, own []cluster.Move) {
	start, at, more := r.Fit.Fork(), map[*fit.Place]int{}, map[*cluster.Node]int{}
	for n := range r.In(cluster.Serving) {
		more[n] = r.Fit.Slots(s.Tenant.Class, n.Place).N
	}
	for _, m := range own {
		r.Fit.Lift(m.Pod, m.To)
		at[m.To]++
	}
	s.slots, s.own = map[*cluster.Node]stake{}, map[*cluster.Node]int{}
	for n := range r.In(cluster.Serving) {
		s.own[n] = at[n.Place]
		if !n.Open || !s.Has(n) {
			continue
		}
		slots := r.Fit.Slots(s.Tenant.Class, n.Place)
		slots.N = min(slots.N, s.own[n]+more[n]) // who else is where may allow for fewer
		if h := newStake(slots); h.slots > 0 {
			s.slots[n], s.free = h, s.free.with(h, 1)
		}
	}
	r.Fit.Revert(start)
}

// unlanded are the pods that have seats in the simulation, on nodes where they do not run, and
// where these are.
func (r *nodeSearch) unlanded() (list []fit.Tenant, on map[*fit.Place]bool) {
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

// measured measures the pods that may come to where the headroom is.
func (d *ScaleDown) measured(h *seats.Headroom, pods []fit.Tenant) adrift {
	var sum adrift
	comes := map[*fit.Class]bool{}
	for _, t := range pods {
		may, known := comes[t.Class]
		if !known {
			may = h.Group == nil || d.Fit.CouldTake(t.Class, anyTemplates(h.Group))
			comes[t.Class] = may
		}
		if !may {
			continue
		}
		sum = sum.with(oneAdrift(h.Tenant.Class.Share(t.Class)))
	}
	return sum
}

// anyTemplates are those of the group's new nodes and of the nodes that it has, which may be
// others: of a zone that the group has left, or of an earlier launch template.
func anyTemplates(g *cluster.Group) []*fit.NodeTemplate {
	if g.TemplatesThere == nil {
		g.TemplatesThere = slices.Clone(g.Templates)
		for _, n := range g.Nodes {
			if l := n.Place.Template(); !slices.Contains(g.TemplatesThere, l) {
				g.TemplatesThere = append(g.TemplatesThere, l)
			}
		}
	}
	return g.TemplatesThere
}

// without is how many pods of the headroom have room for certain when the node is removed and these
// pods are adrift, and how many there shall be room for then.
func (s *reserve) without(n *cluster.Node, a adrift) (room, wanted int) {
	stays := s.free.with(s.slots[n], -1)
	room = stays.room - a.cost(stays)
	wanted = s.Wanted
	if s.Group != nil {
		wanted += s.PercentOf(float64(a.share) / 1000)
	}
	return room, wanted
}

// whyReserved says why headroom needs the node; empty if none does.
func (r *nodeSearch) whyReserved(c *candidate) (verdict.Reason, verdict.Details) {
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
		why := s.why(wanted).And(", and without this node there is room for {count}", verdict.Count(max(0, room)))
		if mine.count > 0 {
			why = why.And(", wherever its pods land")
		}
		return verdict.NodeHeadroom, why
	}
	return "", nil
}

// why says why a node is needed for it.
func (s *reserve) why(wanted int) verdict.Details {
	if s.Buffer != nil {
		return s.Keeps(wanted)
	}
	return s.IsWanted(wanted)
}

// unseats reports whether pods of others in its list lose their seats with the candidate's node.
func (r *nodeSearch) unseats(s *reserve, c *candidate) bool {
	return slices.ContainsFunc(r.reserves, func(o *reserve) bool { return o != s && o.list == s.list && o.own[c.Node] > 0 })
}

// displaced are the pods of others in its list that have no seats for certain when the candidate is
// removed, in the measure of this one.
func (r *nodeSearch) displaced(s *reserve, c *candidate) (sum adrift) {
	for i, o := range r.reserves {
		if o == s || o.list != s.list {
			continue
		}
		lost := o.unplaced + o.own[c.Node] + o.adrift.with(r.loads(c)[i]).cost(o.free)
		each := r.measured(s.Headroom, []fit.Tenant{o.Tenant})
		sum = sum.with(each.times(min(o.Wanted, lost)))
	}
	return sum
}

// seatsChoosy seats the pods of headrooms of which some are choosy about who else is where, on the
// nodes that stay, and counts how many of each find a seat. All is as before then.
func (r *nodeSearch) seatsChoosy() map[*seats.Headroom]int {
	seated := map[*seats.Headroom]int{}
	start := r.Fit.Fork()
	for _, list := range r.choosy {
		pods, of := r.HeadRoomPods(list)
		have, _ := seats.SeatHeadRoom(pods, r.Fit.NewRow(r.PlacesIn(cluster.Serving)).Seat)
		for _, m := range have {
			seated[of[m.Pod.Pod]]++
		}
		r.Fit.Revert(start)
	}
	return seated
}

// whyCrowded says which headroom's choosy pods would have fewer seats as things stand in the
// simulation; empty if none's.
func (r *nodeSearch) whyCrowded() (verdict.Reason, verdict.Details) {
	after := r.seatsChoosy()
	for _, h := range slices.Concat(r.choosy...) {
		if before := r.seatedBefore[h]; after[h] < before {
			return verdict.NodeHeadroom, h.Keeps(h.Wanted).And(", and without this node there is room for {count}, by their affinity and spread terms too", verdict.Count(after[h]))
		}
	}
	return "", nil
}

// reserve counts the candidate among those that go, by -1, or that stay again: its room
// is no headroom then, and its pods are adrift.
func (r *nodeSearch) reserve(c *candidate, sign int) {
	for i, s := range r.reserves {
		s.adrift = s.adrift.with(r.loads(c)[i].times(-sign))
		s.free = s.free.with(s.slots[c.Node], sign)
		s.unplaced -= sign * s.own[c.Node]
	}
}

// loads are the candidate's movers in the measure of each headroom.
func (r *nodeSearch) loads(c *candidate) []adrift {
	if c.adrift == nil {
		for _, s := range r.reserves {
			c.adrift = append(c.adrift, r.measured(s.Headroom, c.movers))
		}
	}
	return c.adrift
}

// countReserves counts the room of a new node among the reserves, until that is undone.
func (r *nodeSearch) countReserves(g *cluster.Group, p *fit.Place) (takeBack func()) {
	var undo []func()
	for _, s := range r.reserves {
		if s.Group != nil && s.Group != g {
			continue
		}
		before := s.free
		s.free = s.free.with(newStake(r.Fit.Slots(s.Tenant.Class, p)), 1)
		undo = append(undo, func() { s.free = before })
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}
