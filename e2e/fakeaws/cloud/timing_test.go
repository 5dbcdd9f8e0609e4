package cloud

import (
	"testing"
	"time"
)

// What a spec says stands; for the rest AWS is as slow as it is, or next to no time passes.
func TestTimings(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	own := Duration(7 * time.Second)
	for _, c := range []struct {
		spec                            Timing
		boot, pending, takes, lag, says time.Duration
	}{
		{Timing{Reconcile: own}, 30 * time.Second, 16500 * time.Millisecond, 2500 * time.Millisecond, time.Second, 7 * time.Second},
		{Timing{Quick: true, Reconcile: own}, time.Second, 200 * time.Millisecond, 0, 0, 7 * time.Second},
	} {
		n := 1
		cloud, err := New(Spec{Timing: c.spec, Groups: []Group{{Name: "web", Max: 1, Desired: &n, Type: "m5.large"}}}, start, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := cloud.Instances()[0]
		up := func(after time.Duration) (os OSState, state LifecycleState) {
			cloud.Advance(start.Add(after))
			i = cloud.Instances()[0]
			return i.OS, i.LifecycleState
		}
		if os, state := up(c.pending - 1); os != OSBooting || state != "Pending" {
			t.Errorf("%+v: just before it runs it is %s and %s", c.spec, os, state)
		}
		if _, state := up(c.pending); state != "InService" {
			t.Errorf("%+v: after %s it is %s", c.spec, c.pending, state)
		}
		if os, _ := up(c.boot - 1); os != OSBooting {
			t.Errorf("%+v: just before it is up it is %s", c.spec, os)
		}
		if os, _ := up(c.boot); os == OSBooting {
			t.Errorf("%+v: after %s it is not up", c.spec, c.boot)
		}
		if cloud.LaunchTakes() != c.takes || cloud.Lag() != c.lag || time.Duration(cloud.spec.Timing.Reconcile) != c.says {
			t.Errorf("%+v: LaunchInstances takes %s, reads lag %s, reconcile %s", c.spec, cloud.LaunchTakes(), cloud.Lag(), time.Duration(cloud.spec.Timing.Reconcile))
		}
	}
}
