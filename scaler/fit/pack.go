package fit

import (
	"cmp"
	"slices"
)

// Packing is the answer to how many new nodes pods need.
type Packing struct {
	// Places are the new nodes with the pods on them.
	Places []*Place
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
	// Steered says that the zone of every new node is ours to choose. If not, Auto
	// Scaling launches where the group has fewest, and of several such zones we
	// take the first to be it.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html
	Steered bool
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
// largest, each at the first node that it fits. The new nodes stay open.
func (c *Cluster) Pack(pods []Tenant, s Supply) Packing {
	var packing Packing
	opened := make([]int, len(s.Looks))
	row := c.NewRow(nil)
	for _, t := range c.Sorted(pods, s.Looks) {
		if row.Seat(t) != nil {
			continue
		}
		fresh := c.openFor(t, s, opened)
		if fresh == nil {
			packing.Left = append(packing.Left, t)
			continue
		}
		row.places = append(row.places, fresh)
	}
	packing.Places = row.places
	return packing
}

// openFor opens a new node for the pod and gives it a seat there; nil if none
// would take it.
func (c *Cluster) openFor(t Tenant, s Supply, opened []int) *Place {
	total := 0
	for _, n := range opened {
		total += n
	}
	if total >= s.Limit {
		return nil
	}
	for _, i := range s.Next(opened) {
		start := c.Fork()
		p := c.Open("a new node of "+s.Name, s.Looks[i])
		if c.TrySeat(t, p) {
			opened[i]++
			return p
		}
		c.Revert(start)
	}
	return nil
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
	slices.SortFunc(sorted, func(a, b Tenant) int {
		if a.Class != b.Class {
			return cmp.Or(
				cmp.Compare(b.Pod.Priority(), a.Pod.Priority()),
				cmp.Compare(size[b.Class], size[a.Class]),
				cmp.Compare(a.Class.Key, b.Class.Key),
			)
		}
		return cmp.Or(
			cmp.Compare(b.Pod.Priority(), a.Pod.Priority()),
			a.Pod.Created.Compare(b.Pod.Created),
			cmp.Compare(a.Pod.Key(), b.Pod.Key()),
			cmp.Compare(a.Pod.UID, b.Pod.UID),
		)
	})
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
			used[i] += p.used.at(r)
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
