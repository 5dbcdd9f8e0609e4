package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
)

func settle(before, planned fleet.State, results ...plan.Result) fleet.State {
	return plan.Settle(fleet.Snapshot{State: before}, policy.DefaultPolicy(), planned, results)
}

// An end that had no effect is not counted, and nothing is awaited in its place; one of
// which AWS has not said what became of it may have had one.
func TestSettleEndsWithoutEffect(t *testing.T) {
	planned := fleet.State{Recognition: fleet.Recognition{
		Asked: map[string]fleet.Asked{"web": {Count: 1}}, Ended: map[string]fleet.Ended{"i-1": {Group: "web"}},
	}}
	end := action.Terminate{Group: "web", Instance: "i-1", Asks: true}
	for _, c := range []struct {
		reason string
		result plan.Result
		counts bool
	}{
		{"done", plan.Result{Done: true}, true},
		{"not done", plan.Result{}, false},
		{"refused", plan.Result{Refusal: plan.Refusal{Code: "Throttling"}}, false},
		{"nobody knows", plan.Result{Unheard: true}, true},
	} {
		c.result.Action = end
		got := settle(fleet.State{}, planned, c.result).Recognition
		if _, ended := got.Ended["i-1"]; ended != c.counts {
			t.Errorf("%s: the end counts: %t", c.reason, ended)
		}
		if _, asked := got.Asked["web"]; asked != c.counts {
			t.Errorf("%s: another is awaited: %t", c.reason, asked)
		}
	}
}

// What is not done undoes what it asked for itself, and nothing that others did.
func TestSettleTakesBackWhatWasAskedFor(t *testing.T) {
	asked := func(n int) fleet.State {
		return fleet.State{Recognition: fleet.Recognition{Asked: map[string]fleet.Asked{"web": {At: time.Unix(1, 0), Count: n}}}}
	}
	drained := action.Terminate{Group: "web", Instance: "i-old", Node: action.NodeRef{Name: "old"}, Decrement: true}
	for _, c := range []struct {
		reason          string
		before, planned fleet.State
		results         []plan.Result
		want            int
	}{
		{"a group grows beside an end that is put off", asked(0), asked(5), []plan.Result{{Action: drained}}, 5},
		{"what was asked for has come, and an end stops", asked(1), asked(0), []plan.Result{{Action: drained}}, 0},
		{"one end is replaced, another stops", asked(0), asked(1), []plan.Result{{Action: action.Terminate{Group: "web", Instance: "i-1", Asks: true}, Done: true}, {Action: drained}}, 1},
		{"growth stops beside an end that is replaced", asked(1), asked(4), []plan.Result{{Action: action.Grow{Group: "web", Asks: 3}}, {Action: action.Grow{Group: "web"}}}, 1},
		{"one zone grows, and another does not", asked(0), asked(5), []plan.Result{{Action: action.Grow{Group: "web", Zone: "a", Asks: 5}}, {Action: action.Grow{Group: "web", Zone: "b"}, Done: true}}, 5},
		{"a launch without an answer may bring them", asked(0), asked(5), []plan.Result{{Action: action.Grow{Group: "web", Zone: "a", Asks: 5}, Answer: &launch.Answer{}}}, 5},
		{"a launch was never sent", asked(0), asked(5), []plan.Result{{Action: action.Grow{Group: "web", Zone: "a", Asks: 5}, Answer: &launch.Answer{Unsent: true}}}, 0},
		{"another group grows", asked(0), asked(5), []plan.Result{{Action: action.Grow{Group: "web", Asks: 5}}, {Action: action.Grow{Group: "db"}, Done: true}}, 0},
		{"what does not come is still wanted", asked(3), fleet.State{}, []plan.Result{{Action: action.Lower{Group: "web", Drops: 2}}}, 2},
		{"both at once", asked(3), asked(2), []plan.Result{{Action: action.Grow{Group: "web", Asks: 3}}, {Action: action.Lower{Group: "web", Drops: 2}}}, 1},
	} {
		got := settle(c.before, c.planned, c.results...).Recognition.Asked["web"]
		if got.Count != c.want || c.want > 0 && got.At.IsZero() {
			t.Errorf("%s: %+v is awaited, not %d", c.reason, got, c.want)
		}
	}
}

