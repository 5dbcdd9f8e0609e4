package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// How often garbage is collected follows what lives, until the lead is lost, and GOGC overrules it.
func TestGarbageByWhatLives(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	want := func(want int) {
		t.Helper()
		got := debug.SetGCPercent(garbage)
		debug.SetGCPercent(got)
		if got != want {
			t.Errorf("%d percent, want %d", got, want)
		}
	}
	t.Setenv("GOGC", "")
	for live, percent := range map[uint64]int{1 << 30: garbage, 24 << 20: garbage, 12 << 20: 50, 3 << 20: 200, 0: 400} {
		collectEvery(percentOf(live))
		want(percent)
	}
	collectEvery(percentOf(0))
	t.Setenv("GOGC", "70")
	collectEvery(percentOf(1 << 30))
	collectEvery(garbage)
	want(400)
	t.Setenv("GOGC", "")
	collectEvery(garbage)
	want(garbage)
}

func TestLivingBytes(t *testing.T) {
	held := make([]byte, 50<<20)
	runtime.GC()
	if live := livingBytes(); live < uint64(len(held)) {
		t.Errorf("%d bytes, and %d are in use", live, len(held))
	}
	runtime.KeepAlive(held)
}
