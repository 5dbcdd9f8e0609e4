package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/policy"
)

// held is a loop over a world in which a hook of 30 s holds an instance whose drain lasts.
type held struct {
	*stage
	w *scenario.World
	// growth is how long an evaluation takes to work out its second part.
	growth time.Duration
	// deaf: AWS answers no heartbeat.
	deaf bool
	// told are the heartbeats that were reported, as metrics and Events are.
	told int

	mu    sync.Mutex
	beats []time.Duration // when heartbeats were sent, since the begin
	calls int             // heartbeats that were tried
}

const holds = 30 * time.Second

func newHeld(t *testing.T, growth time.Duration) *held {
	t.Helper()
	h := &held{stage: newStage(), w: scenario.NewWorld(), growth: growth}
	if err := h.w.Apply("group web min=0 max=5 desired=1 hook=windlass/30s/2h\nnode a group=web state=Terminating:Wait\nagent a ready\npod app on=a cpu=1\nreport a phase=Draining kind=asg answers=asg-terminate:i-a"); err != nil {
		t.Fatal(err)
	}
	planner, policy := plan.NewPlanner(), policy.DefaultPolicy()
	policy.TerminationHooks = []string{"windlass"}
	h.policy = policy
	h.decide = func(snapshot fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
		urgent, rest := planner.Begin(snapshot, policy)
		return urgent, func() plan.Plan {
			time.Sleep(h.growth)
			return rest()
		}
	}
	h.remember = func(_ context.Context, next fleet.State) error { h.state = next; return nil }
	h.act = func(_ context.Context, actions []action.Action) []act.Result {
		var results []act.Result
		for _, a := range actions {
			results = append(results, h.carryOut(a))
		}
		return results
	}
	h.tell = func(e evaluation) {
		for _, r := range e.results {
			if _, beat := r.Action.(action.Heartbeat); beat && r.Outcome == act.Done {
				h.told++
			}
		}
	}
	h.pulse = newPulse(h.time, func(_ context.Context, x action.Heartbeat) act.Result { return h.carryOut(x) })
	h.now = func() time.Time { return h.w.Now.Add(time.Since(h.began)) }
	h.observe = func(now time.Time) (fleet.Snapshot, uint64, error) {
		h.version++
		snapshot := h.w.Snapshot
		snapshot.Now, snapshot.State = now, h.state
		return snapshot, h.version, nil
	}
	return h
}

func (h *held) carryOut(a action.Action) act.Result {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := act.Result{Action: a, Outcome: act.Done, Ended: h.time()}
	if _, beat := a.(action.Heartbeat); beat {
		if h.calls++; h.deaf {
			r.Outcome, r.Err = act.Failed, errors.New("AWS is away")
			return r
		}
		h.beats = append(h.beats, time.Since(h.began))
	}
	return r
}

// run lets the loop run with its pulse, while something has always changed.
func (h *held) run(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	beside.Go(func() { h.pulse.run(ctx) })
	beside.Go(func() {
		for ctx.Err() == nil {
			select {
			case h.changes <- struct{}{}:
			case <-ctx.Done():
			}
		}
	})
	h.stage.run(t, d)
	stop()
	beside.Wait()
}

// last is when the last heartbeat was sent.
func (h *held) last() time.Duration {
	if len(h.beats) == 0 {
		return 0
	}
	return h.beats[len(h.beats)-1]
}

// worst is the longest time between two heartbeats.
func (h *held) worst() (worst time.Duration) {
	last := time.Duration(0)
	for _, at := range h.beats {
		worst, last = max(worst, at-last), at
	}
	return worst
}

// Heartbeats go out in time, however long it takes to work out what grows, and each is in the
// state and in what is reported. Where evaluations are quick the pulse has nothing to do.
func TestHeartbeatsDoNotWaitForGrowth(t *testing.T) {
	for _, growth := range []time.Duration{10 * time.Millisecond, time.Second, 15 * time.Second, 65 * time.Second} {
		t.Run(growth.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t, growth)
				h.run(t, 8*time.Minute)
				if worst := h.worst(); len(h.beats) == 0 || worst >= holds/2 || h.last() < 7*time.Minute {
					t.Fatalf("%s between two heartbeats of a hook that waits %s: %v", worst, holds, h.beats)
				}
				var needless []time.Duration
				for i, at := range h.beats[1:] {
					if at-h.beats[i] < 10*time.Second {
						needless = append(needless, at)
					}
				}
				if len(needless) > 0 {
					t.Errorf("heartbeats that were not due: %v of %v", needless, h.beats)
				}
				if missing := len(h.beats) - h.told; missing > int(2*growth/(12*time.Second))+1 { // those of the last turn, and of the one before, which it reports
					t.Errorf("%d of %d heartbeats were not reported", missing, len(h.beats))
				}
			})
		})
	}
}

// Where the loop hangs no heartbeat is sent after the time of a drain.
func TestAHungLoopKeepsNoHookForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t, 3*time.Hour)
		h.run(t, 4*time.Hour)
		drain := policy.DefaultPolicy().TerminationDrainTime
		if last := h.last(); last < drain-holds || last > drain {
			t.Errorf("the last heartbeat came after %s, a drain may last %s", last, drain)
		}
	})
}

