package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/status"
)

// stage is a loop of func fields that notes what is asked of it, and when.
type stage struct {
	loop
	began   time.Time
	notes   []string
	changes chan struct{}
	plans   []plan.Plan // one after the other; the last one repeats
	outcome act.Outcome
	version uint64
	still   bool        // nothing changes any more
	blind   bool        // not everything is seen
	state   fleet.State // that evaluations begin with
}

func newStage(plans ...plan.Plan) *stage {
	s := &stage{began: time.Now(), changes: make(chan struct{}, 1), plans: plans, outcome: act.Done}
	s.loop = loop{
		observe: func(now time.Time) (fleet.Snapshot, uint64, error) {
			if s.blind {
				return fleet.Snapshot{}, 0, fmt.Errorf("%w: nodes", observe.ErrNotYet)
			}
			if !s.still {
				s.version++
			}
			return fleet.Snapshot{Now: now, State: s.state}, s.version, nil
		},
		decide: func(fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
			s.note("look")
			p := s.plans[0]
			if len(s.plans) > 1 {
				s.plans = s.plans[1:]
			}
			var urgent, others []action.Action
			for _, a := range p.Actions {
				switch a.(type) {
				case action.Heartbeat, action.Complete:
					urgent = append(urgent, a)
				default:
					others = append(others, a)
				}
			}
			return plan.Urgent{Actions: urgent}, func() plan.Plan {
				p.Actions = others
				return p
			}
		},
		keep:   func(state fleet.State) { s.state = state },
		reread: func(context.Context, []act.Result) {},
		remember: func(_ context.Context, state fleet.State) error {
			if n := len(state.Heartbeats) + len(state.Completed) + len(state.GrownAt); n > 0 {
				s.note(fmt.Sprintf("remember %d", n))
			}
			return nil
		},
		act: func(_ context.Context, actions []action.Action) []act.Result {
			var results []act.Result
			for _, a := range actions {
				s.note(a.String())
				results = append(results, act.Result{Action: a, Outcome: s.outcome})
			}
			return results
		},
		awaits:  func(bool) {},
		paused:  func(action.Action) (act.Result, bool) { return act.Result{}, false },
		due:     func(time.Time) time.Time { return time.Time{} },
		judge:   func(fleet.Snapshot) { s.note("judge") },
		tell:    func(evaluation) {},
		changed: s.changes,
		logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		alive:   func(error) {},
	}
	return s
}

func (s *stage) note(what string) {
	s.notes = append(s.notes, fmt.Sprintf("%s %s", time.Since(s.began), what))
}

// run lets the loop run for a time and returns what was noted.
func (s *stage) run(t *testing.T, d time.Duration) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := s.loop.run(ctx); err != nil {
		t.Errorf("the loop ended: %v", err)
	}
	return s.notes
}

// The loop evaluates at once when something changed, when the plan wants it, and otherwise
// once a minute.
func TestLoopWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(plan.Plan{Wake: time.Now().Add(7 * time.Second)}, plan.Plan{})
		go func() {
			time.Sleep(10 * time.Second)
			s.changes <- struct{}{}
		}()
		want := []string{"0s look", "7s look", "10s look", "1m10s look"}
		if diff := cmp.Diff(want, s.run(t, 2*time.Minute)); diff != "" {
			t.Error(diff)
		}
	})
}

