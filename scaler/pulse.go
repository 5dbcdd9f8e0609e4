package main

import (
	"context"
	"maps"
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
// server that is slow. It goes by what the last evaluation foresaw, and ends where that does.
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
	select {
	case p.news <- struct{}{}:
	default: // it is awake
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

// send sends what is overdue, and says for how long nothing more is.
func (p *pulse) send(ctx context.Context) (wait time.Duration) {
	var sending errgroup.Group
	sending.SetLimit(beatsAtOnce)
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
	return max(wait, breath)
}

// claim takes what is overdue; the next one of each is foreseen instead.
func (p *pulse) claim() (late []outcome.Foreseen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for key, f := range p.foreseen {
		if now.Before(f.Due.Add(overdue)) {
			continue
		}
		if now.Before(f.Until) {
			late = append(late, f)
		}
		f.Due = now.Add(f.Every)
		if p.foreseen[key] = f; !f.Due.Before(f.Until) {
			delete(p.foreseen, key)
		}
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
	if next, held := p.foreseen[key]; held && r.Outcome != act.Done {
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
		beats[fleet.HeartbeatKey(x.Instance, x.Hook)] = r.Ended.Add(-r.Took)
	}
	state.Heartbeats = beats
	return state
}
