// Package bound finds what the pods of a time must cost at the least, and what they would cost
// if all of them could be packed anew at any moment: two yardsticks for a bill.
package bound

import (
	"cmp"
	"math"
	"slices"
)

// Type is a node type: what pods may have of a node, and US dollars an hour.
type Type struct {
	Name         string
	CPU, Memory  float64 // cores, GiB
	Pods         int
	PricePerHour float64
}

// Demand is what a pod asks for, in cores and GiB, and from when to when, in seconds.
type Demand struct {
	CPU, Memory  float64
	Arrive, Ends int64
	// Elsewhere is true of what may run where nothing is paid for. The room there is a demand
	// below zero.
	Elsewhere bool
}

// corner is a pair of prices, of a core and of a GiB an hour, at which no type is worth more
// than it costs.
type corner struct{ core, gib float64 }

// LP is the linear program
//
//	min Σ price·x  with  Σ cpu·x ≥ cpu asked for, Σ memory·x ≥ memory asked for, x ≥ 0
//
// for any demand. Its dual asks for the prices of a core and of a GiB at which the demand is
// worth the most; the demand is in the objective alone, so that the corners of what is
// feasible are the same for all demands and are found once. By strong duality the largest
// of the corners is the solution, exactly: no solver iterates.
type LP []corner

// NewLP finds the corners: each is where two of the borders cross, and on no type's wrong side.
func NewLP(types []Type) LP {
	type line struct{ a, b, c float64 } // a·core + b·gib = c
	lines := []line{{1, 0, 0}, {0, 1, 0}}
	for _, t := range types {
		lines = append(lines, line{t.CPU, t.Memory, t.PricePerHour})
	}
	feasible := func(p corner) bool {
		const slack = 1e-12
		return p.core >= -slack && p.gib >= -slack && !slices.ContainsFunc(types, func(t Type) bool {
			return t.CPU*p.core+t.Memory*p.gib > t.PricePerHour*(1+1e-9)+slack
		})
	}
	var corners LP
	for i, l := range lines {
		for _, m := range lines[:i] {
			det := l.a*m.b - m.a*l.b
			if math.Abs(det) < 1e-12 {
				continue
			}
			p := corner{(l.c*m.b - m.c*l.b) / det, (l.a*m.c - m.a*l.c) / det}
			if feasible(p) {
				corners = append(corners, p)
			}
		}
	}
	return corners
}

// PerHour is what a demand costs at the least, in US dollars an hour.
func (lp LP) PerHour(cpu, memory float64) float64 {
	most := 0.0
	for _, c := range lp {
		most = max(most, cpu*c.core+memory*c.gib)
	}
	return most
}

// Lower is the least that the demands of a time cost, in US dollars from 0 to each of the
// moments, which rise.
func (lp LP) Lower(demands []Demand, moments []int64) []float64 {
	type step struct {
		at          int64
		cpu, memory float64
		elsewhere   bool
	}
	steps := make([]step, 0, 2*len(demands))
	for _, d := range demands {
		steps = append(steps, step{d.Arrive, d.CPU, d.Memory, d.Elsewhere}, step{d.Ends, -d.CPU, -d.Memory, d.Elsewhere})
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	out := make([]float64, 0, len(moments))
	var cpu, memory, otherCPU, otherMemory, sum float64
	var now int64
	rate := func() float64 { return lp.PerHour(cpu+max(0, otherCPU), memory+max(0, otherMemory)) }
	for _, moment := range moments {
		for len(steps) > 0 && steps[0].at <= moment {
			s := steps[0]
			steps = steps[1:]
			sum += rate() * float64(max(0, s.at-now)) / 3600
			now = max(now, s.at)
			if s.elsewhere {
				otherCPU, otherMemory = otherCPU+s.cpu, otherMemory+s.memory
			} else {
				cpu, memory = cpu+s.cpu, memory+s.memory
			}
		}
		sum += rate() * float64(moment-now) / 3600
		now = moment
		out = append(out, sum)
	}
	return out
}
