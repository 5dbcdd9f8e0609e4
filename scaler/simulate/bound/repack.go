package bound

import (
	"cmp"
	"slices"
)

// weights are the GiB that count as much as a core when pods are packed anew.
var weights = []float64{4, 6, 8, 10, 16}

// Repack packs demands anew, free of charge and at once, and returns US dollars an hour. Pods
// come in the order of cores + memory ÷ r, the largest first; again and again the type is taken
// whose first-fit filling holds the most of that for a dollar. The cheapest of several r
// counts. It is a good packing and not the best one.
func Repack(types []Type, demands []Demand) float64 {
	if len(demands) == 0 {
		return 0
	}
	best := 0.0
	for i, r := range weights {
		if cost := repack(types, demands, r); i == 0 || cost < best {
			best = cost
		}
	}
	return best
}

// kind are equal pods that are to be packed.
type kind struct {
	cpu, memory, weight float64
	count               int
}

func repack(types []Type, demands []Demand, r float64) (cost float64) {
	left := kindsOf(demands, r)
	fill := make([]int, len(left))
	best := make([]int, len(left))
	for len(left) > 0 {
		value, chosen := 0.0, -1
		for i, t := range types {
			held := fillOne(t, left, fill)
			if worth := held / t.PricePerHour; worth > value {
				value, chosen = worth, i
				best, fill = fill, best
			}
		}
		if chosen < 0 {
			return cost // what is left asks for nothing, or fits no type
		}
		times := repeats(left, best)
		cost += types[chosen].PricePerHour * float64(times)
		kept := left[:0]
		for i, k := range left {
			if k.count -= times * best[i]; k.count > 0 {
				kept = append(kept, k)
			}
		}
		left, fill, best = kept, fill[:len(kept)], best[:len(kept)]
	}
	return cost
}

// kindsOf counts equal pods together, the largest first.
func kindsOf(demands []Demand, r float64) []kind {
	counts := map[[2]float64]int{}
	for _, d := range demands {
		counts[[2]float64{d.CPU, d.Memory}]++
	}
	kinds := make([]kind, 0, len(counts))
	for size, n := range counts {
		kinds = append(kinds, kind{size[0], size[1], size[0] + size[1]/r, n})
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory))
	})
	return kinds
}

// fillOne fills a node first-fit and says how much it holds; fill gets how many of each kind.
func fillOne(t Type, kinds []kind, fill []int) (held float64) {
	cpu, memory, pods := t.CPU, t.Memory, t.Pods
	for i, k := range kinds {
		n := min(k.count, pods, fits(cpu, k.cpu), fits(memory, k.memory))
		fill[i] = n
		cpu, memory, pods = cpu-float64(n)*k.cpu, memory-float64(n)*k.memory, pods-n
		held += float64(n) * k.weight
	}
	return held
}

// fits is how many pods find room, where sums of fractions may be a hair too much.
func fits(room, each float64) int {
	const most = 1 << 30
	if each <= 0 {
		return most
	}
	return max(0, int(room/each+1e-9))
}

// repeats is how often the same filling can be used: as long as that is so nothing else would
// be chosen.
func repeats(kinds []kind, fill []int) int {
	times := 0
	for i, k := range kinds {
		if fill[i] > 0 {
			if n := k.count / fill[i]; times == 0 || n < times {
				times = n
			}
		}
	}
	return max(1, times)
}

// Repacked is what demands cost that are packed anew every so many seconds, in US dollars from
// 0 to each of the moments, which rise.
func Repacked(types []Type, demands []Demand, every int64, moments []int64) []float64 {
	byArrival := slices.Clone(demands)
	slices.SortStableFunc(byArrival, func(a, b Demand) int { return cmp.Compare(a.Arrive, b.Arrive) })
	var alive []Demand
	var now, next int64
	var rate, sum float64
	out := make([]float64, 0, len(moments))
	for _, moment := range moments {
		for next <= moment {
			sum += rate * float64(next-now) / 3600
			now = next
			for len(byArrival) > 0 && byArrival[0].Arrive <= now {
				alive = append(alive, byArrival[0])
				byArrival = byArrival[1:]
			}
			alive = slices.DeleteFunc(alive, func(d Demand) bool { return d.Ends <= now })
			rate = Repack(types, alive)
			next += every
		}
		sum += rate * float64(moment-now) / 3600
		now = moment
		out = append(out, sum)
	}
	return out
}
