package cloud

import (
	"errors"
	"testing"
	"time"
)

func hooked(hooks ...Hook) Group {
	one := 1
	return Group{Name: "web", Max: 3, Desired: &one, Type: "m5.large", Hooks: hooks}
}

// terminating is a world whose one instance waits for its terminating hooks.
func terminating(t *testing.T, g Group) (*world, string) {
	t.Helper()
	w := newWorld(t, g)
	w.pass(10 * time.Second)
	id := w.Instances()[0].ID
	if _, err := w.Terminate("", []string{id}, true, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(100 * time.Millisecond) // Terminating takes so long.
	w.want("web", map[LifecycleState]int{TerminatingWait: 1})
	return w, id
}

// The heartbeat time-out ends the wait, and a heartbeat starts it again, up to the global time-out.
func TestHeartbeatAndGlobalTimeout(t *testing.T) {
	w, id := terminating(t, hooked(Hook{Name: "down", Transition: "terminate", HeartbeatSeconds: 60, GlobalSeconds: 150, Default: Continue}))
	for range 2 {
		w.pass(59 * time.Second)
		if err := w.Heartbeat("web", "down", id, "", w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(31 * time.Second) // 149 s
	w.want("web", map[LifecycleState]int{TerminatingWait: 1})
	w.pass(2 * time.Second)
	w.want("web", map[LifecycleState]int{})
}

func TestHeartbeatTimesOut(t *testing.T) {
	w, _ := terminating(t, hooked(Hook{Name: "down", Transition: "terminate", HeartbeatSeconds: 60, Default: Continue}))
	w.pass(59 * time.Second)
	w.want("web", map[LifecycleState]int{TerminatingWait: 1})
	w.pass(2 * time.Second)
	w.want("web", map[LifecycleState]int{})
}

// An instance waits for every hook; an abandoned one ends the others.
func TestSeveralHooks(t *testing.T) {
	both := []Hook{{Name: "ours", Transition: "terminate"}, {Name: "foreign", Transition: "terminate"}}
	w, id := terminating(t, hooked(both...))
	if err := w.CompleteLifecycleAction("web", "ours", id, "", Continue, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	w.want("web", map[LifecycleState]int{TerminatingWait: 1})
	if err := w.CompleteLifecycleAction("web", "foreign", "", w.Instances()[0].Waiting[0].Token, Continue, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.want("web", map[LifecycleState]int{})

	w, id = terminating(t, hooked(both...))
	if err := w.CompleteLifecycleAction("web", "ours", id, "", Abandon, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.want("web", map[LifecycleState]int{})
}

// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-lifecycle-policy.html
func TestRetainedWhenAbandoned(t *testing.T) {
	g := hooked(Hook{Name: "down", Transition: "terminate", HeartbeatSeconds: 60}) // The default result is ABANDON.
	g.RetainOnTerminateHookAbandon = true
	w, id := terminating(t, g)
	w.pass(time.Hour)
	w.want("web", map[LifecycleState]int{TerminatingRetained: 1})
	if _, err := w.Terminate("", []string{id}, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.want("web", map[LifecycleState]int{})
}

// An abandoned launch is thrown away and tried again.
func TestAbandonedLaunch(t *testing.T) {
	w := newWorld(t, hooked(Hook{Name: "up", Transition: "launch"}))
	w.pass(10 * time.Second)
	first := w.Instances()[0].ID
	if err := w.CompleteLifecycleAction("web", "up", first, "", Abandon, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{PendingWait: 1})
	if i, err := w.Instance(first); err != nil || !i.Gone {
		t.Fatalf("the abandoned instance is not gone: %+v, %v", i, err)
	}
}

func TestHookErrors(t *testing.T) {
	w, id := terminating(t, hooked(Hook{Name: "down", Transition: "terminate"}))
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"group":   {w.CompleteLifecycleAction("other", "down", id, "", Continue, w.now), "AutoScalingGroup name not found - AutoScalingGroup 'other' not found"},
		"hook":    {w.CompleteLifecycleAction("web", "other", id, "", Continue, w.now), "No active Lifecycle Action found with instance ID " + id},
		"token":   {w.Heartbeat("web", "down", "", "none", w.now), "No active Lifecycle Action found with token none"},
		"neither": {w.Heartbeat("web", "down", "", "", w.now), "Either a lifecycle action token or an instance ID must be specified"},
		"result":  {w.CompleteLifecycleAction("web", "down", id, "", "DONE", w.now), "1 validation error detected: Value 'DONE' at 'lifecycleActionResult' failed to satisfy constraint: Member must satisfy enum value set: [CONTINUE, ABANDON]"},
	} {
		var e *Error
		if !errors.As(c.err, &e) || e.Code != "ValidationError" || e.Status != 400 || e.Message != c.want {
			t.Errorf("%s: got %v, want %s", name, c.err, c.want)
		}
	}
}

// Deleting a terminating hook lets the instance go.
func TestDeleteHook(t *testing.T) {
	w, _ := terminating(t, hooked(Hook{Name: "down", Transition: "terminate"}))
	if err := w.DeleteHook("web", "down", w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.want("web", map[LifecycleState]int{})
}
