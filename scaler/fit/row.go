package fit

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Row is a list of places in the order in which they are tried, for many pods of
// few classes: what a place has refused for good is not asked of it again. While it is
// in use, room may come free only at places that are closed, and by taking a trial back. Where a
// pod leaves outside a trial that others heed, see Heeded, the row must Forget.
type Row struct {
	cluster *Cluster
	places  []*Place
	// divided are the places by the domains of a topology, for those that some class
	// goes by, and under none by their kinds.
	divided map[int32]*division
	seekers map[*Class]*seeker
	// last is the one that was asked for last: equal pods come one after the other.
	last *seeker
	// edition is that of the kinds.
	edition int
}

// division has a lane for each domain of a topology, or for each kind of node template.
// Places without the topology's label are in none. It is made up to the row's places as it is
// asked for.
type division struct {
	lanes []lane
	// ofKind are the lanes of the kinds, by their indices.
	ofKind map[*kind]int
	upTo   int
}

// NewRow makes a row of places.
func (c *Cluster) NewRow(places []*Place) *Row {
	r := &Row{cluster: c, places: places[:len(places):len(places)]}
	r.Forget()
	return r
}

// Forget forgets what was learned of the places.
func (r *Row) Forget() {
	r.divided, r.seekers, r.last = map[int32]*division{}, map[*Class]*seeker{}, nil
	r.edition = r.cluster.lore.edition
}

// add makes the row longer.
func (r *Row) add(places ...*Place) { r.places = append(r.places, places...) }

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
	if len(r.places) == 0 {
		return nil
	}
	if r.edition != r.cluster.lore.edition {
		r.Forget() // kinds are others now
	}
	s := r.seeker(class)
	r.cluster.steps += s.weight()
	if s.heedLevels() {
		r.cluster.steps += r.survey(s.member)
	}
	lanes := r.lanes(s.by)
	s.enter(r.cluster, lanes)
	end := len(r.places)
	first := end
	for i := range s.cursors {
		if at := &s.cursors[i]; at.from < first && s.opens(at.lane) {
			l := &lanes[at.lane]
			first = r.scan(s, l, at, first)
			at.from = end
			if at.level < len(l.places) {
				at.from = int(l.positions[at.level])
			}
		}
	}
	if first == end {
		return nil
	}
	return r.places[first]
}

// scan finds the position in the row of the first place of a lane that takes a
// class, or end if none before that does.
func (r *Row) scan(s *seeker, l *lane, at *cursor, end int) int {
	for i := at.level; i < len(l.places) && int(l.positions[i]) < end; {
		block := i / blockSize
		next := min((block+1)*blockSize, len(l.places))
		if l.bounds[block].below(&s.needs) {
			at.pass(i, next, lasting)
			i = next
			continue
		}
		for whole := i%blockSize == 0; i < next; i++ {
			if int(l.positions[i]) >= end {
				return end
			}
			answer, tried := r.ask(s, l, i)
			if answer == fits {
				return int(l.positions[i])
			}
			at.pass(i, i+1, answer)
			whole = whole && !tried
			if whole && i+1 == next {
				l.tighten(block)
			}
		}
	}
	return end
}

// ask the i-th place of a lane. What it refuses in a trial that has changed it does not
// last.
func (r *Row) ask(s *seeker, l *lane, i int) (answer refusal, tried bool) {
	p := l.places[i]
	answer = lasting
	if !p.closed && r.cluster.hasRoom(l.columns[i], &s.needs) {
		answer = r.cluster.ask(s.member, p)
	}
	tried = r.cluster.tried(p)
	if tried && answer != fits {
		answer = passing
	}
	return answer, tried
}

// lanes divides the row by a topology, or for none by kinds.
func (r *Row) lanes(by int32) []lane {
	d, known := r.divided[by]
	if !known {
		d = &division{ofKind: map[*kind]int{}}
		r.divided[by] = d
	}
	for ; d.upTo < len(r.places); d.upTo++ {
		p := r.places[d.upTo]
		if l := d.laneOf(p, by); l != nil {
			l.add(p, d.upTo)
		}
	}
	return d.lanes
}

func (d *division) laneOf(p *Place, by int32) *lane {
	if by == none {
		kind := p.cluster.lore.kindOf(p.template)
		index, known := d.ofKind[kind]
		if !known {
			index = len(d.lanes)
			d.ofKind[kind] = index
			d.lanes = append(d.lanes, lane{kind: kind})
		}
		return &d.lanes[index]
	}
	domain := p.domains[by]
	if domain == none {
		return nil
	}
	for len(d.lanes) <= int(domain) {
		d.lanes = append(d.lanes, lane{})
	}
	return &d.lanes[domain]
}

