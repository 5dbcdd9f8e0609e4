package plan

import (
	"iter"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/drains"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Result is what became of an action, as far as the state goes by it.
type Result struct {
	Action action.Action
	// Done: it was carried out, or is about to be.
	Done bool
	// Unheard: it may have had its effect though it failed.
	Unheard bool
	// Answer is what AWS said to a Grow with a token; nil if it was not asked.
	Answer *launch.Answer
	// Refusal is the no of AWS with which it failed; empty for none.
	Refusal Refusal
	// Ended is when the action did.
	Ended time.Time
}

// Refusal is how AWS said no.
type Refusal struct {
	// Code and Message are AWS's.
	Code, Message string
	// ForGood: AWS will not do it if it is asked again.
	ForGood bool
	// Lack says in words which right is missing; empty for none.
	Lack string
}

// Settle is the state to persist. A plan writes down in advance what its actions do; what was not
// done is as it was before, so that the next evaluation does it. Three parts stay as planned: give-ups,
// by which the next evaluation cancels the drain; promises, which hold for the next attempt; and a
// replacement whose node was not launched, which is not begun again, and ends with a back-off when
// nothing shows. What AWS answered to launches is added, and what it refused: a group that may not
// grow, or that we have no right to grow, is passed over for a while, and a node whose instance may
// not be ended stays.
//
// before is what was decided on by p, planned the plan's state, and results are those of its
// actions. Actions without a result count as planned. Nothing of before and planned is changed.
func Settle(before fleet.Snapshot, p policy.Policy, planned fleet.State, results []Result) fleet.State {
	state := planned
	state.Heartbeats, state.Completed, state.Suspending = outcome.Copied(state.Heartbeats), outcome.Copied(state.Completed), outcome.Copied(state.Suspending)
	state.GrownAt, state.Bursts, state.Launches = outcome.Copied(state.GrownAt), outcome.Copied(state.Bursts), outcome.Copied(state.Launches)
	state.ShrunkAt = outcome.Copied(state.ShrunkAt)
	state.BackOffs, state.GiveUps, state.FailedAt = outcome.Copied(state.BackOffs), outcome.Copied(state.GiveUps), outcome.Copied(state.FailedAt)
	state.Recognition.Asked, state.Recognition.Ended = outcome.Copied(state.Recognition.Asked), outcome.Copied(state.Recognition.Ended)
	restoreUndone(&state, before.State, results)
	for x, r := range resultsOf[action.Grow](results) {
		if r.Answer != nil {
			state = launch.Hear(p, state, before.Groups, x, *r.Answer, r.Ended)
			continue
		}
		if r.Refusal.Lack != "" {
			state = launch.Denied(state, x.Group, r.Refusal.Lack, r.Ended)
		}
		if r.Refusal.ForGood {
			failure := fleet.Failure{At: r.Ended, Cause: r.Refusal.Code, Text: r.Refusal.Message}
			state.BackOffs[x.Group] = launch.Learn(p, state.BackOffs[x.Group], failure)
		}
	}
	for x, r := range resultsOf[action.Terminate](results) {
		if r.Refusal.ForGood && x.Node.Name != "" {
			state.GiveUps[x.Instance] = drains.GiveUp(p, state.GiveUps[x.Instance], r.Ended, r.Refusal.Message)
			if p.DelayAfterFailure > 0 {
				state.FailedAt[x.Group] = r.Ended
			}
		}
	}
	return outcome.Compact(state)
}

// restoreUndone puts back, for what was not done, what was persisted before.
func restoreUndone(state *fleet.State, before fleet.State, results []Result) {
	undone := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Done })
	for x := range resultsOf[action.Heartbeat](undone) {
		restore(state.Heartbeats, before.Heartbeats, fleet.HeartbeatKey(x.Instance, x.Hook))
	}
	for x := range resultsOf[action.Complete](undone) {
		restore(state.Completed, before.Completed, fleet.HeartbeatKey(x.Instance, x.Hook))
	}
	for x := range resultsOf[action.Suspend](undone) {
		restore(state.Suspending, before.Suspending, x.Group)
	}
	asked := map[string]int{} // how many more are awaited than was planned, by group
	for x, r := range resultsOf[action.Terminate](undone) {
		if r.Unheard {
			continue
		}
		restore(state.Recognition.Ended, before.Recognition.Ended, x.Instance)
		if !shrank(results, x.Group) {
			restore(state.ShrunkAt, before.ShrunkAt, x.Group)
		}
		if x.Asks {
			asked[x.Group]-- // nothing comes in its place
		}
	}
	for x := range resultsOf[action.Lower](undone) {
		asked[x.Group] += x.Drops
	}
	for x, r := range resultsOf[action.Grow](undone) {
		if !grew(results, x.Group) {
			restore(state.GrownAt, before.GrownAt, x.Group)
			restore(state.Bursts, before.Bursts, x.Group)
			asked[x.Group] -= x.Asks
		}
		if r.Answer == nil || r.Answer.Unsent {
			restore(state.Launches, before.Launches, fleet.LaunchKey(x.Group, x.Zone, x.Part))
		}
	}
	for group, n := range asked {
		now := state.Recognition.Asked[group]
		if now.Count += n; now.Count <= 0 {
			delete(state.Recognition.Asked, group)
			continue
		}
		if now.At.IsZero() {
			now.At = before.Recognition.Asked[group].At
		}
		state.Recognition.Asked[group] = now
	}
}

// shrank reports whether a group has become smaller, or may have.
func shrank(results []Result, group string) bool {
	for x, r := range resultsOf[action.Terminate](results) {
		if x.Group == group && x.Decrement && (r.Done || r.Unheard) {
			return true
		}
	}
	return false
}

// grew reports whether a group has grown, or may have: a launch without an answer may
// have been carried out, and is repeated.
func grew(results []Result, group string) bool {
	for x, r := range resultsOf[action.Grow](results) {
		if maybe := r.Answer != nil && !r.Answer.Unsent && !r.Answer.Seen; x.Group == group && (r.Done || maybe || r.Answer == nil && r.Unheard) {
			return true
		}
	}
	return false
}

// resultsOf gives what became of the actions of one kind.
func resultsOf[A action.Action](results []Result) iter.Seq2[A, Result] {
	return func(yield func(A, Result) bool) {
		for _, r := range results {
			if x, is := r.Action.(A); is && !yield(x, r) {
				return
			}
		}
	}
}

// restore has now say of a key what was said before.
func restore[V any](now, before map[string]V, key string) {
	delete(now, key)
	if was, known := before[key]; known {
		now[key] = was
	}
}
