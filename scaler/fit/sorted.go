package fit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Sorted orders pods as they are placed: greater priority first, then the
// largest measured against the largest of these templates, then by class, and the
// oldest first within a class. It is the given list if that is in order already.
func (c *Cluster) Sorted(pods []Tenant, against []*NodeTemplate) []Tenant {
	room := largest(against)
	if inOrder(pods, room) {
		return slices.Clip(pods)
	}
	// There are far fewer batches than pods.
	batches, of := batched(pods, room)
	next := 0
	for _, b := range slices.SortedFunc(slices.Values(batches), compareBatches) {
		b.next = next
		next += b.count
	}
	sorted := make([]Tenant, len(pods))
	for i, t := range pods {
		b := batches[of[i]]
		sorted[b.next] = t
		b.next++
	}
	for _, b := range batches {
		if own := sorted[b.next-b.count : b.next]; !slices.IsSortedFunc(own, byAge) {
			slices.SortFunc(own, byAge)
		}
	}
	return sorted
}

// largest is the most that any of these templates has room for, resource by resource.
func largest(looks []*NodeTemplate) vector {
	var room vector
	for _, l := range looks {
		for i, n := range l.room {
			room.add(i, max(0, n-room.at(i)))
		}
	}
	return room
}

// stretch is pods of one class and priority that come one after the other.
type stretch struct {
	batch
	pods []Tenant
}

// stretches orders pods as Sorted does, but leaves those of one class and priority as
// they come.
func stretches(pods []Tenant, room vector) []stretch {
	var list []stretch
	for i := 0; i < len(pods); {
		s := stretch{batch: batch{batchKey: batchOf(pods[i])}}
		s.size = s.class.size(room)
		from := i
		for i < len(pods) && batchOf(pods[i]) == s.batchKey {
			i++
		}
		s.pods = pods[from:i]
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b stretch) int { return compareBatches(&a.batch, &b.batch) })
	return list
}

// hostsFirst orders stretches of one priority so that pods come first that spread over
// hosts: a node that others have filled holds all of these up.
func hostsFirst(list []stretch) []stretch {
	last := func(s stretch) int {
		if slices.ContainsFunc(s.class.spread, func(t spreadTerm) bool { return t.topology == corev1.LabelHostname }) {
			return 0
		}
		return 1
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(last(a), last(b)))
	})
	return list
}

// batch is the pods of one class and priority.
type batch struct {
	batchKey
	size  float64
	count int
	// next is where the next of them comes to.
	next int
}

type batchKey struct {
	class    *Class
	priority int32
}

func batchOf(t Tenant) batchKey { return batchKey{t.Class, t.Pod.Priority()} }

func compareBatches(a, b *batch) int {
	return cmp.Or(
		cmp.Compare(b.priority, a.priority),
		cmp.Compare(b.size, a.size),
		cmp.Compare(a.class.Key, b.class.Key),
	)
}

// inOrder reports whether pods are in order, as most are that have been sorted before.
func inOrder(pods []Tenant, room vector) bool {
	var last batch
	for i, t := range pods {
		key := batchOf(t)
		switch {
		case i > 0 && key == last.batchKey:
			if byAge(pods[i-1], t) > 0 {
				return false
			}
		default:
			b := batch{batchKey: key, size: t.Class.size(room)}
			if i > 0 && compareBatches(&last, &b) > 0 {
				return false
			}
			last = b
		}
	}
	return true
}

// batched finds the batches of pods, and of which each pod is, by index.
func batched(pods []Tenant, room vector) (batches []*batch, of []int32) {
	of = make([]int32, len(pods))
	known := map[batchKey]int32{}
	for i, t := range pods {
		key := batchOf(t)
		if i > 0 && key == batches[of[i-1]].batchKey {
			of[i] = of[i-1]
		} else if b, ok := known[key]; ok {
			of[i] = b
		} else {
			of[i] = int32(len(batches))
			known[key] = of[i]
			batches = append(batches, &batch{batchKey: key, size: t.Class.size(room)})
		}
		batches[of[i]].count++
	}
	return batches, of
}

// byAge orders pods of one class.
func byAge(a, b Tenant) int {
	if by := cmp.Compare(a.Pod.Created, b.Pod.Created); by != 0 {
		return by
	}
	return cmp.Or(
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
		cmp.Compare(a.Pod.Name, b.Pod.Name),
		cmp.Compare(a.Pod.UID, b.Pod.UID),
	)
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