// Once an hour what is kept is judged, and never while there is something to do: then a minute later.
func TestLoopJudgesWhatIsKept(t *testing.T) {
	busy := plan.Plan{Actions: []action.Action{action.Unmark{Node: action.NodeRef{Name: "n"}}}}
	for _, c := range []struct {
		name  string
		plans []plan.Plan
		want  []string
	}{
		{"idle", []plan.Plan{{}}, []string{"1h0m0s judge", "2h0m0s judge"}},
		{"busy at first", append(slices.Repeat([]plan.Plan{busy}, 63), plan.Plan{}), []string{"1h3m0s judge", "2h3m0s judge"}},
		{"always busy", []plan.Plan{busy}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(slices.Clone(c.plans)...)
				if len(s.plans) > 1 {
					s.plans[0].Wake = time.Now().Add(30 * time.Second) // not when the judge comes
				}
				notes := s.run(t, 2*time.Hour+30*time.Minute)
				notes = slices.DeleteFunc(notes, func(note string) bool { return !strings.HasSuffix(note, "judge") })
				if diff := cmp.Diff(c.want, notes, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Where nothing has changed, the answer of the last evaluation holds until time alone changes
// it by the plan, and ten minutes at the most. Actions cause another evaluation, and so does
// a persisted state that has changed.
func TestLoopDoesNotDecideTwice(t *testing.T) {
	kept := fleet.State{Unjoined: map[string]time.Time{"i-1": time.Unix(1, 0)}}
	for _, c := range []struct {
		name  string
		plans []plan.Plan
		then  func(*stage) // after a minute and a half
		want  []string
	}{
		{"nothing changes", []plan.Plan{{}}, nil, []string{"0s look", "10m0s look"}},
		{"the plan's time comes", []plan.Plan{{Wake: time.Unix(0, 0).Add(90 * time.Second)}, {}}, nil, []string{"0s look", "1m30s look", "11m30s look"}},
		{"there is something to do", []plan.Plan{{Actions: []action.Action{action.Unmark{Node: action.NodeRef{Name: "n"}}}}, {}}, nil,
			[]string{"0s look", "0s unmark n: ", "1m0s look", "11m0s look"}},
		{"something changes", []plan.Plan{{}}, func(s *stage) { s.version++; s.changes <- struct{}{} }, []string{"0s look", "1m30s look", "11m30s look"}},
		{"nothing but a nudge", []plan.Plan{{}}, func(s *stage) { s.changes <- struct{}{} }, []string{"0s look", "10m30s look"}},
		{"nothing is seen for a moment", []plan.Plan{{}}, func(s *stage) {
			s.blind = true
			s.changes <- struct{}{}
			time.AfterFunc(100*time.Millisecond, func() { s.blind = false })
		}, []string{"0s look", "1m31s look", "11m31s look"}},
		{"the memory changes", []plan.Plan{{}}, func(s *stage) { s.state = kept; s.changes <- struct{}{} }, []string{"0s look", "1m30s look", "11m30s look"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plans := slices.Clone(c.plans)
				for i := range plans {
					if w := plans[i].Wake; !w.IsZero() {
						plans[i].Wake = time.Now().Add(w.Sub(time.Unix(0, 0)))
					}
				}
				s := newStage(plans...)
				s.still = true
				told, turned := 0, 0
				s.tell = func(evaluation) { told++ }
				s.alive = func(err error) { turned++ }
				if c.then != nil {
					time.AfterFunc(90*time.Second, func() { c.then(s) })
				}
				notes := s.run(t, 12*time.Minute)
				if diff := cmp.Diff(c.want, notes); diff != "" {
					t.Error(diff)
				}
				looks := 0
				for _, note := range notes {
					if strings.HasSuffix(note, " look") {
						looks++
					}
				}
				if told != looks || turned < 12 {
					t.Errorf("%d looks, %d told of, %d turns in 12 minutes", looks, told, turned)
				}
			})
		})
	}
}

// A plan that wants the next evaluation in the past does not make the loop spin.
func TestLoopBreathes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(plan.Plan{Wake: time.Now().Add(-time.Hour)})
		if notes := s.run(t, time.Second-1); len(notes) != int(time.Second/breath) {
			t.Errorf("%d looks in a second", len(notes))
		}
	})
}

