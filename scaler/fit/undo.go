package fit

import "slices"

// TrySeat gives the pod a seat at p if it fits.
func (c *Cluster) TrySeat(t Tenant, p *Place) bool {
	m := c.member(t.Class)
	c.steps += m.weight()
	if c.ask(m, p) != fits {
		return false
	}
	c.seat(m, t, p)
	return true
}

// Seat gives the pod a seat at the first place that it fits, and nil if it fits
// none.
func (c *Cluster) Seat(t Tenant, places []*Place) *Place {
	for _, p := range places {
		if c.TrySeat(t, p) {
			return p
		}
	}
	return nil
}

// seat gives a pod a seat that it fits. Its volumes and devices are taken.
func (c *Cluster) seat(m *member, t Tenant, p *Place) {
	if m.own != nil {
		c.undos = append(c.undos, c.lore.filters.Seat(m.own, p.host))
	}
	c.log = append(c.log, change{p, t, given})
	c.put(m, t, p)
}

// Put gives the pod a seat whether it fits or not: it is there already.
func (c *Cluster) Put(t Tenant, p *Place) {
	m := c.member(t.Class)
	if m.own != nil {
		c.undos = append(c.undos, c.lore.filters.Put(m.own, p.host))
	}
	c.log = append(c.log, change{p, t, given})
	c.put(m, t, p)
}

// Crew are pods that are on a node together. It may be kept for as long as these are there, and the
// cluster Knows it.
type Crew struct {
	tenants []Tenant
	// takes is what they use of each resource, by its number.
	takes vector
	// plain: none of them counts for more than that.
	plain bool
	lore  *lore
	era   int
}

// NewCrew is that of tenants of the cluster; the slice is the crew's from then on.
func (c *Cluster) NewCrew(tenants []Tenant) *Crew {
	crew := &Crew{tenants: slices.Clip(tenants), plain: true, lore: c.lore, era: c.lore.eras}
	for _, t := range tenants {
		for _, a := range t.Class.takes {
			crew.takes.add(a.resource, a.n)
		}
		crew.plain = crew.plain && t.Class.own == nil && len(t.Class.ports) == 0 && !t.Class.shuns
	}
	return crew
}

// Knows reports whether the classes of a crew are still those of its pods.
func (c *Cluster) Knows(crew *Crew) bool {
	return crew != nil && crew.lore == c.lore && crew.era == c.lore.eras
}

// Furnish gives the first pods of a place their seats, for good: no Revert undoes them. No other pod
// has a seat there yet.
func (c *Cluster) Furnish(p *Place, crew *Crew) {
	p.tenants, p.lent, p.touched = crew.tenants, true, c.trial
	for resource, n := range crew.takes {
		c.free[resource][p.index] -= n
	}
	if crew.plain && len(c.tallies) == 0 {
		c.steps += int64(len(crew.tenants)) * counting(0)
		return
	}
	for _, t := range crew.tenants {
		m := c.member(t.Class)
		if m.own != nil {
			c.lore.filters.Put(m.own, p.host)
		}
		c.count(m, p)
	}
}

// Lift takes a pod off the place where it has a seat.
func (c *Cluster) Lift(t Tenant, p *Place) {
	at := slices.IndexFunc(p.tenants, func(o Tenant) bool { return o.Pod == t.Pod })
	if at < 0 {
		return
	}
	m := c.member(t.Class)
	if m.own != nil {
		c.undos = append(c.undos, c.lore.filters.Remove(m.own, p.host))
	}
	c.log = append(c.log, change{p, t, taken})
	c.lift(m, p, at)
}

// Heeded reports whether rules of pods count this one: it may keep others out of its domain, or draw
// them there.
func (c *Cluster) Heeded(t Tenant) bool { return len(c.member(t.Class).joins) > 0 }

func (c *Cluster) put(m *member, t Tenant, p *Place) {
	p.tenants, p.lent = append(p.tenants, t), false // a crew's list has no room for more
	p.touched = c.trial
	for _, a := range m.takes {
		c.free[a.resource][p.index] -= a.n
	}
	c.count(m, p)
}

// count counts a pod of a class at a place, but for what it takes.
func (c *Cluster) count(m *member, p *Place) {
	c.steps += counting(len(m.joins))
	p.ports = append(p.ports, m.ports...)
	if m.shuns {
		p.shunning++
	}
	for _, tally := range m.joins {
		tally.add(p, 1)
	}
}

// lift takes the pod of that index, which is of that class, off a place.
func (c *Cluster) lift(m *member, p *Place, at int) {
	p.touched = c.trial
	c.steps += counting(len(m.joins))
	if p.lent {
		p.tenants, p.lent = slices.Clone(p.tenants), false
	}
	p.tenants = slices.Delete(p.tenants, at, at+1)
	if m.shuns {
		p.shunning--
	}
	for _, port := range m.ports {
		i := slices.Index(p.ports, port)
		p.ports = slices.Delete(p.ports, i, i+1)
	}
	for _, a := range m.takes {
		c.free[a.resource][p.index] += a.n
	}
	for _, tally := range m.joins {
		tally.add(p, -1)
	}
}

// change records one thing that was done.
type change struct {
	place  *Place
	tenant Tenant
	what   deed
}

type deed uint8

const (
	given deed = iota
	taken
	opened
	shut
	reopened
)

// Mark is a moment to which Revert goes back.
type Mark int

// Fork begins a what-if.
func (c *Cluster) Fork() Mark { return Mark(len(c.log)) }

// Revert undoes all that was changed since, the last first.
func (c *Cluster) Revert(to Mark) {
	for len(c.log) > int(to) {
		last := c.log[len(c.log)-1]
		c.log = c.log[:len(c.log)-1]
		switch last.what {
		case opened:
			c.leave(last.place)
			continue
		case shut, reopened:
			c.shut(last.place, last.what == reopened)
			continue
		}
		m := c.members[last.tenant.Class.id]
		if last.what == given {
			c.lift(m, last.place, last.place.lastOf(last.tenant))
		} else {
			c.put(m, last.tenant, last.place)
		}
		if m.own != nil {
			end := len(c.undos) - 1
			c.undos[end]()
			c.undos = c.undos[:end]
		}
	}
}

// lastOf is the last index at which a pod has a seat. What came last leaves first, when a
// what-if is undone. The pod is there: all seats that are given or taken after Furnish
// are in the log, which is undone from its end and forgotten only as a whole, so that
// the place is as it was when the pod had just got the seat.
func (p *Place) lastOf(t Tenant) int {
	for i := len(p.tenants) - 1; ; i-- {
		if p.tenants[i].Pod == t.Pod {
			return i
		}
	}
}
