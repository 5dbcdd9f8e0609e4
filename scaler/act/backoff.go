package act

import (
	"errors"
	"maps"
	"sync"
	"time"

	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// An evaluation may come at any moment, and as long as the world does not change it decides
// the same. So what failed is left alone for a while: a call that AWS denies is not made five
// times a second.
const (
	// afterChange is the back-off where the world was not as expected. What changed it is
	// known in a moment; where it stops for the same reason again that moment doubles, up to
	// mostStop.
	afterChange = 100 * time.Millisecond
	mostStop    = 30 * time.Second
	// afterTooEarly is the back-off until an instance may have reached its hook, or AWS
	// may be done with a launch. It doubles after patientTries, up to mostTooEarly;
	// where AWS is busy, from the first time on.
	afterTooEarly = 500 * time.Millisecond
	mostTooEarly  = 5 * time.Second
	patientTries  = 10
	// mostEarly bounds the back-off where no reading has shown the instance to wait; it doubles each
	// second time. Where it waits a reading shows that in the end.
	mostEarly = 30 * time.Second
	// afterEviction is how long a pod that the server deletes may still show as it was:
	// it is not asked for again meanwhile.
	afterEviction = 10 * time.Second
	// firstFailure is the back-off after a failure; it doubles up to mostFailure.
	firstFailure = time.Second
	mostFailure  = time.Minute
)

type backOffs struct {
	mu       sync.Mutex
	ends     map[string]backOff
	failures failures
}

type backOff struct {
	until   time.Time
	outcome Outcome // Stopped, Begun or Failed; Done for an eviction
	err     error   // the last failure, or why it stopped
	// count is how many failures there were in a row, or stops for the same
	// reason.
	count int
}

// failure is nil where the action only stopped.
func (b backOff) failure() error {
	if b.outcome == Failed {
		return b.err
	}
	return nil
}

// runs reports whether the action failed a moment ago, and why.
func (b *backOffs) runs(todo action.Action, now time.Time) (why error, runs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.ends[action.TraitsOf(todo).Key]
	return last.failure(), last.runs(now)
}

// runs reports whether it has not ended. None is longer than the longest: the clock was set back.
func (b backOff) runs(now time.Time) bool {
	return now.Before(b.until) && b.until.Sub(now) <= mostFailure
}

// note keeps how an action ended. It reports whether that is news: not the same as before,
// for the same reason.
func (b *backOffs) note(todo action.Action, r Result) (news bool) {
	now := r.Ended
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends == nil {
		b.ends = map[string]backOff{}
	}
	maps.DeleteFunc(b.ends, func(_ string, old backOff) bool { return now.Sub(old.until) > mostFailure })
	traits := action.TraitsOf(todo)
	b.failures.note(traits, r)
	key := traits.Key
	if r.Outcome == Done {
		delete(b.ends, key)
		if _, evicted := todo.(action.Evict); evicted {
			b.ends[key] = backOff{until: now.Add(afterEviction), outcome: Done}
		}
		return true
	}
	next, was := backOff{outcome: r.Outcome, err: r.Err}, b.ends[key]
	again := was.outcome == r.Outcome && was.err.Error() == r.Err.Error()
	if again || r.Outcome == Failed && was.outcome == Failed {
		next.count = was.count
	}
	next.until = now.Add(next.length())
	if x, completes := todo.(action.Complete); completes && x.Early && errors.Is(r.Err, asg.ErrTooEarly) {
		next.until = now.Add(doubled(afterTooEarly, next.count/2, mostEarly))
	}
	next.count++
	b.ends[key] = next
	return !again
}

// length is how long to wait after one more such end.
func (b backOff) length() time.Duration {
	switch {
	case b.outcome == Failed:
		return doubled(firstFailure, b.count, mostFailure)
	case b.outcome == Begun:
		return 0 // reading the answer makes no call
	case errors.Is(b.err, asg.ErrBusy):
		return doubled(afterTooEarly, b.count, mostTooEarly)
	case errors.Is(b.err, asg.ErrTooEarly), errors.Is(b.err, asg.ErrStillBusy):
		return doubled(afterTooEarly, max(0, b.count-patientTries), mostTooEarly)
	}
	return doubled(afterChange, b.count, mostStop)
}

func doubled(first time.Duration, times int, most time.Duration) time.Duration {
	return min(first<<min(times, 10), most)
}

// Due is when the first running back-off ends, or now if something was put off since Due was
// asked last, because the others took too long; zero without either.
func (a *Actor) Due(now time.Time) time.Time {
	if a.putOff.Swap(false) {
		return now
	}
	a.backOffs.mu.Lock()
	defer a.backOffs.mu.Unlock()
	var due time.Time
	for _, b := range a.backOffs.ends {
		if b.runs(now) && (due.IsZero() || b.until.Before(due)) {
			due = b.until
		}
	}
	return due
}
