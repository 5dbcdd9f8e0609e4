package fit

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// Row is a list of places in the order in which they are tried, for many pods of
// few classes: what a place has refused for good is not asked of it again. No room
// may come free while it is in use.
type Row struct {
	cluster *Cluster
	whole   lane
	// divided are the same places by the domains that they are in, for topologies that
	// some class goes by.
	divided map[int]*division
	seekers map[*Class]*seeker
	// last is the one that was asked for last: equal pods come one after the other.
	last *seeker
}

// division has a lane for each domain of a topology. Places without the label are in
// none. It is made up to the row's places as it is asked for.
type division struct {
	lanes []lane
	upTo  int
}

// NewRow makes a row of places.
func (c *Cluster) NewRow(places []*Place) *Row {
	r := &Row{cluster: c, divided: map[int]*division{}, seekers: map[*Class]*seeker{}}
	r.whole.places = places[:len(places):len(places)]
	r.whole.bounds = make([]bound, blocks(len(places)))
	for i := range r.whole.bounds {
		r.whole.bounds[i] = anything
	}
	return r
}

// add makes the row longer.
func (r *Row) add(places ...*Place) {
	for _, p := range places {
		r.whole.add(p)
	}
}

// Seat gives the pod a seat at the first place that takes it; nil if none does.
func (r *Row) Seat(t Tenant) *Place {
	p := r.Find(t.Class)
	if p != nil {
		r.cluster.seat(r.last.member, t, p)
	}
	return p
}

// Find finds the first place that would take a pod of the class.
func (r *Row) Find(class *Class) *Place {
	s := r.seeker(class)
	s.heedLevels()
	end := len(r.whole.places)
	first := end
	if s.by == none {
		first = r.scan(s, &r.whole, &s.cursors[0], end)
	} else {
		lanes := r.lanes(int(s.by))
		for len(s.cursors) < len(lanes) {
			s.cursors = append(s.cursors, cursor{})
		}
		for d := range lanes {
			if s.opens(int32(d)) {
				first = min(first, r.scan(s, &lanes[d], &s.cursors[d], first))
			}
		}
	}
	if first == end {
		return nil
	}
	return r.whole.places[first]
}

// scan finds the position in the row of the first place of a lane that takes a
// class, or end if none before that does.
func (r *Row) scan(s *seeker, l *lane, at *cursor, end int) int {
	for i := at.level; i < len(l.places); {
		block := i / blockSize
		next := min((block+1)*blockSize, len(l.places))
		if l.bounds[block].below(s.needs) {
			at.pass(i, next, lasting)
			i = next
			continue
		}
		for whole := i%blockSize == 0; i < next; i++ {
			position := l.position(i)
			if position >= end {
				return end
			}
			answer := r.cluster.ask(s.member, l.places[i])
			if answer == fits {
				return position
			}
			at.pass(i, i+1, answer)
			if whole && i+1 == next {
				l.tighten(block)
			}
		}
	}
	return end
}

// lanes divides the row by a topology.
func (r *Row) lanes(topology int) []lane {
	d, known := r.divided[topology]
	if !known {
		d = &division{}
		r.divided[topology] = d
	}
	for ; d.upTo < len(r.whole.places); d.upTo++ {
		p := r.whole.places[d.upTo]
		domain := p.domains[topology]
		if domain == none {
			continue
		}
		for len(d.lanes) <= int(domain) {
			d.lanes = append(d.lanes, lane{positions: []int32{}})
		}
		l := &d.lanes[domain]
		l.add(p)
		l.positions = append(l.positions, int32(d.upTo))
	}
	return d.lanes
}

// lane is some of a row's places, in the row's order.
type lane struct {
	places []*Place
	// positions are the places' in the row, nil where the lane is the row.
	positions []int32
	// bounds tell for each block of places what none of them has more of.
	bounds []bound
}

func (l *lane) position(i int) int {
	if l.positions == nil {
		return i
	}
	return int(l.positions[i])
}

func (l *lane) add(p *Place) {
	if len(l.places)%blockSize == 0 {
		l.bounds = append(l.bounds, nothing)
	}
	l.places = append(l.places, p)
	l.bounds[len(l.bounds)-1].admit(p)
}

