package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/world"
)

// sample is what of a process was in memory at one moment.
type sample struct {
	at     time.Time
	memory world.Memory
}

// lives are the samples of each run of a program.
type lives map[world.Process][]sample

// take samples every program that runs.
func (l lives) take(running []world.Process, now time.Time) {
	for _, p := range running {
		m, err := world.MemoryOf(p.PID)
		if err != nil {
			continue // it has ended meanwhile
		}
		l[p] = append(l[p], sample{now, m})
	}
}

// growth compares a program's memory early and late in the life of one process.
type growth struct {
	process world.Process
	lived   time.Duration
	// quarters are the least of each quarter of the life: what grows to the end can be
	// told from what has been filled once, or for as long as many pods were there.
	quarters [4]world.Memory
	// early is what there was at the beginning, in bytes of anonymous memory, of the one of its kind
	// that had most: a scaler that comes to lead grows to what the leader had.
	early int64
}

// warmUp is the part of a life that says nothing: caches fill.
const warmUp = time.Minute

// bound is how much more anonymous memory, heap and stacks, there may be at the end
// of a life than at its beginning: a share of it, and what one collection more or
// less makes.
const (
	boundShare           = 0.25
	boundSlack     int64 = 4 << 20
	leastToCompare       = 8 // samples in a life
)

// growths compares every life that lasted for half of the soak at least.
func (l lives) growths(least time.Duration) []growth {
	var all []growth
	for p, samples := range l {
		begin := p.Started.Add(min(warmUp, least/4))
		samples = slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.at.Before(begin) })
		if len(samples) < leastToCompare {
			continue
		}
		lived := samples[len(samples)-1].at.Sub(p.Started)
		if lived < least {
			continue
		}
		g := growth{process: p, lived: lived}
		for i := range g.quarters {
			g.quarters[i] = least10(samples[i*len(samples)/4 : (i+1)*len(samples)/4])
		}
		all = append(all, g)
	}
	for i := range all {
		for _, g := range all {
			if g.process.App == all[i].process.App {
				all[i].early = max(all[i].early, g.quarters[0].Anonymous)
			}
		}
	}
	slices.SortFunc(all, func(a, b growth) int { // the scalers first
		return cmp.Or(cmp.Compare(b.process.App, a.process.App), cmp.Compare(a.process.Pod, b.process.Pod))
	})
	return all
}

// least10 is what a tenth of the samples do not exceed.
func least10(samples []sample) world.Memory {
	low := func(of func(sample) int64) int64 {
		var all []int64
		for _, s := range samples {
			all = append(all, of(s))
		}
		slices.Sort(all)
		return all[len(all)/10]
	}
	return world.Memory{
		Resident:  low(func(s sample) int64 { return s.memory.Resident }),
		Anonymous: low(func(s sample) int64 { return s.memory.Anonymous }),
	}
}

// tooMuch reports whether the growth is beyond the bound.
func (g growth) tooMuch() bool {
	return g.quarters[3].Anonymous > g.early+int64(boundShare*float64(g.early))+boundSlack
}

func (g growth) String() string {
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	text := fmt.Sprintf("%-32s lived %8s  resident %5.1f → %5.1f MiB  anonymous", g.process.Pod, g.lived.Round(time.Second), mib(g.quarters[0].Resident), mib(g.quarters[3].Resident))
	for _, quarter := range g.quarters {
		text += fmt.Sprintf(" %5.1f", mib(quarter.Anonymous))
	}
	return text + " MiB by quarters of its life"
}

// runs counts the processes that were sampled, by program.
func (l lives) runs() map[string]int {
	count := map[string]int{}
	for p := range maps.Keys(l) {
		count[p.App]++
	}
	return count
}