// What AWS does not answer is tried again in a moment, whoever has tried it, and however long that
// evaluation lasts.
func TestHeartbeatsAreTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		// growth of evaluations: of 13 s, the loop tries the first heartbeat, and of 5 min the pulse.
		growth, deafUntil time.Duration
	}{{"the loop's", 13 * time.Second, 20 * time.Second}, {"the pulse's", 5 * time.Minute, 20 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeld(t, c.growth)
				h.deaf = true
				go func() {
					time.Sleep(c.deafUntil)
					h.mu.Lock()
					h.deaf = false
					h.mu.Unlock()
				}()
				h.run(t, 4*time.Minute)
				if len(h.beats) == 0 || h.beats[0] > c.deafUntil+2*time.Second {
					t.Errorf("the first heartbeat that AWS could answer came late: %v", h.beats)
				}
				if failed := h.calls - len(h.beats); failed < 2 || failed > 10 {
					t.Errorf("%d heartbeats failed", failed)
				}
			})
		})
	}
}

// Of many that are overdue those go first whose hooks wait for the shortest time, eight at a time; each is looked
// at again when its turn comes, and none is sent for which it is too late by then.
func TestManyOverdueHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, atOnce, most := time.Now(), 0, 0
		var mu sync.Mutex
		var sent []string
		p := newPulse(time.Now, func(_ context.Context, x action.Heartbeat) act.Result {
			mu.Lock()
			atOnce++
			most = max(most, atOnce)
			sent = append(sent, x.Instance)
			mu.Unlock()
			time.Sleep(5 * time.Second) // AWS is slow
			mu.Lock()
			atOnce--
			mu.Unlock()
			return act.Result{Action: x, Outcome: act.Done, Ended: time.Now(), Took: 5 * time.Second}
		})
		foreseen := func(instance string, every time.Duration) outcome.Foreseen {
			return outcome.Foreseen{Heartbeat: action.Heartbeat{Instance: instance, Hook: "h"}, Due: began, Every: every, Until: began.Add(time.Hour)}
		}
		var all []outcome.Foreseen
		for i := range 24 {
			all = append(all, foreseen(fmt.Sprintf("i-%02d", i), time.Duration(100-i)*time.Second))
		}
		all[3].Until = began.Add(9 * time.Second) // by its turn, the third, it is too late
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.run(ctx) })
		p.expect(all)
		time.Sleep(10 * time.Second) // two rounds are sent or under way
		p.expect(all[:4])            // the other hooks are completed
		time.Sleep(20 * time.Second)
		stop()
		running.Wait()
		slices.Sort(sent[:8])
		slices.Sort(sent[8:16])
		var want []string
		for _, from := range []int{16, 8} {
			for i := range 8 {
				want = append(want, all[from+i].Instance)
			}
		}
		want = append(want, all[0].Instance, all[1].Instance, all[2].Instance)
		slices.Sort(want[16:])
		slices.Sort(sent[16:])
		if diff := cmp.Diff(want, sent); diff != "" || most != beatsAtOnce {
			t.Errorf("%d at once; sent (-want +got):\n%s", most, diff)
		}
		if got := len(p.taken()); got != len(want) {
			t.Errorf("%d results of %d", got, len(want))
		}
	})
}

// A hook that is completed gets no heartbeat more, also while that evaluation lasts.
func TestCompletedHooksGetNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t, 20*time.Second)
		decide := h.decide
		h.decide = func(s fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
			urgent, rest := decide(s)
			if time.Since(h.began) > time.Minute {
				urgent.Actions, urgent.Foreseen = []action.Action{action.Complete{Group: "web", Instance: "i-a", Hook: "windlass"}}, nil
			}
			return urgent, rest
		}
		h.run(t, 5*time.Minute)
		after := slices.DeleteFunc(slices.Clone(h.beats), func(at time.Duration) bool { return at < 80*time.Second })
		if len(h.beats) == 0 || len(after) > 0 {
			t.Errorf("heartbeats after the hook was completed: %v of %v", after, h.beats)
		}
	})
}

// Only what was sent counts, and the later of two; and nothing that is given is changed.
func TestWithBeats(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	beat := func(instance string, outcome act.Outcome) act.Result {
		return act.Result{Action: action.Heartbeat{Instance: instance, Hook: "h"}, Outcome: outcome, Ended: at.Add(3 * time.Second), Took: time.Second}
	}
	later := at.Add(time.Minute) // the loop has sent one since
	given := fleet.State{Heartbeats: map[string]time.Time{"i-a/h": at, "i-b/h": at, "i-d/h": later}}
	got := withBeats(given, []act.Result{beat("i-a", act.Done), beat("i-b", act.Failed), beat("i-c", act.Done), beat("i-d", act.Done)})
	sent := at.Add(2 * time.Second)
	want := map[string]time.Time{fleet.HeartbeatKey("i-a", "h"): sent, fleet.HeartbeatKey("i-b", "h"): at, fleet.HeartbeatKey("i-c", "h"): sent, fleet.HeartbeatKey("i-d", "h"): later}
	if diff := cmp.Diff(want, got.Heartbeats); diff != "" {
		t.Error(diff)
	}
	if fmt.Sprint(given.Heartbeats) != fmt.Sprint(map[string]time.Time{"i-a/h": at, "i-b/h": at, "i-d/h": later}) {
		t.Error("what was given is changed")
	}
}
