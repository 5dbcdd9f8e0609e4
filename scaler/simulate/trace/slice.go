package trace

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Slice is a part of a trace.
type Slice struct {
	// From and To are days. A history has a Window instead.
	From, To float64
	// Ramp is how many seconds the pods that are alive at the start take to come; with 0
	// all of them come at once.
	Ramp int64
	// Divide is what requests are divided by, at least 1.
	Divide float64
	// Sample takes a service if a hash of its name, modulo Sample, is Phase; 0 takes all.
	Sample, Phase uint32
}

func (s Slice) check() error {
	if !(s.Divide >= 1) || s.Ramp < 0 {
		return fmt.Errorf("requests divided by %v, with a ramp of %d s: want a divisor of at least 1, and no negative ramp", s.Divide, s.Ramp)
	}
	return nil
}

// row is a pod that was there.
type row struct {
	// id is what its share of the ramp depends on, service the name by which it is sampled.
	id, service      string
	milliCPU, memory int64
	created, deleted int64
}

// gather makes a trace of rows that live within a slice.
type gather struct {
	trace     Trace
	workloads book
	from, to  int64
	slice     Slice
}

func newGather(start time.Time, from, to int64, s Slice) *gather {
	g := &gather{trace: Trace{Start: start, Seconds: to - from}, from: from, to: to, slice: s}
	g.workloads.trace = &g.trace
	return g
}

// add takes a pod of the workload with a key, which is made for the first of them.
func (g *gather) add(r row, key string, make func() Workload) {
	if g.slice.Sample > 0 && hashOf(r.service)%g.slice.Sample != g.slice.Phase {
		return
	}
	if arrive, ends, lives := g.cut(r); lives {
		g.trace.Pods = append(g.trace.Pods, Pod{Workload: g.workloads.workload(key, make), Arrive: arrive, Ends: ends})
	}
}

// cut returns when a pod comes and ends in the slice, and whether it lives in it.
func (g *gather) cut(r row) (arrive, ends int64, lives bool) {
	if r.created >= g.to || r.deleted <= max(g.from, r.created) {
		return 0, 0, false
	}
	arrive, ends = r.created-g.from, r.deleted-g.from
	if r.deleted == Never {
		ends = Never
	}
	if arrive < 0 {
		share := float64(hashOf(r.id)%100_000) / 100_000
		arrive = int64(share * float64(g.slice.Ramp))
	}
	return arrive, ends, arrive < ends
}

func (g *gather) done() Trace {
	g.trace.order()
	return g.trace
}

func hashOf(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum32()
}