// What is urgent is done first, and written down as far as it was done: an urgent action that
// the state does not guard waits for no write. What the state guards is done after it was
// written.
func TestLoopRemembersWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beat, grow := action.Heartbeat{Group: "web", Instance: "i-1", Hook: "h"}, action.Grow{Group: "web", To: 1}
		p := plan.Plan{Actions: []action.Action{beat, grow}, State: fleet.State{Heartbeats: map[string]time.Time{
			fleet.HeartbeatKey("i-1", "h"): time.Now(), fleet.HeartbeatKey("i-2", "h"): time.Now()}}}
		s := newStage(p)
		if diff := cmp.Diff([]string{"0s look", "0s " + beat.String(), "0s remember 2", "0s " + grow.String()}, s.run(t, time.Second)); diff != "" {
			t.Error(diff)
		}
		s = newStage(p)
		s.outcome = act.Failed
		want := []string{"0s look", "0s " + beat.String(), "0s remember 1", "0s " + grow.String(), "0s remember 1"}
		if diff := cmp.Diff(want, s.run(t, time.Second)); diff != "" {
			t.Error(diff)
		}
	})
}

// What was not done is not persisted as done: the next evaluation does it.
func TestLoopUnlearns(t *testing.T) {
	key := fleet.HeartbeatKey("i-1", "h")
	other := map[string]time.Time{"other": {}}
	complete, grow := action.Complete{Instance: "i-1", Hook: "h"}, action.Grow{Group: "web", To: 1}
	for _, c := range []struct {
		plan plan.Plan
		want []string
	}{
		{plan.Plan{Actions: []action.Action{complete}, State: fleet.State{Completed: map[string]time.Time{key: {}}, GrownAt: other}},
			[]string{"0s look", "0s " + complete.String(), "0s remember 1"}},
		{plan.Plan{Actions: []action.Action{grow}, State: fleet.State{GrownAt: map[string]time.Time{"web": {}}, Completed: other}},
			[]string{"0s look", "0s remember 2", "0s " + grow.String(), "0s remember 1"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(c.plan)
			s.outcome = act.Failed
			if diff := cmp.Diff(c.want, s.run(t, time.Second)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What was not done leaves the persisted state as it was: a group that grew an hour ago has
// not grown now, and grew all the same. An action in back-off is not even written down.
func TestLoopRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, now := time.Now().Add(-time.Hour), time.Now()
		hook := fleet.HeartbeatKey("i-1", "h")
		old := fleet.State{GrownAt: map[string]time.Time{"web": before}, Bursts: map[string]int{"web": 1}, Heartbeats: map[string]time.Time{hook: before}, Completed: map[string]time.Time{hook: before}}
		new := fleet.State{GrownAt: map[string]time.Time{"web": now}, Bursts: map[string]int{"web": 2}, Heartbeats: map[string]time.Time{hook: now}, Completed: map[string]time.Time{hook: now}}
		for _, paused := range []bool{false, true} {
			s := newStage(plan.Plan{State: new, Actions: []action.Action{
				action.Grow{Group: "web", To: 1}, action.Heartbeat{Instance: "i-1", Hook: "h"}, action.Complete{Instance: "i-1", Hook: "h"}}})
			s.outcome = act.Failed
			s.state = old
			s.paused = func(a action.Action) (act.Result, bool) { return act.Result{Action: a, Outcome: act.Paused}, paused }
			var written []fleet.State
			s.remember = func(_ context.Context, state fleet.State) error {
				written = append(written, state)
				return nil
			}
			half := new // of what is urgent it is known by then that it failed
			half.Heartbeats, half.Completed = old.Heartbeats, old.Completed
			want := []fleet.State{half, old}
			if paused {
				want = []fleet.State{old}
			}
			notes := s.run(t, time.Second)
			if diff := cmp.Diff(want, written); diff != "" {
				t.Errorf("paused %v: %s", paused, diff)
			}
			if paused && len(notes) != 1 {
				t.Errorf("paused, and done: %q", notes)
			}
		}
	})
}

// A group grows in one zone while the launch in another is not tried again yet: that it grows
// is written before the call, and stays.
func TestLoopRemembersGrowthBesideAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(plan.Plan{State: fleet.State{GrownAt: map[string]time.Time{"web": time.Now()}}, Actions: []action.Action{
			action.Grow{Group: "web", Zone: "a", Token: "t"}, action.Grow{Group: "web", Zone: "b", Token: "u"}}})
		s.outcome = act.Done
		s.paused = func(a action.Action) (act.Result, bool) {
			return act.Result{Action: a, Outcome: act.Paused}, a.(action.Grow).Zone == "a"
		}
		if notes := s.run(t, time.Second); len(notes) != 3 || notes[1] != "0s remember 1" {
			t.Errorf("%q", notes)
		}
	})
}

