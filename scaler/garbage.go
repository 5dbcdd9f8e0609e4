package main

import (
	"cmp"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

const (
	// garbage is how far the heap may grow between two collections, in percent of what lives.
	// What lives are the cluster's pods and nodes, which stay for long, and an evaluation makes
	// little beside them, so that a quarter of Go's usual 100 saves a third of the heap. Where 50
	// pods a second come and go it costs two hundredths of a core more than a half would.
	garbage = 25
	// leastGarbage, in bytes, is how far a leader's may grow in any case: of what lives of a small cluster a
	// quarter is so little that to collect it takes two fifths of the scaler's time while a thousand pods move.
	leastGarbage = 6 << 20
)

// collectGarbage sets how often a process begins with. GOGC overrules it, here and below.
func collectGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// collector is how often a leader collects garbage.
type collector struct {
	percent int // as it was set last; zero for garbage
}

// adapt goes by how many bytes live. To set the percentage stops the program for a moment, so it is left
// where little would change.
func (c *collector) adapt(live uint64) {
	is, want := cmp.Or(c.percent, garbage), percentOf(live)
	if os.Getenv("GOGC") != "" || 3*is < 4*want && 3*want < 4*is {
		return
	}
	debug.SetGCPercent(want)
	c.percent = want
}

func percentOf(live uint64) int {
	return max(garbage, int(100*leastGarbage/max(live, leastGarbage/4)))
}

// livingBytes are those that the last collection found in use.
func livingBytes() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
