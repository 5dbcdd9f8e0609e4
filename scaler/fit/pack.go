package fit

import (
	"cmp"
	"slices"
)

// Packing is the answer to how many new nodes pods need.
type Packing struct {
	// Places are the new nodes with the pods on them, in the order in which they
	// were opened.
	Places []*Place
	// From tells for each place which of the supplies it is of, by index.
	From []int
	// Left are the pods that fit no new node, or none within the limit.
	Left []Tenant
}

// Supply is where new nodes of one group come from.
type Supply struct {
	// Name is for people; the new places are called after it.
	Name string
	// Looks are those of a new node, one for each zone.
	Looks []*Looks
	// Have counts the group's nodes in each of these zones.
	Have []int
	// Limit is how many new nodes there may be at most.
	Limit int
	// Rank orders several supplies: a lower one is tried first. Those of equal rank
	// take turns, the one with the fewest nodes first.
	Rank int
	// Steered says that the zone of every new node is ours to choose. If not, Auto
	// Scaling launches where the group has fewest, and of several such zones we
	// take the first to be it.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html
	Steered bool
	// Detour is how many more nodes may be opened, where the zone is not ours to
	// choose, for no other reason than that the one after them is in the zone that
	// a pod needs.
	Detour int
}

// Next lists the zones, as indices of Looks, that one more node may be in, those
// in which the group would have fewest first.
func (s Supply) Next(opened []int) []int {
	order := make([]int, len(s.Looks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(s.Have[a]+opened[a], s.Have[b]+opened[b])
	})
	if !s.Steered {
		return order[:min(1, len(order))]
	}
	return order
}

// Pack puts pods onto new nodes: pods of greater priority first, then the
// largest, each at the first node that it fits. If there is none, a node is
// opened of the first supply that has one for it. The new nodes stay open.
func (c *Cluster) Pack(pods []Tenant, supplies ...Supply) Packing {
	sources := make([]*source, len(supplies))
	var looks []*Looks
	for i, s := range supplies {
		sources[i] = &source{Supply: s, index: i, opened: make([]int, len(s.Looks))}
		looks = append(looks, s.Looks...)
	}
	var packing Packing
	row := c.NewRow(nil)
	for _, t := range c.Sorted(pods, looks) {
		if row.Seat(t) != nil {
			continue
		}
		fresh, from := c.openFor(t, sources)
		if fresh == nil {
			packing.Left = append(packing.Left, t)
			continue
		}
		row.places = append(row.places, fresh...)
		for range fresh {
			packing.From = append(packing.From, from)
		}
	}
	packing.Places = row.places
	return packing
}

// source is a supply that is being drawn from.
type source struct {
	Supply
	index int
	// opened counts for each zone what was drawn.
	opened []int
	drawn  int
}

// nodes is how many the source would have.
func (s *source) nodes() int {
	n := s.drawn
	for _, have := range s.Have {
		n += have
	}
	return n
}

// inTurn orders sources by rank; of equal ones that with the fewest nodes comes
// first.
func inTurn(sources []*source) []*source {
	order := slices.Clone(sources)
	slices.SortStableFunc(order, func(a, b *source) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.nodes(), b.nodes()))
	})
	return order
}

// openFor opens a new node for the pod and gives it a seat there, and says of
// which source it is; nil if none would take it. On a detour the nodes before
// that one are opened too, and empty.
func (c *Cluster) openFor(t Tenant, sources []*source) (fresh []*Place, from int) {
	for _, s := range inTurn(sources) {
		if fresh := c.drawFor(t, s); fresh != nil {
			return fresh, s.index
		}
	}
	return nil, 0
}

func (c *Cluster) drawFor(t Tenant, s *source) []*Place {
	if s.Steered {
		if s.drawn >= s.Limit {
			return nil
		}
		for _, zone := range s.Next(s.opened) {
			start := c.Fork()
			if p := c.draw(s, zone); c.TrySeat(t, p) {
				return []*Place{p}
			}
			c.Revert(start)
			s.undraw(zone)
		}
		return nil
	}
	start := c.Fork()
	var fresh []*Place
	var zones []int
	for len(fresh) <= s.Detour && s.drawn < s.Limit && len(s.Looks) > 0 {
		zone := s.Next(s.opened)[0]
		p := c.draw(s, zone)
		fresh, zones = append(fresh, p), append(zones, zone)
		if c.TrySeat(t, p) {
			s.Detour -= len(fresh) - 1
			return fresh
		}
	}
	c.Revert(start)
	for _, zone := range zones {
		s.undraw(zone)
	}
	return nil
}

// draw opens a node of the source in a zone.
func (c *Cluster) draw(s *source, zone int) *Place {
	s.opened[zone]++
	s.drawn++
	return c.Open("a new node of "+s.Name, s.Looks[zone])
}

// undraw forgets a node that was not kept; Revert has taken it out.
func (s *source) undraw(zone int) {
	s.opened[zone]--
	s.drawn--
}

// Sorted orders pods as they are placed: greater priority first, then the
// largest measured against the largest of these looks, then by class, and the
// oldest first within a class.
func (c *Cluster) Sorted(pods []Tenant, against []*Looks) []Tenant {
	sorted := slices.Clone(pods)
	var room vector
	for _, l := range against {
		for i, n := range l.room {
			room.add(i, max(0, n-room.at(i)))
		}
	}
	size := map[*Class]float64{}
	for _, t := range pods {
		if _, ok := size[t.Class]; !ok {
			size[t.Class] = t.Class.size(room)
		}
	}
	inOrder := func(a, b Tenant) int {
		if by := cmp.Compare(b.Pod.Priority(), a.Pod.Priority()); by != 0 {
			return by
		}
		if a.Class != b.Class {
			return cmp.Or(cmp.Compare(size[b.Class], size[a.Class]), cmp.Compare(a.Class.Key, b.Class.Key))
		}
		if by := a.Pod.Created.Compare(b.Pod.Created); by != 0 {
			return by
		}
		return cmp.Or(
			cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
			cmp.Compare(a.Pod.Name, b.Pod.Name),
			cmp.Compare(a.Pod.UID, b.Pod.UID),
		)
	}
	if !slices.IsSortedFunc(sorted, inOrder) { // most have been sorted before
		slices.SortFunc(sorted, inOrder)
	}
	return sorted
}

// size is the share of cpu and of memory together.
func (c *Class) size(room vector) float64 {
	sum := 0.0
	for _, r := range []int{cpu, memory} {
		if has := room.at(r); has > 0 {
			sum += float64(c.request(r)) / float64(has)
		}
	}
	return sum
}

// Waste is the share of cpu and memory that stays free on these places, 0 to 1,
// the mean of both.
func Waste(places []*Place) float64 {
	var room, used [2]int64
	for _, p := range places {
		for i, r := range []int{cpu, memory} {
			room[i] += p.looks.room.at(r)
			used[i] += p.looks.room.at(r) - p.left(r)
		}
	}
	sum := 0.0
	for i := range room {
		if room[i] > 0 {
			sum += 1 - float64(used[i])/float64(room[i])
		}
	}
	return sum / 2
}