// A termination that had no effect has made no group smaller: no other scale-down waits for the
// delay after it.
func TestFailedTerminationDelaysNothing(t *testing.T) {
	const drained = "group web desired=3\nnode web-1..3 group=web unneeded=09:45:00\nrequest web-1\nreport web-1 phase=Drained"
	const held = "group web desired=3\nnode web-1..3 group=web unneeded=09:45:00\nnode web-1 hold"
	p := policy.DefaultPolicy()
	p.DelayAfterDelete = 2 * time.Minute
	for _, c := range []struct {
		reason string
		result plan.Result
		waits  bool
	}{
		{"done", plan.Result{Done: true}, true},
		{"nobody knows", plan.Result{Unheard: true}, true},
		{"not done", plan.Result{}, false},
		{"refused", plan.Result{Refusal: plan.Refusal{Code: "Throttling"}}, false},
	} {
		before, err := scenario.Parse(drained)
		if err != nil {
			t.Fatal(err)
		}
		first := plan.Decide(before, p)
		var results []plan.Result
		for x := range action.Only[action.Terminate](first.Actions) {
			c.result.Action = x
			results = append(results, c.result)
		}
		if len(results) != 1 {
			t.Fatalf("%v has not one termination", first.Actions)
		}
		after, err := scenario.Parse(held)
		if err != nil {
			t.Fatal(err)
		}
		after.State = plan.Settle(before, p, first.State, results)
		begun := 0
		for range action.Only[action.RequestDrain](plan.Decide(after, p).Actions) {
			begun++
		}
		if waits := begun == 0; waits != c.waits {
			t.Errorf("%s: %d scale-downs are begun", c.reason, begun)
		}
	}
}

// What AWS refuses is persisted: the group is passed over, the node stays. What merely failed is
// not, and an instance without a node has none that could stay.
func TestSettleHeedsRefusals(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	grow, end := action.Grow{Group: "web", To: 1}, action.Terminate{Group: "web", Instance: "i-1", Node: action.NodeRef{Name: "n"}}
	nodeless := action.Terminate{Group: "web", Instance: "i-1"}
	for _, c := range []struct {
		reason               string
		todo                 action.Action
		refusal              plan.Refusal
		refused, denied, end bool
	}{
		{"beyond the bounds", grow, plan.Refusal{Code: "ValidationError", Message: "no", ForGood: true}, true, false, false},
		{"no right", grow, plan.Refusal{Code: "AccessDenied", Lack: "no right to call it"}, false, true, false},
		{"AWS is away", grow, plan.Refusal{Message: "no answer"}, false, false, false},
		{"it may not be ended", end, plan.Refusal{Code: "ValidationError", Message: "no", ForGood: true}, false, false, true},
		{"no right to end it", end, plan.Refusal{Code: "AccessDenied", Lack: "no right to call it"}, false, false, false},
		{"one without a node", nodeless, plan.Refusal{Code: "ValidationError", ForGood: true}, false, false, false},
	} {
		got := settle(fleet.State{}, fleet.State{}, plan.Result{Action: c.todo, Refusal: c.refusal, Ended: at})
		_, failed := got.FailedAt["web"]
		if group, kept := got.BackOffs["web"], got.GiveUps["i-1"]; group.Until.After(at) != c.refused || kept.Until.After(at) != c.end || failed != c.end {
			t.Errorf("%s: the group's pause is %+v, the node's %+v", c.reason, group, kept)
		}
		if denied := got.BackOffs[fleet.BackOffKey("web", "", "NoRight")]; denied.Until.After(at) != c.denied {
			t.Errorf("%s: the pause for want of a right is %+v", c.reason, denied)
		}
	}
}

// That an instance may not be ended is persisted of its group where something waits for that, and
// nowhere else.
func TestSettleRemembersFailuresThatCount(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	refused := plan.Result{Action: action.Terminate{Group: "web", Instance: "i-1", Node: action.NodeRef{Name: "n"}}, Refusal: plan.Refusal{Code: "ValidationError", ForGood: true}, Ended: at}
	for _, delay := range []time.Duration{0, time.Minute} {
		p := policy.DefaultPolicy()
		p.DelayAfterFailure = delay
		got := plan.Settle(fleet.Snapshot{}, p, fleet.State{}, []plan.Result{refused})
		if _, kept := got.FailedAt["web"]; kept != (delay > 0) {
			t.Errorf("with a delay of %s the state has failedAt %v", delay, got.FailedAt)
		}
	}
}

