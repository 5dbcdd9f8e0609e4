package main

import (
	"testing"
	"time"

	"windlass.dev/windlass/e2e/world"
)

func TestGrowth(t *testing.T) {
	const mib = 1 << 20
	begin := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	life := func(minutes int, anonymous func(minute int) int64) lives {
		p := world.Process{Pod: "p", App: "a", Started: begin}
		l := lives{}
		for m := range minutes + 1 {
			l[p] = append(l[p], sample{begin.Add(time.Duration(m) * time.Minute), world.Memory{Anonymous: anonymous(m)}})
		}
		return l
	}
	beside := func(a lives, leader int64) lives {
		for p, samples := range life(30, func(int) int64 { return leader }) {
			p.Pod = "leader"
			a[p] = samples
		}
		return a
	}
	for _, c := range []struct {
		reason string
		lives  lives
		want   string
	}{
		{"steady", life(30, func(int) int64 { return 20 * mib }), "fine"},
		{"a warm-up", life(30, func(m int) int64 { return int64(min(m, 1)+1) * 20 * mib }), "fine"},
		{"a saw of collections", life(30, func(m int) int64 { return int64(20+m%5) * mib }), "fine"},
		{"a leak of a MiB a minute", life(30, func(m int) int64 { return int64(20+m) * mib }), "too much"},
		{"bursts of pods, most of them late", life(30, func(m int) int64 {
			if m%8 < m/5 {
				return 200 * mib
			}
			return 20 * mib
		}), "fine"},
		{"a leak beside bursts", life(30, func(m int) int64 { return int64(20+m+(m%3)*100) * mib }), "too much"},
		{"one that comes to lead", beside(life(30, func(m int) int64 { return int64(25+m/15*16) * mib }), 40*mib), "fine"},
		{"a leak beside a leader", beside(life(30, func(m int) int64 { return int64(25+2*m) * mib }), 40*mib), "too much"},
		{"a short life", life(10, func(m int) int64 { return int64(20+3*m) * mib }), "not compared"},
	} {
		got := "not compared"
		for _, g := range c.lives.growths(15 * time.Minute) {
			if g.tooMuch() {
				got = "too much"
				break
			}
			got = "fine"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
