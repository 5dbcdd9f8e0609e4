package live_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/live"
)

// A life in real time, with the clock of the test bubble: an observer learns of each step when it happens, and nobody polls.
func TestStepsComeWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, started := 1, time.Now()
		var gone []string
		l, err := live.Start(cloud.Spec{Timing: cloud.Timing{Quick: true}, Groups: []cloud.Group{{
			Name: "web", Max: 2, Desired: &one, Type: "m5.large", Spot: true,
			Hooks: []cloud.Hook{{Name: "down", Transition: "terminate", HeartbeatSeconds: 300, Default: cloud.Continue}},
		}}}, nil, func(id string) { gone = append(gone, id) })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var seen []string
		l.OnInstance(func(i cloud.Instance) {
			seen = append(seen, fmt.Sprintf("%v %s %s", time.Since(started), i.LifecycleState, i.OS))
		})
		time.Sleep(10 * time.Second)
		var id string
		err = l.With(func(c *cloud.Cloud, now time.Time) error {
			id = c.Instances()[0].ID
			_, err := c.Terminate("web", []string{id}, true, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{
			"0s Pending booting", "200ms InService booting", "1s InService up", "10s Terminating up", "10.1s Terminating:Wait up",
			"5m10.1s Terminating:Proceed up", "5m10.15s Terminating:Proceed up", "5m10.45s Terminated off",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(gone) != 1 || gone[0] != id {
			t.Errorf("gone: %v, want %s once", gone, id)
		}
	})
}

// Who comes late learns of what is there, then of what changes; observers may call the cloud.
func TestObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := 2
		l, err := live.Start(cloud.Spec{Timing: cloud.Timing{Quick: true}, Groups: []cloud.Group{{Name: "web", Max: 3, Desired: &two, Type: "m5.large"}}}, nil, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		time.Sleep(10 * time.Second)
		var early, late []string
		l.OnInstance(func(i cloud.Instance) { early = append(early, string(i.LifecycleState)) })
		l.OnInstance(func(i cloud.Instance) {
			late = append(late, string(i.LifecycleState))
			if i.LifecycleState == cloud.Pending && !i.Protected { // a call from within an observer
				_ = l.With(func(c *cloud.Cloud, now time.Time) error { return c.Protect("web", []string{i.ID}, true, now) })
			}
		})
		_ = l.With(func(c *cloud.Cloud, now time.Time) error { return c.SetDesiredCapacity("web", 3, false, now) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want := "InService InService Pending Pending InService InService" // the second of each: protected, booted
		if got := strings.Join(early, " "); got != want {
			t.Errorf("early: %s\nwant:  %s", got, want)
		}
		if got := strings.Join(late, " "); got != want {
			t.Errorf("late: %s\nwant: %s", got, want)
		}
	})
}