// tighten finds how much the places of a block have left.
func (l *lane) tighten(block int) {
	b := nothing
	for _, p := range l.places[block*blockSize : min((block+1)*blockSize, len(l.places))] {
		b.admit(p)
	}
	l.bounds[block] = b
}

// blockSize is how many places share a bound.
const blockSize = 64

func blocks(places int) int { return (places + blockSize - 1) / blockSize }

// bound is an amount of each resource that nearly every pod asks for: the first of
// them, by their numbers.
type bound [bounded]int64

const bounded = podCount + 1

var (
	anything = bound{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	nothing  = bound{math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64}
)

// admit makes the bound as high as what a place has left.
func (b *bound) admit(p *Place) {
	for r := range b {
		b[r] = max(b[r], p.left(r))
	}
}

// below says that places within the bound have too little.
func (b *bound) below(needs bound) bool {
	return b[cpu] < needs[cpu] || b[memory] < needs[memory] || b[podCount] < needs[podCount] || b[ephemeral] < needs[ephemeral]
}

// seeker is a class that seeks places in a row.
type seeker struct {
	*member
	needs bound
	// by is the topology whose domains are asked before the places in them, none
	// without one.
	by int32
	// cursors are those in the lanes by which it goes.
	cursors []cursor
	whole   [1]cursor // of the row
	// allowed is how many pods a domain might have for each spread constraint, when
	// the class sought last.
	allowed []int64
}

// cursor is how far a class has come in a lane.
type cursor struct {
	// lasting: no place before it will take the class again. level: nor will one
	// before that, until a spread constraint allows more pods in a domain.
	lasting, level int
}

// pass moves on from a place, or several, that refused.
func (c *cursor) pass(from, to int, answer refusal) {
	if answer == lasting && c.lasting == from {
		c.lasting = to
	}
	if answer != passing && c.level == from {
		c.level = to
	}
}

func (r *Row) seeker(class *Class) *seeker {
	if r.last != nil && r.last.Class == class {
		return r.last
	}
	s, known := r.seekers[class]
	if !known {
		s = newSeeker(r.cluster, class)
		r.seekers[class] = s
	}
	r.last = s
	return s
}

func newSeeker(c *Cluster, class *Class) *seeker {
	s := &seeker{member: c.member(class), needs: nothing, by: none}
	for _, a := range s.asks {
		if a.resource < bounded {
			s.needs[a.resource] = a.n
		}
	}
	for _, t := range s.gathers {
		s.goBy(c, t)
	}
	for i := range s.spreads {
		s.goBy(c, s.spreads[i].tally)
	}
	if s.by == none {
		s.cursors = s.whole[:]
	}
	if len(s.spreads) > 0 {
		s.allowed = make([]int64, len(s.spreads))
	}
	return s
}

// goBy prefers the topology with the fewest domains. A domain to each host is none
// to go by.
func (s *seeker) goBy(c *Cluster, t *tally) {
	if c.topologies[t.over].key == corev1.LabelHostname {
		return
	}
	if s.by == none || len(c.topologies[t.over].values) < len(c.topologies[s.by].values) {
		s.by = int32(t.over)
	}
}

// heedLevels goes back to places that refused because of spread, if it allows more
// pods in a domain now. Constraints that the class goes by are asked anew each time.
func (s *seeker) heedLevels() {
	back := false
	for i := range s.spreads {
		if s.spreads[i].over == int(s.by) {
			continue
		}
		allowed := s.spreads[i].most()
		back = back || allowed > s.allowed[i]
		s.allowed[i] = allowed
	}
	if back {
		for i := range s.cursors {
			s.cursors[i].level = s.cursors[i].lasting
		}
	}
}

// opens says that terms and constraints about the topology that the class goes by
// have nothing against one of its domains.
func (s *seeker) opens(d int32) bool {
	by := int(s.by)
	for i := range s.spreads {
		if check := &s.spreads[i]; check.over == by && !check.allowsIn(d) {
			return false
		}
	}
	for _, t := range s.gathers {
		if t.over == by && t.counts.at(d) == 0 && !(s.first && s.alone()) {
			return false
		}
	}
	return true
}
