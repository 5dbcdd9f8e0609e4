package cloud

import (
	"fmt"
	"testing"
	"time"
)

// A burst of launches, and the look of a client at the result.
func BenchmarkLaunch(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
				c, err := New(Spec{Timing: Timing{Quick: true}, Groups: []Group{{Name: "web", Max: n, Type: "m5.large", Zones: abc}}}, now, nil)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.SetDesiredCapacity("web", n, false, now); err != nil {
					b.Fatal(err)
				}
				c.Advance(now.Add(time.Minute))
				if g, _ := c.Group("web"); len(g.Instances) != n {
					b.Fatalf("%d instances", len(g.Instances))
				}
			}
		})
	}
}