// lane is some of a row's places, in the row's order.
type lane struct {
	places []*Place
	// kind is that of all of them, nil where they have a domain in common.
	kind *kind
	// positions are the places' in the row, columns their indices in the cluster.
	positions, columns []int32
	// bounds are for each block of places what none of them has more of.
	bounds []bound
}

func (l *lane) add(p *Place, position int) {
	if len(l.places)%blockSize == 0 {
		l.bounds = append(l.bounds, nothing)
	}
	l.places, l.positions, l.columns = append(l.places, p), append(l.positions, int32(position)), append(l.columns, p.index)
	l.bounds[len(l.bounds)-1].admit(p)
}

// tighten finds how much the places of a block have left.
func (l *lane) tighten(block int) {
	bound := nothing
	for _, p := range l.places[block*blockSize : min((block+1)*blockSize, len(l.places))] {
		if !p.closed {
			bound.admit(p)
		}
	}
	l.bounds[block] = bound
}

// blockSize is how many places share a bound.
const blockSize = 16

// bound is an amount of each resource that nearly every pod asks for: the first of
// them, by their numbers.
type bound [bounded]int64

const bounded = podCount + 1

var nothing = bound{math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64}

// admit makes the bound as high as what a place has left, or may have again when the
// trial is over.
func (b *bound) admit(p *Place) {
	left := p.left
	if p.cluster.tried(p) {
		left = p.template.room.at
	}
	for r := range b {
		b[r] = max(b[r], left(r))
	}
}

// below reports whether places within the bound have too little.
func (b *bound) below(needs *bound) bool {
	return b[cpu] < needs[cpu] || b[memory] < needs[memory] || b[podCount] < needs[podCount] || b[ephemeral] < needs[ephemeral]
}

// hasRoom reports whether the place of that index has as much left.
func (c *Cluster) hasRoom(index int32, needs *bound) bool {
	for r := range needs {
		if c.free[r][index] < needs[r] {
			return false
		}
	}
	return true
}

// seeker is a class that seeks places in a row.
type seeker struct {
	*member
	needs bound
	// by is the topology whose domains are asked before the places in them; none where
	// it goes by kinds.
	by int32
	// cursors are those in the lanes by which it goes, of the first so many that it knows.
	cursors []cursor
	heard   int
	// allowed is how many pods a domain might have for each spread constraint, when
	// the class sought last.
	allowed []int64
	// near is what Nearest answered last.
	near *Place
}

// cursor is how far a class has come in a lane.
type cursor struct {
	lane int32
	// lasting: no place before it will take the class again. level: nor will one
	// before that, until a spread constraint allows more pods in a domain.
	lasting, level int
	// from is a position in the row before which the lane has nothing else to ask.
	from int
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
		r.cluster.steps += r.survey(s.member)
	}
	r.last = s
	return s
}

// survey is what it costs to ask all places about a class, of which most are passed by in
// blocks.
func (r *Row) survey(m *member) int64 {
	each := m.weight()
	if m.demands.singular {
		each *= blockSize // no block is passed by for what its kind lacks
	}
	if m.own != nil {
		each += blockSize * ownWeight
	}
	return 1 + each*int64(len(r.places))/blockSize
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
	if len(s.spreads) > 0 {
		s.allowed = make([]int64, len(s.spreads))
	}
	return s
}

// enter sets out on lanes that are new to it. Lanes of kinds that do not admit it are
// not for it.
func (s *seeker) enter(c *Cluster, lanes []lane) {
	if s.heard >= len(lanes) || !s.demands.singular && c.lore.unheard(s.demands) {
		return // there may be thousands of such, and a lane is none the wiser
	}
	s.cursors = slices.Grow(s.cursors, len(lanes)-s.heard)
	for ; s.heard < len(lanes); s.heard++ {
		if kind := lanes[s.heard].kind; kind == nil || s.demands.singular || c.admitsKind(s.demands, kind) {
			s.cursors = append(s.cursors, cursor{lane: int32(s.heard)})
		}
	}
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
func (s *seeker) heedLevels() (back bool) {
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
			s.cursors[i].level, s.cursors[i].from = s.cursors[i].lasting, 0
		}
	}
	return back
}

// opens reports whether terms and constraints about the topology that the class goes by have
// nothing against one of its domains.
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
