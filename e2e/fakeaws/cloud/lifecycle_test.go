package cloud

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world is a cloud with a clock that the test turns.
type world struct {
	*Cloud
	t   *testing.T
	now time.Time
}

func newWorld(t *testing.T, groups ...Group) *world {
	t.Helper()
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	c, err := New(Spec{Timing: Timing{Quick: true}, Groups: groups}, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &world{Cloud: c, t: t, now: start}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.Advance(w.now)
}

// states are the lifecycle states of all instances that a group has, by number.
func (w *world) states(group string) map[LifecycleState]int {
	w.t.Helper()
	s, err := w.Group(group)
	if err != nil {
		w.t.Fatal(err)
	}
	m := map[LifecycleState]int{}
	for _, i := range append(s.Instances, s.Warm...) {
		m[i.LifecycleState]++
	}
	return m
}

func (w *world) want(group string, want map[LifecycleState]int) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.states(group)); diff != "" {
		w.t.Fatalf("at %v, states of %s (-want +got):\n%s", w.now.Sub(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)), group, diff)
	}
}

// paths are the states that each instance went through, in the order of their launch.
func (w *world) paths() []string {
	var (
		ids   []string
		paths = map[string]string{}
		last  = map[string]string{}
	)
	for _, e := range w.TakeEvents() {
		if _, ok := paths[e.ID]; !ok {
			ids = append(ids, e.ID)
		}
		word := fmt.Sprintf(" %s/%s", e.LifecycleState, e.OS)
		if last[e.ID] == word {
			continue
		}
		last[e.ID] = word
		paths[e.ID] += word
	}
	var list []string
	for _, id := range ids {
		list = append(list, paths[id])
	}
	return list
}

// Without hooks, an instance is pending, serves, terminates and is gone; its operating system is up a while after the launch.
func TestLifeWithoutHooks(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 3, Type: "m5.large"})
	if err := w.SetDesiredCapacity("web", 1, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	if err := w.SetDesiredCapacity("web", 0, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	want := []string{" Pending/booting InService/booting InService/up Terminating/up Terminated/off"}
	if diff := cmp.Diff(want, w.paths()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// Hooks hold an instance in the wait states until they are completed.
func TestLifeWithHooks(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 3, Type: "m5.large", Hooks: []Hook{
		{Name: "up", Transition: "launch", Default: Continue}, {Name: "down", Transition: "terminate", Default: Continue, HeartbeatSeconds: 300},
	}})
	if err := w.SetDesiredCapacity("web", 1, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{PendingWait: 1})
	id := w.Instances()[0].ID
	if err := w.CompleteLifecycleAction("web", "up", id, "", Continue, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
	if _, err := w.Terminate("", []string{id}, true, w.now); err != nil {
		t.Fatal(err)
	}
	early := w.CompleteLifecycleAction("web", "down", id, "", Continue, w.now)
	w.pass(299 * time.Second)
	w.want("web", map[LifecycleState]int{TerminatingWait: 1})
	if err := w.CompleteLifecycleAction("web", "down", id, "", Continue, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	late := w.CompleteLifecycleAction("web", "down", id, "", Continue, w.now)
	w.want("web", map[LifecycleState]int{})
	text := "ValidationError: No active Lifecycle Action found with instance ID " + id
	if early == nil || late == nil || early.Error() != text || late.Error() != text {
		t.Fatalf("completed too early: %v; too late: %v", early, late)
	}
	want := []string{" Pending/booting Pending:Wait/booting Pending:Wait/up Pending:Proceed/up InService/up" +
		" Terminating/up Terminating:Wait/up Terminating:Proceed/up Terminated/off"}
	if diff := cmp.Diff(want, w.paths()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}
