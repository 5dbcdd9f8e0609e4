package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// The percentage follows what lives, but not each little change, and GOGC overrules it.
func TestCollectorAdapts(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	t.Setenv("GOGC", "")
	c := &collector{}
	adapts := func(live uint64, want int) {
		t.Helper()
		c.adapt(live)
		got := debug.SetGCPercent(garbage)
		debug.SetGCPercent(got)
		if got != want {
			t.Errorf("%d MiB live: %d, want %d", live>>20, got, want)
		}
	}
	adapts(1<<30, garbage)
	adapts(23<<20, garbage) // it would be 26
	adapts(12<<20, 50)
	adapts(11<<20, 50)
	adapts(3<<20, 200)
	adapts(0, 400)
	t.Setenv("GOGC", "70")
	adapts(1<<30, 400)
	t.Setenv("GOGC", "")
	adapts(1<<30, garbage)
}

func TestLivingBytes(t *testing.T) {
	held := make([]byte, 50<<20)
	runtime.GC()
	if live := livingBytes(); live < uint64(len(held)) {
		t.Errorf("%d bytes, and %d are in use", live, len(held))
	}
	runtime.KeepAlive(held)
}
