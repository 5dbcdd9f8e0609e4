package externalgrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// The pace of reading. A provider pays for its answers itself; Cluster Autoscaler asks it every ten
// seconds.
const (
	// quick is the pace while something comes or leaves, or has for less than patience seconds; what
	// takes longer is read every three-hundredth of the time it takes, and never slower than slow.
	quick, slow = time.Second, 10 * time.Second
	patience    = 300
	// nudgeGap is the least time between two readings, nudgeFor how long quick readings go on
	// after a nudge though nothing shows.
	nudgeGap, nudgeFor = 200 * time.Millisecond, 3 * time.Second
	// tryAgain is when a reading that failed is tried again.
	tryAgain = 5 * time.Second
	// readTime is how long one reading may take, with all its calls.
	readTime = 30 * time.Second
)

// Reader keeps a reading of all groups. Reading and asking for the result are apart: Groups never
// calls the provider.
type Reader struct {
	provider *Provider
	defaults Defaults
	logger   *slog.Logger
	changed  func(expected bool) // after a reading that differs from the one before, which nobody expects to be so
	now      func() time.Time
	ended    *ledger

	nudge chan struct{}

	waiting  singleflight.Group
	reading  chan struct{} // full while somebody reads; guards what follows
	known    map[string]*known
	gpuLabel *string // nil before the provider was asked

	mu     sync.Mutex // guards what follows
	latest reading
	said   string // the last trouble that was logged
	// forgotten: what is known is of an earlier term.
	forgotten bool
}

// reading is the outcome of Read.
type reading struct {
	groups []fleet.Group
	at     time.Time
	err    error
	fault  string
	moving time.Time // since when something moves; zero while nothing does
}

// NewReader returns a Reader that has read nothing yet. changed may be nil.
func (p *Provider) NewReader(defaults Defaults, logger *slog.Logger, changed func(expected bool)) *Reader {
	if changed == nil {
		changed = func(bool) {}
	}
	return &Reader{
		provider: p, defaults: defaults, logger: logger, changed: changed, now: time.Now, ended: &p.ended,
		nudge: make(chan struct{}, 1), reading: make(chan struct{}, 1), known: map[string]*known{},
	}
}

// Run reads again and again until ctx ends: at once when nudged, each second while something comes
// or leaves, else every ten.
func (r *Reader) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.nudge:
		}
		if at := r.last().at; at.IsZero() || r.now().Sub(at) >= nudgeGap {
			_ = r.Read(ctx) // it logs
		}
		timer.Reset(r.wait())
	}
}

// Forget is for whoever begins to lead, before anything decides: in an earlier term the groups and their tags
// may have been others. Until they are read it is as if they never were.
func (r *Reader) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.forgotten = reading{}, true
}

// begin drops what an earlier term knew, if it is to be forgotten. Only who reads calls it.
func (r *Reader) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten {
		r.known, r.forgotten = map[string]*known{}, false
	}
}

func (r *Reader) last() reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

func (r *Reader) wait() time.Duration {
	latest := r.last()
	switch {
	case latest.err != nil:
		return tryAgain
	case latest.moving.IsZero():
		return slow
	}
	return min(max(quick, r.now().Sub(latest.moving)/patience), slow)
}

// Nudge asks for a reading soon.
func (r *Reader) Nudge() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest.moving = r.now() // what was nudged for may take a moment to show
}

// Look asks for a reading soon if the latest one lacks an instance or, where that leaves, does not say so.
func (r *Reader) Look(instance string, leaves bool) {
	if !fleet.Lists(r.last().groups, instance, leaves) {
		r.Nudge()
	}
}

// Recheck asks for a reading soon: each reads all of a group that may change.
func (r *Reader) Recheck(string) { r.Nudge() }

// Groups returns the latest reading, in the order of names, when it was taken, and why a later one
// failed. The result is shared: do not change it.
func (r *Reader) Groups(map[string]resource.Quantity) ([]fleet.Group, time.Time, error) {
	latest := r.last()
	return latest.groups, latest.at, latest.err
}

// Err returns why the latest attempt to read failed; nil if it did not.
func (r *Reader) Err() error { return r.last().err }

// Reading returns how old the latest reading is, zero before the first one, and why a later attempt
// failed.
func (r *Reader) Reading() (age time.Duration, err error) {
	latest := r.last()
	if latest.at.IsZero() {
		return 0, latest.err
	}
	return r.now().Sub(latest.at), latest.err
}

// Machines knows of no machine whether it is switched off: the protocol has no word for that.
func (r *Reader) Machines([]string) (known map[string]fleet.Machine, fault string) { return nil, "" }

// Spot has no prices: a provider says itself what its nodes cost.
func (r *Reader) Spot() asg.Spot { return asg.Spot{} }

// Fault says what the provider's list of groups lacks; empty where all is well.
func (r *Reader) Fault() string { return r.last().fault }

// Read reads now. If the groups cannot be listed at all it logs and returns why, and keeps what it
// knew; everything else that fails is a fault of one group.
func (r *Reader) Read(ctx context.Context) error { return r.read(ctx, func() {}) }