// Of what was done the state says what the plan wrote, of what was not what was so before, and
// of all else what the plan wrote; in whatever order results come. What was read and planned
// stays as it is.
func TestSettleIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hook := fleet.HeartbeatKey("i-1", "h")
		state := func(name string, at int64) fleet.State {
			times := func(what, key string) map[string]time.Time {
				m := map[string]time.Time{"other": time.Unix(at, 0)}
				if rapid.Bool().Draw(t, name+" "+what) {
					m[key] = time.Unix(at, 0)
				}
				return m
			}
			return fleet.State{
				Heartbeats: times("beat", hook), Completed: times("completed", hook), Suspending: times("suspended", "web"),
				ShrunkAt: times("shrunk", "web"), GrownAt: times("grown", "web"), Bursts: map[string]int{"web": int(at), "db": int(at)},
				Launches:    map[string]fleet.Launch{"web:a": {Token: name}, "web:b": {Token: name}, "db:": {Token: name}},
				Recognition: fleet.Recognition{Ended: map[string]fleet.Ended{"i-2": {Group: name}, "i-3": {Group: name}}},
			}
		}
		before, planned := state("before", 1), state("planned", 2)
		text := func() string { return fmt.Sprint(before, planned) }
		read := text()

		var results []plan.Result
		done := func(todo action.Action) bool {
			r := plan.Result{Action: todo, Done: rapid.Bool().Draw(t, todo.String())}
			results = append(results, r)
			return r.Done
		}
		type part struct {
			name string
			done bool
			of   func(fleet.State) []any
		}
		parts := []part{
			{"heartbeat", done(action.Heartbeat{Instance: "i-1", Hook: "h"}), func(s fleet.State) []any { return entry(s.Heartbeats, hook) }},
			{"completed", done(action.Complete{Instance: "i-1", Hook: "h"}), func(s fleet.State) []any { return entry(s.Completed, hook) }},
			{"suspending", done(action.Suspend{Group: "web"}), func(s fleet.State) []any { return entry(s.Suspending, "web") }},
			{"ended", done(action.Terminate{Group: "web", Instance: "i-2"}), func(s fleet.State) []any { return entry(s.Recognition.Ended, "i-2") }},
			{"shrunk", done(action.Terminate{Group: "web", Instance: "i-4", Decrement: true}), func(s fleet.State) []any { return entry(s.ShrunkAt, "web") }},
			{"launch in a", done(action.Grow{Group: "web", Zone: "a"}), func(s fleet.State) []any { return entry(s.Launches, "web:a") }},
			{"launch in b", done(action.Grow{Group: "web", Zone: "b"}), func(s fleet.State) []any { return entry(s.Launches, "web:b") }},
			{"all else", true, func(s fleet.State) []any {
				return []any{s.Heartbeats["other"], s.Completed["other"], s.Suspending["other"], s.ShrunkAt["other"], s.GrownAt["other"], s.Bursts["db"], s.Launches["db:"], s.Recognition.Ended["i-3"]}
			}},
		}
		grew := parts[5].done || parts[6].done
		parts = append(parts, part{"growth", grew, func(s fleet.State) []any { return append(entry(s.GrownAt, "web"), s.Bursts["web"]) }})

		got := settle(before, planned, rapid.Permutation(results).Draw(t, "order")...)
		for _, part := range parts {
			want := part.of(before)
			if part.done {
				want = part.of(planned)
			}
			if diff := cmp.Diff(want, part.of(got)); diff != "" {
				t.Errorf("%s, done %t: %s", part.name, part.done, diff)
			}
		}
		if now := text(); now != read {
			t.Errorf("what was read is changed: %s", cmp.Diff(read, now))
		}
	})
}

// entry is what a map says of a key.
func entry[V any](m map[string]V, key string) []any {
	value, known := m[key]
	return []any{value, known}
}
