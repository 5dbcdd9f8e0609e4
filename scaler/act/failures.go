package act

import (
	"cmp"
	"maps"
	"time"

	"windlass.dev/windlass/scaler/plan/action"
)

// failures are what failed when it was tried last, for as long as it is asked for: by their own keys,
// and writes on Nodes by the Node, as a webhook that hangs for one write does for the others.
type failures map[string]failure

// failure is how often in a row something failed, up to mostTimes, and when it did last.
type failure struct {
	times int
	at    time.Time
	// asked is when it was asked for last, with or without time to try it.
	asked time.Time
}

// mostTimes bounds that count: what failed all day for another reason waits no longer than what hangs.
const mostTimes = 3

// patient is for how long a failure is remembered that is not asked for: for longer than a back-off.
const patient = 2 * mostFailure

func failureKey(t action.Traits) string {
	if t.OnNode {
		return "node/" + t.Node.Name
	}
	return t.Key
}

func (f *failures) note(t action.Traits, r Result) {
	maps.DeleteFunc(*f, func(_ string, old failure) bool { return r.Ended.Sub(old.asked) > patient })
	switch key := failureKey(t); r.Outcome {
	case Done: // where it stopped the Node was read, and what hangs may be the write
		delete(*f, key)
	case Failed:
		if *f == nil {
			*f = failures{}
		}
		(*f)[key] = failure{times: min((*f)[key].times+1, mostTimes), at: r.Ended, asked: r.Ended}
	}
}

// ask notes that something is asked for, and returns how it failed; the zero failure where it did not.
func (f failures) ask(t action.Traits, now time.Time) failure {
	key := failureKey(t)
	last, failed := f[key]
	if failed {
		last.asked = now
		f[key] = last
	}
	return last
}

// compare puts first what failed less often, and then what has waited for longer.
func (x failure) compare(other failure) int {
	return cmp.Or(cmp.Compare(x.times, other.times), x.at.Compare(other.at))
}

// failed is how an action that is asked for now failed.
func (b *backOffs) failed(t action.Traits, now time.Time) failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures.ask(t, now)
}
