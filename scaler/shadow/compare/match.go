package compare

import (
	"cmp"
	"iter"
	"maps"
	"regexp"
	"slices"
	"time"
)

// matching is which doings are the same, and what is left on both sides.
type matching struct {
	pairs           []pair
	world, windlass []*doing
}

type pair struct{ world, windlass *doing }

func (p pair) apart() time.Duration { return p.world.At.Sub(p.windlass.At).Abs() }

// matched pairs doings of the same group or node that are at most so far apart, in the order of
// their dates: as many as possible, and of these ways the one with the least time between them.
// Both lists are in that order.
func matched(all Both[[]*doing], window time.Duration) (m matching) {
	byKey := map[string]*Both[[]*doing]{}
	at := func(d *doing) *Both[[]*doing] {
		key := cmp.Or(d.Node, d.Group)
		if byKey[key] == nil {
			byKey[key] = &Both[[]*doing]{}
		}
		return byKey[key]
	}
	for _, d := range all.World {
		at(d).World = append(at(d).World, d)
	}
	for _, d := range all.Windlass {
		at(d).Windlass = append(at(d).Windlass, d)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		for part := range parts(*byKey[key], window) {
			m.pairs = append(m.pairs, align(part.World, part.Windlass, window)...)
		}
	}
	for _, p := range m.pairs {
		p.world.taken, p.windlass.taken = true, true
	}
	left := func(list []*doing) []*doing {
		return slices.DeleteFunc(slices.Clone(list), func(d *doing) bool { return d.taken })
	}
	m.world, m.windlass = left(all.World), left(all.Windlass)
	return m
}

// mostAligned bounds how many doings of one group are held against each other at once: aligning
// takes the square of it. No cluster does so much within minutes.
const mostAligned = 1000

// parts cuts where nothing can be paired across, and what is too much.
func parts(all Both[[]*doing], window time.Duration) iter.Seq[Both[[]*doing]] {
	return func(yield func(Both[[]*doing]) bool) {
		i, j := 0, 0
		for i < len(all.World) || j < len(all.Windlass) {
			k, l := i, j
			var last time.Time
			for k < len(all.World) || l < len(all.Windlass) {
				next, world := time.Time{}, false
				if k < len(all.World) {
					next, world = all.World[k].At, true
				}
				if l < len(all.Windlass) && (!world || all.Windlass[l].At.Before(next)) {
					next, world = all.Windlass[l].At, false
				}
				if !last.IsZero() && next.Sub(last) > window || k-i+l-j == mostAligned {
					break
				}
				if last = next; world {
					k++
				} else {
					l++
				}
			}
			if !yield(Both[[]*doing]{all.World[i:k], all.Windlass[j:l]}) {
				return
			}
			i, j = k, l
		}
	}
}

// align pairs as many as possible without crossing, and then as near as possible.
func align(a, b []*doing, window time.Duration) (pairs []pair) {
	type best struct {
		pairs int
		apart time.Duration
	}
	better := func(x, y best) bool { return x.pairs > y.pairs || x.pairs == y.pairs && x.apart < y.apart }
	table := make([][]best, len(a)+1) // of what is left from i and j on
	for i := range table {
		table[i] = make([]best, len(b)+1)
	}
	with := func(i, j int) (best, bool) {
		apart := pair{a[i], b[j]}.apart()
		next := table[i+1][j+1]
		return best{next.pairs + 1, next.apart + apart}, apart <= window && samePods(a[i], b[j])
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			table[i][j] = table[i+1][j]
			if better(table[i][j+1], table[i][j]) {
				table[i][j] = table[i][j+1]
			}
			if x, may := with(i, j); may && !better(table[i][j], x) {
				table[i][j] = x
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch x, may := with(i, j); {
		case may && x == table[i][j]:
			pairs = append(pairs, pair{a[i], b[j]})
			i, j = i+1, j+1
		case table[i+1][j] == table[i][j]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// samePods reports whether both may be for the same pods: they name one of the same owner, or one of
// them does not name all.
func samePods(a, b *doing) bool {
	if !a.namesAll() || !b.namesAll() {
		return true
	}
	return a.shares(b)
}

func (d *doing) namesAll() bool { return len(d.Pods) > 0 && d.PodCount <= len(d.Pods) }

func (d *doing) shares(other *doing) bool {
	return slices.ContainsFunc(d.owners(), func(owner string) bool { return slices.Contains(other.owners(), owner) })
}

// owners names what the pods came from: a pod's name without what its controller added. Of a burst
// each side may have met other pods of an owner first.
//
// https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go has the letters.
func (d *doing) owners() []string {
	if d.ownedBy == nil {
		for _, pod := range d.Pods {
			d.ownedBy = append(d.ownedBy, generated.ReplaceAllString(pod, ""))
		}
		slices.Sort(d.ownedBy)
		d.ownedBy = slices.Compact(d.ownedBy)
	}
	return d.ownedBy
}

var generated = regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{5}|[0-9]+)$`)

// akin pairs what is left: growth for pods of the same owner within the window, of whatever group, scale-downs
// of the same node at any time. Each of Windlass takes the nearest.
func (m *matching) akin(window time.Duration) (pairs []pair) {
	index := map[string][]*doing{}
	keys := func(d *doing) []string {
		if d.removes {
			return []string{d.Node}
		}
		return d.owners()
	}
	for _, d := range m.world {
		for _, key := range keys(d) {
			if !d.others() {
				index[key] = append(index[key], d)
			}
		}
	}
	for _, d := range m.windlass {
		var nearest *doing
		for _, key := range keys(d) {
			for _, w := range near(index[key], d.At, window, d.removes) {
				if !w.taken && (nearest == nil || w.At.Sub(d.At).Abs() < nearest.At.Sub(d.At).Abs()) {
					nearest = w
				}
			}
		}
		if nearest != nil {
			nearest.taken, d.taken = true, true
			pairs = append(pairs, pair{nearest, d})
		}
	}
	return pairs
}

// mostNear bounds how many are looked at.
const mostNear = 100

// near are those within the window of a moment, or the nearest of all.
func near(list []*doing, at time.Time, window time.Duration, all bool) []*doing {
	byDate := func(d *doing, at time.Time) int { return d.At.Compare(at) }
	from, _ := slices.BinarySearchFunc(list, at.Add(-window), byDate)
	to, _ := slices.BinarySearchFunc(list, at.Add(window+1), byDate)
	if all {
		middle, _ := slices.BinarySearchFunc(list, at, byDate)
		from, to = max(0, middle-mostNear/2), min(len(list), middle+mostNear/2)
	}
	return list[from:min(to, from+mostNear)]
}
