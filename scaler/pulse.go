package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/outcome"
)

const (
	// overdue is how late a heartbeat is that a loop which is not busy would have sent.
	overdue = 2 * time.Second
	// beatsAtOnce bounds how many are sent at the same time.
	beatsAtOnce = 8
)

// pulse sends the heartbeats that are overdue, beside a loop that is busy: on a machine without
// time to spare a tenant's pods may keep it so for longer than a hook waits, and so may an API
// server that is slow. It goes by what the last evaluation foresaw, and ends where that does. A
// hook that holds nothing yet when an evaluation begins has to wait for the next one.
type pulse struct {
	now  func() time.Time
	beat func(context.Context, action.Heartbeat) act.Result
	news chan struct{} // something else is foreseen

	mu       sync.Mutex
	foreseen map[string]outcome.Foreseen // by fleet.HeartbeatKey
	results  []act.Result                // since the loop has taken them
}

func newPulse(now func() time.Time, beat func(context.Context, action.Heartbeat) act.Result) *pulse {
	return &pulse{now: now, beat: beat, news: make(chan struct{}, 1)}
}

// expect replaces what is foreseen.
func (p *pulse) expect(foreseen []outcome.Foreseen) {
	if p == nil {
		return
	}
	byKey := make(map[string]outcome.Foreseen, len(foreseen))
	for _, f := range foreseen {
		byKey[fleet.HeartbeatKey(f.Instance, f.Hook)] = f
	}
	p.mu.Lock()
	p.foreseen = byKey
	p.mu.Unlock()
	p.wake()
}

// wake has run look again.
func (p *pulse) wake() {
	select {
	case p.news <- struct{}{}:
	default: // it will
	}
}

// taken are the results that nobody has taken yet.
func (p *pulse) taken() []act.Result {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	results := p.results
	p.results = nil
	return results
}

// run sends what is overdue until ctx ends.
func (p *pulse) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := p.send(ctx)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-p.news:
		case <-timer.C:
		}
	}
}

// send sends the most pressing of what is overdue, and says for how long nothing more is.
func (p *pulse) send(ctx context.Context) (wait time.Duration) {
	var sending errgroup.Group
	for _, f := range p.claim() {
		sending.Go(func() error {
			p.note(f, p.beat(ctx, f.Heartbeat))
			return nil
		})
	}
	_ = sending.Wait() // failures are results

	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	wait = idle
	for _, f := range p.foreseen {
		wait = min(wait, f.Due.Add(overdue).Sub(now))
	}
	return max(wait, 0)
}

// claim takes of what is overdue those first whose heartbeat after this one would be due first: a
// hook that waits for long can be late. That next one is foreseen instead, and is what it returns.
func (p *pulse) claim() (late []outcome.Foreseen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	maps.DeleteFunc(p.foreseen, func(_ string, f outcome.Foreseen) bool { return !now.Before(f.Until) })
	for _, f := range p.foreseen {
		if !now.Before(f.Due.Add(overdue)) {
			late = append(late, f)
		}
	}
	slices.SortFunc(late, func(a, b outcome.Foreseen) int {
		return cmp.Or(a.Due.Add(a.Every).Compare(b.Due.Add(b.Every)), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Hook, b.Hook))
	})
	late = late[:min(len(late), beatsAtOnce)]
	for i := range late {
		late[i].Due = now.Add(late[i].Every)
		p.foreseen[fleet.HeartbeatKey(late[i].Instance, late[i].Hook)] = late[i]
	}
	return late
}

// note keeps what became of a heartbeat. One that was not sent is tried again in a moment, unless
// an evaluation has foreseen something else meanwhile.
func (p *pulse) note(f outcome.Foreseen, r act.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Outcome != act.Paused {
		p.results = append(p.results, r)
	}
	key := fleet.HeartbeatKey(f.Instance, f.Hook)
	if r.Outcome != act.Done && p.foreseen[key].Due.Equal(f.Due) {
		p.retry(key)
	}
}

// missed has those heartbeats tried again in a moment which the loop could not send: what is
// foreseen counts on them.
func (p *pulse) missed(results []act.Result) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range results {
		if x, beat := r.Action.(action.Heartbeat); beat && r.Outcome != act.Done {
			p.retry(fleet.HeartbeatKey(x.Instance, x.Hook))
		}
	}
	p.wake()
}

// retry has a heartbeat be overdue in a moment.
func (p *pulse) retry(key string) {
	if next, held := p.foreseen[key]; held {
		next.Due = p.now().Add(tryAgain - overdue)
		p.foreseen[key] = next
	}
}

// withBeats is a state with the heartbeats that were sent since. Nothing of it is changed.
func withBeats(state fleet.State, sent []act.Result) fleet.State {
	if len(sent) == 0 {
		return state
	}
	beats := maps.Clone(state.Heartbeats)
	for _, r := range sent {
		x, is := r.Action.(action.Heartbeat)
		if !is || r.Outcome != act.Done {
			continue
		}
		if beats == nil {
			beats = map[string]time.Time{}
		}
		key, sent := fleet.HeartbeatKey(x.Instance, x.Hook), r.Ended.Add(-r.Took)
		if sent.After(beats[key]) { // the loop may have sent another one since
			beats[key] = sent
		}
	}
	state.Heartbeats = beats
	return state
}
