package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/status"
)

const (
	// idle is how long the loop sleeps at most: nothing depends on it, but
	// whatever was overlooked is found then.
	idle = time.Minute
	// breath is the least time between two evaluations that no event triggered.
	breath = 50 * time.Millisecond
	// tryAgain is how long to wait after an evaluation that failed.
	tryAgain = time.Second
	// distrust is how long the answer of the last evaluation is taken to be that of the next
	// one where nothing has changed: a plan states when time alone changes it, and a plan
	// that omits that is found out then.
	distrust = 10 * time.Minute
	// judgeEvery is how often what the planner keeps is judged, and notIdle how long that is put off
	// where there is something to do.
	judgeEvery, notIdle = time.Hour, time.Minute
)

// loop is observe → decide → act. One goroutine runs it, so nothing in it needs a lock, and
// an evaluation knows of everything that earlier evaluations did.
type loop struct {
	// now is the time; nil for the node's own clock.
	now func() time.Time
	// observe takes a snapshot; it fails with observe.ErrNotYet before there
	// is one. The version is another one if anything but Now and State may be.
	observe func(now time.Time) (snapshot fleet.Snapshot, version uint64, err error)
	// decide returns first what does not wait for the rest to be worked out.
	decide func(fleet.Snapshot) (urgent plan.Urgent, rest func() plan.Plan)
	// policy is the one that decide goes by.
	policy policy.Policy
	// remember writes the state, before the actions that it guards. If it fails, keep has
	// this process alone go by a state, until one is written.
	remember func(context.Context, fleet.State) error
	keep     func(fleet.State)
	// paused reports whether an action failed or stopped a moment ago and is not tried now;
	// the result has why.
	paused func(action.Action) (act.Result, bool)
	// act carries actions out and returns when the next observation knows of
	// them. Due is when something that failed may be tried again.
	act func(context.Context, []action.Action) []act.Result
	due func(now time.Time) time.Time
	// awaits is told, before anything is carried out, whether pods wait for the answer of a launch.
	awaits func(answer bool)
	// pulse sends heartbeats for which a turn lasts too long; nil where nothing is carried out.
	pulse *pulse
	// reread reads again what these actions may have changed.
	reread func(context.Context, []act.Result)
	// tell publishes what was seen, decided and done.
	tell func(evaluation)
	// changed wakes the loop. Asked wants a snapshot, and nothing else: it is taken here, where
	// an evaluation takes its own.
	changed <-chan struct{}
	asked   <-chan chan<- seen
	logger  *slog.Logger
	// judge decides once more, with and without what is kept, and sees whether both are the same. That
	// takes as long as an evaluation that knows nothing, so it comes where nothing is to be done.
	judge func(fleet.Snapshot)
	// alive is called after each turn, with what went wrong.
	alive func(error)
	// last is the evaluation whose answer still holds if nothing has changed; nil where there
	// is none.
	last *answered
}

// answered is what the answer of an evaluation depended on, and for how long it holds.
type answered struct {
	at      time.Time
	version uint64
	state   fleet.State
	wake    time.Time // zero where time alone changes nothing
	seen    fleet.Snapshot
}

// holds reports whether another evaluation would see and decide the same.
func (a *answered) holds(now time.Time, version uint64, state fleet.State) bool {
	return a != nil && a.version == version && !now.Before(a.at) && now.Sub(a.at) < distrust &&
		(a.wake.IsZero() || now.Before(a.wake)) && fleet.Equal(a.state, state)
}

// evaluation is one turn of the loop.
type evaluation struct {
	snapshot fleet.Snapshot
	plan     plan.Plan
	results  []act.Result
	took     time.Duration // to observe and decide
}

// run evaluates again and again, until ctx ends or another process turns out to use the same
// persisted state.
func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	judgement := time.NewTimer(judgeEvery)
	defer judgement.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case answer := <-l.asked:
			snapshot, _, err := l.observe(l.time())
			answer <- seen{snapshot: snapshot, err: err}
			continue
		case <-judgement.C:
			judgement.Reset(l.judged())
			continue
		case <-l.changed:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return nil
		}
		wake, err := l.turn(ctx)
		if ctx.Err() != nil {
			return nil
		}
		l.alive(err)
		if text := textOf(err); text != said {
			said = text
			l.say(err)
		}
		if err != nil && !errors.Is(err, observe.ErrNotYet) && isFatal(err) {
			return err
		}
		timer.Reset(l.sleep(l.time(), wake, err))
	}
}

func (l *loop) time() time.Time {
	if l.now == nil {
		return time.Now()
	}
	return l.now()
}

