package main

import (
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

// collectEvery sets how far the heap may grow, in percent of what lives. GOGC overrules it.
func collectEvery(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// percentOf is how far a leader's heap may grow, of which so many bytes live.
func percentOf(live uint64) int {
	return max(garbage, int(100*leastGarbage/max(live, leastGarbage/4)))
}

// livingBytes are those that the last collection found in use.
func livingBytes() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
