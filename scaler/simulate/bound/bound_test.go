package bound

import (
	"math"
	"testing"

	"windlass.dev/windlass/scaler/simulate/dice"
)

func someTypes(d *dice.Dice) []Type {
	var types []Type
	for range 1 + d.N(4) {
		cores := float64(int(1) << d.N(4))
		types = append(types, Type{
			CPU: cores, Memory: cores * float64(1+d.N(8)), Pods: 100, PricePerHour: cores * (0.02 + 0.05*d.Float()),
		})
	}
	return types
}

// TestLPAgainstVertices: the dual's corners give what the primal's vertices do. A vertex of
// the primal has at most two types; all of them are tried.
func TestLPAgainstVertices(t *testing.T) {
	d := dice.New(1, "lp")
	for world := range 2000 {
		types := someTypes(d)
		cpu, memory := 20*d.Float(), 80*d.Float()
		want := math.Inf(1)
		for i, a := range types {
			want = min(want, a.PricePerHour*max(cpu/a.CPU, memory/a.Memory))
			for _, b := range types[:i] {
				det := a.CPU*b.Memory - b.CPU*a.Memory
				if math.Abs(det) < 1e-12 {
					continue
				}
				x, y := (cpu*b.Memory-b.CPU*memory)/det, (a.CPU*memory-cpu*a.Memory)/det
				if x >= 0 && y >= 0 {
					want = min(want, x*a.PricePerHour+y*b.PricePerHour)
				}
			}
		}
		if got := NewLP(types).PerHour(cpu, memory); math.Abs(got-want) > 1e-9*(1+want) {
			t.Fatalf("world %d: %v, want %v for %v cores and %v GiB of %+v", world, got, want, cpu, memory, types)
		}
	}
}

// TestBoundAgainstBruteForce: no set of whole nodes that holds small worlds is cheaper than the
// bound, and packing anew is never cheaper than the best packing.
func TestBoundAgainstBruteForce(t *testing.T) {
	d := dice.New(2, "brute")
	tight := 0
	for world := range 150 {
		types := someTypes(d)
		var demands []Demand
		for range 1 + d.N(5) {
			demands = append(demands, Demand{CPU: 0.25 + 0.75*d.Float(), Memory: 0.1 + 0.9*d.Float(), Ends: 1})
		}
		var cpu, memory float64
		for _, x := range demands {
			cpu, memory = cpu+x.CPU, memory+x.Memory
		}
		lower, best, packed := NewLP(types).PerHour(cpu, memory), cheapest(types, demands, nil), Repack(types, demands)
		if lower > best+1e-9 || best > packed+1e-9 {
			t.Fatalf("world %d: want bound %v ≤ best %v ≤ packed %v", world, lower, best, packed)
		}
		if packed < 1.0001*best {
			tight++
		}
	}
	if tight < 75 {
		t.Errorf("packing anew found the best in %d of 150 small worlds: want more than half", tight)
	}
}

// cheapest tries every place for every pod.
func cheapest(types []Type, demands []Demand, open []Type) float64 {
	if len(demands) == 0 {
		return 0
	}
	first, rest := demands[0], demands[1:]
	best := math.Inf(1)
	try := func(i int, price float64) {
		room := open[i]
		if room.CPU < first.CPU || room.Memory < first.Memory {
			return
		}
		open[i].CPU, open[i].Memory = room.CPU-first.CPU, room.Memory-first.Memory
		best = min(best, price+cheapest(types, rest, open))
		open[i] = room
	}
	for i := range open {
		try(i, 0)
	}
	for _, t := range types {
		open = append(open, t)
		try(len(open)-1, t.PricePerHour)
		open = open[:len(open)-1]
	}
	return best
}

// TestIntegrals: by hand.
func TestIntegrals(t *testing.T) {
	types := []Type{{CPU: 2, Memory: 8, Pods: 10, PricePerHour: 1}}
	demands := []Demand{
		{CPU: 1, Memory: 1, Arrive: 0, Ends: 7200},       // half a node for two hours: $1
		{CPU: 0.5, Memory: 6, Arrive: 3600, Ends: 10800}, // with the first 7/8 for an hour, then 6/8
	}
	lower := NewLP(types).Lower(demands, []int64{3600, 7200, 14400})
	for i, want := range []float64{0.5, 0.5 + 0.875, 0.5 + 0.875 + 0.75} {
		if math.Abs(lower[i]-want) > 1e-9 {
			t.Errorf("the bound at %d is %v, want %v", i, lower[i], want)
		}
	}
	packed := Repacked(types, demands, 600, []int64{3600, 7200, 14400})
	for i, want := range []float64{1, 2, 3} { // always one node
		if math.Abs(packed[i]-want) > 1e-9 {
			t.Errorf("packed anew it is %v at %d, want %v", packed[i], i, want)
		}
	}
}