// A refusal of Auto Scaling is persisted: the group is passed over, the node kept. A mere
// failure is not.
func TestLoopHeedsRefusals(t *testing.T) {
	for _, c := range []struct {
		reason string
		err    error
		heeded bool
	}{
		{"beyond the group's bounds", &asg.CallError{Call: "autoscaling:X", Code: "ValidationError", Message: "no", Class: asg.ErrRefused}, true},
		{"no right, which somebody may grant", &asg.CallError{Call: "autoscaling:X", Code: "AccessDenied", Message: "no", Class: asg.ErrDenied}, false},
		{"AWS is away", &asg.CallError{Call: "autoscaling:X", Message: "no answer in time", Class: asg.ErrUnavailable}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(plan.Plan{Actions: []action.Action{
					action.Grow{Group: "web", To: 1}, action.Terminate{Group: "web", Instance: "i-1", Node: action.NodeRef{Name: "n"}}}})
				s.policy = policy.DefaultPolicy()
				s.act = func(_ context.Context, actions []action.Action) []act.Result {
					var results []act.Result
					for _, a := range actions {
						results = append(results, act.Result{Action: a, Outcome: act.Failed, Err: c.err, Ended: time.Now()})
					}
					return results
				}
				var last fleet.State
				s.remember = func(_ context.Context, state fleet.State) error {
					last = state
					return nil
				}
				s.run(t, time.Second)
				if paused := last.BackOffs["web"]; paused.Until.After(time.Now()) != c.heeded {
					t.Errorf("the group's pause is %+v", paused)
				}
				// A right that is missing lets pods go elsewhere for a moment.
				denied := last.BackOffs[fleet.BackOffKey("web", "", "NoRight")]
				if want := errors.Is(c.err, asg.ErrDenied); denied.Until.After(time.Now()) != want || want && denied.Cause != "no right to call autoscaling:X" {
					t.Errorf("the pause for want of a right is %+v", denied)
				}
				if kept := last.GiveUps["i-1"]; kept.Until.After(time.Now()) != c.heeded {
					t.Errorf("the node's pause is %+v", kept)
				}
			})
		})
	}
}