// read calls begun when it is its turn.
func (r *Reader) read(ctx context.Context, begun func()) error {
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	begun()
	whole := ctx
	ctx, cancel := context.WithTimeout(whole, readTime)
	defer cancel()
	r.begin()
	named, err := r.list(ctx)
	if whole.Err() != nil {
		return whole.Err()
	}
	r.log(err)
	if err != nil {
		r.keep(r.assemble(r.last().at, err, r.last().fault))
		return err
	}
	var fault string
	r.known, fault = match(r.known, named)
	now := r.now()
	var asking errgroup.Group
	asking.SetLimit(groupsAtOnce)
	for _, k := range r.known {
		asking.Go(func() error { k.read(ctx, r, now); return nil }) // what fails is the group's fault
	}
	_ = asking.Wait() // nothing fails
	if whole.Err() != nil {
		return whole.Err() // what was cut short is no fault of the provider
	}
	r.keep(r.assemble(now, nil, fault))
	return nil
}

// list has the provider bring itself up to date, and name its groups.
func (r *Reader) list(ctx context.Context) ([]*protocol.NodeGroup, error) {
	p := r.provider
	if _, err := ask(ctx, p, "Refresh", p.client.Refresh, &protocol.RefreshRequest{}); err != nil && !errors.Is(err, errNotServed) {
		return nil, err
	}
	if r.gpuLabel == nil {
		out, err := ask(ctx, p, "GPULabel", p.client.GPULabel, &protocol.GPULabelRequest{})
		if label := out.GetLabel(); err == nil || errors.Is(err, errNotServed) {
			r.gpuLabel = &label
		}
	}
	out, err := ask(ctx, p, "NodeGroups", p.client.NodeGroups, &protocol.NodeGroupsRequest{})
	return out.GetNodeGroups(), err
}

// ReadFor reads now and returns when that is done, but after wait at the latest: the reading goes
// on then. One that waits for its turn is that of all who come meanwhile.
func (r *Reader) ReadFor(ctx context.Context, wait time.Duration) {
	done := r.waiting.DoChan("", func() (any, error) {
		return nil, r.read(ctx, func() { r.waiting.Forget("") }) // it logs, and the old reading stands
	})
	select {
	case <-done:
	case <-time.After(wait):
	}
}

// Follow reads anew what calls of ours have changed: a provider may count otherwise.
func (r *Reader) Follow(ctx context.Context, wait time.Duration) {
	r.Nudge()
	r.ReadFor(ctx, wait)
}

// assemble makes a reading of all that is known now. err is why nothing new is, and then at is when
// the last was read.
func (r *Reader) assemble(at time.Time, err error, fault string) reading {
	next := reading{at: at, err: err, fault: fault}
	stale := ""
	if err != nil {
		stale = fmt.Sprintf("as it was at %s, because since then: %v", at.UTC().Format(time.TimeOnly), err)
	}
	label := ""
	if r.gpuLabel != nil {
		label = *r.gpuLabel
	}
	now, shared := r.now(), shared(r.known)
	for _, id := range slices.Sorted(maps.Keys(r.known)) {
		g := r.known[id].group(r.ended, label, stale, shared, now)
		if k := r.known[id]; g.Held == "" && now.Sub(k.sizedAt) > asg.OldReading {
			g.Held, g.Unread = cmp.Or(stale, k.sizeFault), true
		}
		if unsettled(g) {
			next.moving = now
		}
		next.groups = append(next.groups, g)
	}
	slices.SortFunc(next.groups, func(a, b fleet.Group) int { return cmp.Compare(a.Name, b.Name) })
	return next
}

// shared names, for each instance, the groups that have it.
func shared(all map[string]*known) map[string][]string {
	groups := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		there := map[string]bool{}
		for _, i := range all[id].instances {
			if instance := fleet.InstanceIDOf(i.GetId()); !there[instance] {
				there[instance] = true
				groups[instance] = append(groups[instance], nameOf(id))
			}
		}
	}
	return groups
}

// unsettled reports whether an instance comes or leaves, or is still to come.
func unsettled(g fleet.Group) bool {
	live := 0
	for _, i := range g.Instances {
		if i.Live() {
			live++
		}
		if i.State != fleet.InService {
			return true
		}
	}
	return live != g.Desired
}

// keep makes a reading the latest.
func (r *Reader) keep(next reading) {
	r.mu.Lock()
	before := r.latest
	if !next.moving.IsZero() && !before.moving.IsZero() && len(before.groups) > 0 {
		next.moving = before.moving // it goes on
	}
	if r.now().Sub(before.moving) < nudgeFor && next.moving.IsZero() {
		next.moving = before.moving // a nudge wants quick readings though nothing shows
	}
	same := fleet.Equal(before.groups, next.groups) && before.at.IsZero() == next.at.IsZero() && before.fault == next.fault
	r.latest = next
	r.mu.Unlock()
	if !same {
		r.changed(false)
	}
}

// log logs trouble when it begins, changes and ends.
func (r *Reader) log(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	news := text != r.said
	r.said = text
	r.mu.Unlock()
	switch {
	case !news:
	case err != nil:
		r.logger.Warn("groups not read", "err", err)
	default:
		r.logger.Info("groups are read again")
	}
}