// turn makes one evaluation. It returns when the plan wants the next one. Where nothing has
// changed since an evaluation that found nothing to do, there is nothing to decide, do or
// report.
//
// What is urgent is done before the rest is worked out, and before anything is written:
// the state guards none of it, see action.Traits. If the state cannot be written, what it
// guards is not done, and all else is.
func (l *loop) turn(ctx context.Context) (wake time.Time, err error) {
	now, began := l.time(), time.Now()
	snapshot, version, err := l.observe(now)
	if err != nil {
		l.last = nil // the next evaluation tells that it is over
		return time.Time{}, err
	}
	beaten := l.pulse.taken()
	snapshot.State = withBeats(snapshot.State, beaten)
	if len(beaten) == 0 && l.last.holds(now, version, snapshot.State) {
		return l.last.wake, nil
	}
	l.last = nil
	urgent, rest := l.decide(snapshot)
	l.pulse.expect(urgent.Foreseen)
	this := evaluation{snapshot: snapshot, took: time.Since(began)}
	var first []act.Result // what became of the urgent actions
	if len(urgent.Actions) > 0 {
		ready, paused := l.part(urgent.Actions)
		first = slices.Concat(l.act(ctx, ready), paused)
		l.pulse.missed(first)
		if ctx.Err() != nil {
			return time.Time{}, ctx.Err()
		}
	}
	resumed := time.Now()
	this.plan = rest()
	this.took += time.Since(resumed)
	ready, undone := l.part(this.plan.Actions)
	l.awaits(this.plan.AwaitsAnswer)
	settle := func(done []act.Result) fleet.State {
		var results []plan.Result
		for _, r := range slices.Concat(first, undone, done) {
			results = append(results, r.Settled())
		}
		return plan.Settle(snapshot, l.policy, this.plan.State, results)
	}
	state := settle(presumed(ready))
	this.plan.Actions = slices.Concat(urgent.Actions, this.plan.Actions)
	this.results = slices.Concat(first, beaten)
	unwritten := l.remember(ctx, state)
	if isFatal(unwritten) || ctx.Err() != nil {
		l.tell(this)
		return time.Time{}, unwritten
	}
	if unwritten != nil {
		var withheld []act.Result
		ready, withheld = withhold(ready, unwritten)
		undone = append(undone, withheld...)
		state = settle(presumed(ready))
		l.keep(state)
		this.snapshot.Faults = append(slices.Clip(snapshot.Faults), faultOf(unwritten))
	}
	done := l.act(ctx, ready)
	if ctx.Err() != nil { // what was cut off has not failed, and whoever leads next decides it anew
		this.results = slices.DeleteFunc(slices.Concat(first, done, beaten), func(r act.Result) bool { return r.Outcome != act.Done })
		l.tell(this)
		return time.Time{}, ctx.Err()
	}
	if slices.ContainsFunc(done, func(r act.Result) bool { return r.Outcome != act.Done || r.Answer != nil }) {
		state = settle(done)
		if unwritten == nil {
			unwritten = l.remember(ctx, state)
		}
		if unwritten != nil {
			l.keep(state)
		}
	}
	this.results = slices.Concat(first, done, undone, beaten)
	l.reread(ctx, this.results)
	l.tell(this)
	if unwritten != nil {
		return time.Time{}, unwritten
	}
	if len(this.plan.Actions) == 0 {
		l.last = &answered{at: now, version: version, state: snapshot.State, wake: this.plan.Wake, seen: snapshot}
	}
	if slices.ContainsFunc(done, fallsShort) {
		return now, nil // there may be another zone, or another group
	}
	if this.plan.AwaitsAnswer && slices.ContainsFunc(done, hasAnswer) {
		return now, nil // the group grows on
	}
	return this.plan.Wake, nil
}

// judged judges where the last evaluation has found nothing to do, and says when to try again.
func (l *loop) judged() time.Duration {
	if l.last == nil {
		return notIdle
	}
	l.judge(l.last.seen)
	return judgeEvery
}

// withhold splits the actions: ready are done although the state could not be written, and
// the others, whose guards are among what is not written, are put off.
func withhold(actions []action.Action, why error) (ready []action.Action, withheld []act.Result) {
	var unwritten *status.UnwrittenError
	partly := errors.As(why, &unwritten)
	for _, todo := range actions {
		missing := func(part string) bool { return !partly || slices.Contains(unwritten.Parts, part) }
		if slices.ContainsFunc(action.TraitsOf(todo).Guards, missing) {
			withheld = append(withheld, act.Result{Action: todo, Outcome: act.Paused, Err: fmt.Errorf("not done without a persisted state: %w", why)})
			continue
		}
		ready = append(ready, todo)
	}
	return ready, withheld
}

// faultOf names what a state that cannot be written keeps from being done.
func faultOf(unwritten error) string {
	return fmt.Sprintf("the state is not persisted, so no group grows, and no instance that never became a node is terminated; all else goes on: %v", unwritten)
}

// presumed is how actions turn out that are about to be carried out, as far as is known: the
// state that guards them is written first.
func presumed(actions []action.Action) []act.Result {
	var results []act.Result
	for _, todo := range actions {
		results = append(results, act.Result{Action: todo, Outcome: act.Done})
	}
	return results
}

// fallsShort reports whether AWS launched less than it was asked for.
func fallsShort(r act.Result) bool { return r.Answer != nil && r.Answer.FallsShort() }

// hasAnswer reports whether AWS has answered a launch.
func hasAnswer(r act.Result) bool { return r.Answer != nil && r.Answer.Seen }

// part splits the actions into those that are tried now and those in back-off.
func (l *loop) part(actions []action.Action) (ready []action.Action, paused []act.Result) {
	for _, action := range actions {
		if result, waits := l.paused(action); waits {
			paused = append(paused, result)
			continue
		}
		ready = append(ready, action)
	}
	return ready, paused
}

func (l *loop) sleep(now, wake time.Time, err error) time.Duration {
	if err != nil {
		return tryAgain
	}
	sleep := idle
	for _, at := range []time.Time{wake, l.due(now)} {
		if !at.IsZero() {
			sleep = min(sleep, at.Sub(now))
		}
	}
	return max(sleep, breath)
}

func (l *loop) say(err error) {
	switch {
	case err == nil:
		l.logger.Info("evaluation works")
	case errors.Is(err, observe.ErrNotYet):
		l.logger.Info("evaluation waits", "for", err)
	case isUnwritten(err):
		l.logger.Error("persisted state not written", "err", err)
	default:
		l.logger.Error("evaluation failed", "err", err)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