// A launch is written down before it is made, and its answer after it; where something is
// missing the next evaluation follows at once.
func TestLoopHearsAnswers(t *testing.T) {
	x := action.Grow{Group: "web", Zone: "a", Token: "t", Count: 2, To: 2}
	failed := []fleet.Failure{{Zone: "a", Cause: "InsufficientInstanceCapacity", At: time.Now()}}
	for _, c := range []struct {
		name     string
		outcome  act.Outcome
		answer   *launch.Answer
		noted    bool // the launch, in the end
		answered bool
		awaited  bool // by pods
		again    bool // evaluates again at once
	}{
		{"all came", act.Done, &launch.Answer{Seen: true, Came: 2}, true, true, false, false},
		{"all came, and pods waited for that", act.Done, &launch.Answer{Seen: true, Came: 2}, true, true, true, true},
		{"some came", act.Done, &launch.Answer{Seen: true, Came: 1, Failures: failed}, true, true, false, true},
		{"none came", act.Failed, &launch.Answer{Seen: true, Failures: failed}, true, true, false, true},
		{"not allowed", act.Failed, &launch.Answer{Seen: true, Unsteered: "no right"}, true, true, false, true},
		{"nobody knows", act.Failed, &launch.Answer{}, true, false, false, false},
		{"under way", act.Begun, &launch.Answer{}, true, false, false, false},
		{"under way, and pods wait for it", act.Begun, &launch.Answer{}, true, false, true, false},
		{"never sent", act.Stopped, &launch.Answer{Unsent: true}, false, false, false, false},
		{"not tried", act.Stopped, nil, false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := fleet.State{Launches: map[string]fleet.Launch{"web:a": {Token: "t", Count: 2}}, GrownAt: map[string]time.Time{"web": time.Now()}}
				s := newStage(plan.Plan{Actions: []action.Action{x}, State: state, AwaitsAnswer: c.awaited}, plan.Plan{})
				s.policy = policy.DefaultPolicy()
				var awaited []bool
				s.awaits = func(answer bool) { awaited = append(awaited, answer) }
				var written []fleet.State
				s.remember = func(_ context.Context, state fleet.State) error {
					if len(written) < 2 {
						written = append(written, state)
					}
					return nil
				}
				s.act = func(_ context.Context, actions []action.Action) []act.Result {
					if len(actions) == 0 {
						return nil
					}
					if want := []bool{c.awaited}; !slices.Equal(awaited, want) {
						t.Errorf("told %t that an answer is awaited, before the call, want %t", awaited, want)
					}
					if len(written) != 1 || written[0].Launches["web:a"].Token != "t" {
						t.Errorf("not written before the call: %v", written)
					}
					return []act.Result{{Action: x, Outcome: c.outcome, Answer: c.answer, Err: errors.New("it"), Ended: time.Now()}}
				}
				looks := len(s.run(t, time.Second))
				if (looks > 1) != c.again {
					t.Errorf("%d looks in a second", looks)
				}
				l, noted := written[1].Launches["web:a"]
				if noted != c.noted || l.Answered != c.answered {
					t.Errorf("in the end %+v, noted %v", l, noted)
				}
				if _, grew := written[1].GrownAt["web"]; grew != (c.noted && (!c.answered || c.answer.Came > 0)) {
					t.Errorf("grown: %v", grew)
				}
			})
		})
	}
}

// If the state cannot be written, what it guards is not done, and all else is, at every
// turn; the loop tries again, and goes by what it could not write. If somebody else writes
// it the loop ends.
func TestLoopWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beat, done := action.Heartbeat{Group: "web", Instance: "i-1", Hook: "h"}, action.Complete{Group: "web", Instance: "i-2", Hook: "h"}
		keep, grow := action.CancelDrain{Group: "web", Node: action.NodeRef{Name: "n"}}, action.Grow{Group: "web", To: 1}
		suspend := action.Suspend{Group: "web", Process: "A"}
		sent := map[string]time.Time{fleet.HeartbeatKey("i-1", "h"): time.Now()}
		p := plan.Plan{Actions: []action.Action{beat, done, keep, grow, suspend}, State: fleet.State{Heartbeats: sent, GrownAt: map[string]time.Time{"web": time.Now()}, Suspending: map[string]time.Time{"web": time.Now()}}}
		s := newStage(p, plan.Plan{Actions: []action.Action{grow, suspend}, State: p.State})
		tries := 0
		s.remember = func(context.Context, fleet.State) error {
			switch tries++; tries {
			case 1:
				return errors.New("the API server is away")
			case 2:
				if len(s.state.GrownAt)+len(s.state.Suspending) > 0 {
					t.Errorf("what was withheld is remembered as done: %+v", s.state)
				}
				return &status.UnwrittenError{Parts: []string{"grownAt"}, Err: errors.New("it is refused")}
			}
			return nil
		}
		var faults [][]string
		var failing []string
		s.tell = func(l evaluation) {
			faults = append(faults, l.snapshot.Faults)
			for _, r := range l.results {
				if r.Outcome == act.Paused {
					failing = append(failing, fmt.Sprintf("%s: %v", r.Action, r.Err))
				}
			}
		}
		want := []string{
			"0s look", "0s " + beat.String(), "0s " + done.String(), "0s " + keep.String(), // neither growth nor suspension
			"1s look", "1s " + suspend.String(), // what guards it is not among what is not written
			"2s look", "2s " + grow.String(), "2s " + suspend.String(),
		}
		if diff := cmp.Diff(want, s.run(t, 3*time.Second-1)); diff != "" {
			t.Error(diff)
		}
		if !fleet.Equal(s.state, fleet.State{Heartbeats: sent, Suspending: p.State.Suspending}) { // since the last time that it was refused
			t.Errorf("the process goes by %+v", s.state)
		}
		if len(faults) != 3 || len(faults[0]) != 1 || len(faults[1]) != 1 || len(faults[2]) != 0 || !strings.Contains(faults[0][0], "the API server is away") {
			t.Errorf("told are %q", faults)
		}
		if len(failing) != 3 || !strings.Contains(failing[2], "it is refused") {
			t.Errorf("failing are %q", failing)
		}

		s = newStage(plan.Plan{Actions: []action.Action{beat, grow}})
		s.remember = func(context.Context, fleet.State) error { return fmt.Errorf("writing: %w", status.ErrOthers) }
		if err := s.loop.run(t.Context()); !errors.Is(err, status.ErrOthers) {
			t.Errorf("the loop ended with %v", err)
		}
		if diff := cmp.Diff([]string{"0s look", "0s " + beat.String()}, s.notes); diff != "" {
			t.Error(diff)
		}
	})
}

