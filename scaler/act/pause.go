package act

import (
	"errors"
	"maps"
	"sync"
	"time"

	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
)

// A look may come at any moment, and as long as the world does not change it
// decides the same. So what failed is left alone for a while: the call that AWS
// denies is not made five times a second.
const (
	// afterChange is the pause where the world was not as expected. What
	// changed it is known in a moment.
	afterChange = 100 * time.Millisecond
	// afterTooEarly is the pause until an instance may have reached its hook.
	afterTooEarly = 500 * time.Millisecond
	// firstFailure is the pause after a failure; it doubles up to mostFailure.
	firstFailure = time.Second
	mostFailure  = time.Minute
)

type pauses struct {
	mu   sync.Mutex
	ends map[string]pause
}

type pause struct {
	until time.Time
	count int   // of failures in a row
	err   error // the last failure; nil where the action only stopped
}

// keyOf names what an action is about, without the figures that change from
// look to look.
func keyOf(action plan.Action) string {
	switch x := action.(type) {
	case plan.Grow:
		return "grow/" + x.Group + "/" + x.Zone
	case plan.Retire:
		return "retire/" + x.Node.Name
	case plan.Keep:
		return "keep/" + x.Node.Name
	case plan.Permit:
		return "permit/" + x.Node.Name
	case plan.Mark:
		return "mark/" + x.Node.Name
	case plan.Unmark:
		return "unmark/" + x.Node.Name
	case plan.Evict:
		return "evict/" + x.Pod.String()
	case plan.Terminate:
		return "terminate/" + x.Instance
	case plan.Heartbeat:
		return "heartbeat/" + x.Instance + "/" + x.Hook
	case plan.Complete:
		return "complete/" + x.Instance + "/" + x.Hook
	case plan.Suspend:
		return "suspend/" + x.Group + "/" + x.Process
	}
	return KindOf(action) + "/" + action.String()
}

// runs says whether the action failed a moment ago, and why.
func (p *pauses) runs(action plan.Action, now time.Time) (why error, runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := p.ends[keyOf(action)]
	return pause.err, now.Before(pause.until)
}

// note remembers how an action ended. It says whether that is news: not the
// same failure as before.
func (p *pauses) note(action plan.Action, r Result) (news bool) {
	now := r.Ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends == nil {
		p.ends = map[string]pause{}
	}
	maps.DeleteFunc(p.ends, func(_ string, old pause) bool { return now.Sub(old.until) > mostFailure })
	key := keyOf(action)
	was := p.ends[key]
	switch {
	case r.Outcome == Done:
		delete(p.ends, key)
	case errors.Is(r.Err, asg.ErrTooEarly):
		p.ends[key] = pause{until: now.Add(afterTooEarly)}
	case r.Outcome == Stopped:
		p.ends[key] = pause{until: now.Add(afterChange)}
	default:
		wait := firstFailure << min(was.count, 10)
		p.ends[key] = pause{until: now.Add(min(wait, mostFailure)), count: was.count + 1, err: r.Err}
		return was.err == nil || was.err.Error() != r.Err.Error()
	}
	return true
}

// Due is when the first running pause ends; zero without one.
func (a *Actor) Due(now time.Time) time.Time {
	a.pauses.mu.Lock()
	defer a.pauses.mu.Unlock()
	var due time.Time
	for _, p := range a.pauses.ends {
		if p.until.After(now) && (due.IsZero() || p.until.Before(due)) {
			due = p.until
		}
	}
	return due
}
