package fit

// Nearest is the open place of a row that comes nearest to taking a class which none
// takes: one that lacks nothing but resources, the fewest of them, and the least share of
// what is asked for; without such a one, that with the fewest reasons. It is for people:
// the same answer is given for as long as the place is open. It is nil in a row without
// open places.
func (r *Row) Nearest(class *Class) *Place {
	s := r.seeker(class)
	if s.near == nil || s.near.closed {
		s.near = r.leastLacking(s.member)
	}
	if s.near == nil {
		s.near = r.leastRefusing(class)
	}
	return s.near
}

func (r *Row) leastLacking(m *member) *Place {
	var best *Place
	fewest, least := len(m.asks)+1, 0.0
	r.cluster.steps += int64(len(r.places)) * m.weight()
	for _, p := range r.places {
		if p.closed {
			continue
		}
		lacks, share := r.cluster.lack(m, p)
		if lacks > fewest || lacks == fewest && share >= least {
			continue
		}
		if r.cluster.acceptsBut(m, p) {
			best, fewest, least = p, lacks, share
		}
	}
	return best
}

func (r *Row) leastRefusing(class *Class) *Place {
	var best *Place
	var why Reasons
	for _, p := range r.places {
		if p.closed {
			continue
		}
		misses := r.cluster.Fits(class, p)
		if best == nil || misses.Compare(why) < 0 {
			best, why = p, misses
		}
	}
	return best
}

// lack counts the resources of which a place has less left than a class asks for, and
// adds up the shares that are missing.
func (c *Cluster) lack(m *member, p *Place) (resources int, share float64) {
	for _, a := range m.asks {
		if have := max(0, p.left(a.resource)); have < a.n {
			resources++
			share += float64(a.n-have) / float64(a.n)
		}
	}
	return resources, share
}

// acceptsBut reports whether a place would take a class if it had the room.
func (c *Cluster) acceptsBut(m *member, p *Place) bool {
	if !c.admits(m.demands, p) || len(m.broken) > 0 || p.shunning > 0 || c.keptOff(m, p) != fits || !m.gathered(p) {
		return false
	}
	for i := range m.spreads {
		if d := p.domains[m.spreads[i].over]; d == none || !m.spreads[i].allowsIn(d) {
			return false
		}
	}
	_, taken := clash(m.ports, p.ports)
	return !taken
}