// Before everything was seen nothing is decided; news wake the loop.
func TestLoopWaitsForItsEyes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(plan.Plan{})
		seen := false
		s.observe = func(now time.Time) (fleet.Snapshot, uint64, error) {
			if !seen {
				return fleet.Snapshot{}, 0, fmt.Errorf("%w: nodes", observe.ErrNotYet)
			}
			return fleet.Snapshot{Now: now}, 0, nil
		}
		go func() {
			time.Sleep(300 * time.Millisecond)
			seen = true
			s.changes <- struct{}{}
		}()
		if diff := cmp.Diff([]string{"300ms look"}, s.run(t, 10*time.Second)); diff != "" {
			t.Error(diff)
		}
	})
}

// What failed and may be tried again wakes the loop.
func TestLoopTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(plan.Plan{})
		again := time.Now().Add(4 * time.Second)
		s.due = func(now time.Time) time.Time {
			if now.Before(again) {
				return again
			}
			return time.Time{}
		}
		if notes := s.run(t, 30*time.Second); !slices.Equal(notes, []string{"0s look", "4s look"}) {
			t.Errorf("notes %q", notes)
		}
	})
}

// What the end of a term cut off has not failed: whoever leads next does it. What was done is told.
func TestLoopIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, cut := action.Suspend{Group: "done", Process: "A"}, action.Suspend{Group: "cut", Process: "A"}
		s := newStage(plan.Plan{Actions: []action.Action{done, cut}})
		ctx, cancel := context.WithCancel(t.Context())
		s.act = func(_ context.Context, actions []action.Action) (results []act.Result) {
			for _, a := range actions {
				r := act.Result{Action: a, Outcome: act.Done}
				if a == action.Action(cut) {
					cancel()
					r.Outcome, r.Err = act.Failed, context.Canceled
				}
				results = append(results, r)
			}
			return results
		}
		remembered := 0
		s.remember = func(context.Context, fleet.State) error { remembered++; return nil }
		var told []act.Result
		s.tell = func(l evaluation) { told = append(told, l.results...) }
		if err := s.loop.run(ctx); err != nil {
			t.Errorf("the loop ended: %v", err)
		}
		if len(told) != 1 || told[0].Action != action.Action(done) || remembered != 1 {
			t.Errorf("told %v, with %d states remembered", told, remembered)
		}
	})
}
