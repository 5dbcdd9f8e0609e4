package fit

import (
	"cmp"
	"slices"
)

// Packing is the answer to how many new nodes pods need.
type Packing struct {
	// Places are the new nodes with the pods on them; none is empty.
	Places []*Place
	// Left are the pods that fit no new node, or none within the limit.
	Left []Tenant
}

// Pack puts pods onto at most limit new nodes that could look like any of
// these: pods of greater priority first, then the largest, each at the first
// node that it fits.
func (c *Cluster) Pack(pods []Tenant, could []*Looks, limit int) Packing {
	var packing Packing
	var last *Class
	from := 0
	for _, t := range c.Sorted(pods, could) {
		if t.Class != last {
			last, from = t.Class, 0
		}
		// A place that has refused a pod refuses its like.
		for from < len(packing.Places) && !c.TrySeat(t, packing.Places[from]) {
			from++
		}
		if from < len(packing.Places) {
			continue
		}
		if len(packing.Places) >= limit {
			packing.Left = append(packing.Left, t)
			continue
		}
		fresh := NewPlace("a new node", could...)
		if !c.TrySeat(t, fresh) {
			packing.Left = append(packing.Left, t)
			continue
		}
		packing.Places = append(packing.Places, fresh)
	}
	return packing
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
// the mean of both. Where a place may still look in several ways, the first
// counts.
func Waste(places []*Place) float64 {
	var room, used [2]int64
	for _, p := range places {
		for i, r := range []int{cpu, memory} {
			room[i] += p.could[0].room.at(r)
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
