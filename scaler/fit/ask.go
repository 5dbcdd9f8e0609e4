package fit

import "slices"

// refusal is how a place answers a class.
type refusal uint8

const (
	fits refusal = iota
	// lasting: nothing that is seated makes it fit; only what leaves does.
	lasting
	// level: the domain has too many for the spread, until others catch up.
	level
	// passing: seats elsewhere may make it fit.
	passing
)

// ask whether a class fits a place, the cheapest questions first.
func (c *Cluster) ask(m *member, p *Place) refusal {
	if !c.holds(m, p) || len(m.broken) > 0 || p.shunning > 0 {
		return lasting
	}
	if kept := c.keptOff(m, p); kept != fits {
		return kept
	}
	if m.gathers != nil && !m.gathered(p) {
		return passing
	}
	for i := range m.spreads {
		s := &m.spreads[i]
		d := p.domains[s.over]
		if d == none {
			return lasting
		}
		switch {
		case s.allowsIn(d):
		case c.stays(s.topology):
			return level
		default:
			return passing
		}
	}
	if m.own != nil && len(c.refusals(m, p)) > 0 {
		return passing
	}
	return fits
}

// holds reports whether the place would take the class if no other pod had anything against
// it: it has the room and the ports, and all that is static.
func (c *Cluster) holds(m *member, p *Place) bool {
	for _, a := range m.asks {
		if a.n > c.free[a.resource][p.index] && !c.delegates(m, p, a.resource) {
			return false
		}
	}
	if !c.admits(m.demands, p) {
		return false
	}
	if len(m.ports) > 0 {
		if _, taken := clash(m.ports, p.ports); taken {
			return false
		}
	}
	return true
}

// couldHold reports whether a new node of this template may take the class as far as
// resources and static demands go. It costs less than to open one. What is routed may be had
// in other ways, and what names hosts is asked of a place.
func (c *Cluster) couldHold(m *member, l *NodeTemplate) bool {
	for _, a := range m.asks {
		if a.n <= l.room.at(a.resource) {
			continue
		}
		if routed := m.own != nil && c.lore.serves(c.lore.names.names[a.resource]); !routed {
			return false
		}
	}
	return m.demands.singular || c.admitsKind(m.demands, c.lore.kindOf(l))
}

// MayTake reports whether a new node of one of these templates may take the class, by what it requests
// and by static demands alone. It costs less than Takes.
func (c *Cluster) MayTake(class *Class, looks []*NodeTemplate) bool {
	m := c.member(class)
	return slices.ContainsFunc(looks, func(l *NodeTemplate) bool {
		c.steps++
		return c.couldHold(m, l)
	})
}

// Takes reports whether a new node of one of these templates would take the class.
func (c *Cluster) Takes(class *Class, looks []*NodeTemplate) bool {
	m := c.member(class)
	for _, l := range looks {
		if !c.couldHold(m, l) {
			continue
		}
		start := c.Fork()
		c.steps += m.weight()
		takes := c.ask(m, c.Open(l.Name, l)) == fits
		c.Revert(start)
		if takes {
			return true
		}
	}
	return false
}

// explanation is what it costs to find the words.
const explanation = 50

// Fits returns what keeps a class off a place; nothing does if it fits.
func (c *Cluster) Fits(class *Class, p *Place) Reasons {
	m := c.member(class)
	c.steps += m.weight()
	if c.ask(m, p) == fits {
		return nil
	}
	c.steps += explanation * m.weight()
	var why Reasons
	if !c.admits(m.demands, p) {
		why = c.explained(m.demands, p)
	}
	for _, wanted := range m.ports {
		if _, taken := clash([]hostPort{wanted}, p.ports); taken {
			why = append(why, Reason{Rule: RulePort, What: wanted.String()})
		}
	}
	for _, a := range m.asks {
		if have := p.left(a.resource); a.n > have && !c.delegates(m, p, a.resource) {
			why = append(why, Reason{Rule: RuleResources, What: string(c.lore.names.names[a.resource]), Need: a.n, Have: have})
		}
	}
	if len(m.broken) > 0 {
		return append(why, m.broken...)
	}
	if p.shunning > 0 {
		why = append(why, Reason{Rule: RuleInterPodAffinity, What: "pods there have anti-affinity terms about other namespaces, more than an evaluation considers"})
	}
	why = append(why, c.uneven(m, p)...)
	why = append(why, c.apart(m, p)...)
	return append(why, c.routes(m, p)...)
}

// FitsNew returns what keeps a class off a new node of one of these templates, and which of
// them: of several misses the nearest, the first of those. To know only whether one takes it,
// ask Takes.
func (c *Cluster) FitsNew(class *Class, looks []*NodeTemplate) (nearest Reasons, at *NodeTemplate) {
	for _, l := range looks {
		start := c.Fork()
		why := c.Fits(class, c.Open(l.Name, l))
		c.Revert(start)
		if len(why) == 0 {
			return nil, l
		}
		if nearest == nil || why.Compare(nearest) < 0 {
			nearest, at = why, l
		}
	}
	return nearest, at
}
