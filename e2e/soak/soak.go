package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// soak is one life of a world.
type soak struct {
	ctx      context.Context
	w        *world.World
	out      io.Writer
	began    time.Time
	duration time.Duration
	round    time.Duration
	hasty    bool
	dryRun   bool

	stream  *stream
	pending []pending // effects that have an end to come
	outages []laws.Span
	// hampered are the times in which something else kept a scaler from its work, skewed
	// those in which its clock was wrong.
	hampered, skewed []laws.Span
	partitions       []partition
	strangers        strangers

	clocks    bool // those of scalers can be set
	workloads []workload

	outage     bool // a long one is under way, or about to be
	tenant     bool // a tenant's pods are there
	tenantPods int

	book     *book
	watch    *watch
	audit    *laws.Audit
	lives    lives
	sampled  time.Time
	breaches []string
	done     map[string]int // disturbances by kind
}

// pending is an effect that ends at its time.
type pending struct {
	due time.Time
	effect
}

func newSoak(ctx context.Context, w *world.World, p plan, clocks bool, out io.Writer) (*soak, error) {
	of, err := chosen(p.only)
	if err != nil {
		return nil, err
	}
	s := &soak{
		ctx: ctx, w: w, out: out, began: time.Now(), duration: p.duration, round: p.round, hasty: p.hasty, dryRun: p.dryRun,
		stream: newStream(p.seed, p.pause, of), lives: lives{}, done: map[string]int{},
		book: newBook(), strangers: strangers{}, clocks: clocks, tenantPods: p.tenantPods, workloads: workloads,
		audit: laws.NewAudit(filepath.Join(w.Dir, "cluster", "logs", "audit.log")),
	}
	s.say("seed %d for %s, logs in %s", p.seed, p.duration, w.Dir)
	w.AWS.OnInstance(s.book.see)
	if s.watch, err = startWatch(ctx, w.Client, s.book); err != nil {
		return nil, err
	}
	if err := s.makeTenant(); err != nil {
		return nil, err
	}
	if p.autoscaler {
		s.workloads = append(slices.Clone(workloads), ofOthers)
		if err := s.w.AWS.AddGroup(othersGroup()); err != nil {
			return nil, err
		}
	}
	if p.autoscaler || p.dryRun {
		if err := s.startAutoscaler(); err != nil {
			return nil, err
		}
	}
	if err := s.gather(p.nodes); err != nil {
		return nil, err
	}
	return s, w.Apply(ctx, []byte(manifests(s.workloads)))
}

func (s *soak) startAutoscaler() error {
	_, err := s.w.Kubectl(s.ctx, nil, "scale", "deployment", contract.AppClusterAutoscaler, "-n", contract.NamespaceClusterAutoscaler, "--replicas=1")
	return err
}

func (s *soak) say(format string, words ...any) {
	fmt.Fprintf(s.out, "%7.1fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, words...))
}

// live goes through the rounds. Its errors are those of the test bed.
func (s *soak) live() error {
	if s.dryRun { // what is left over is the other's to put right
		s.disturb(s.began.Add(s.duration))
		return errors.Join(s.endAll(func(pending) bool { return true }), s.ctx.Err())
	}
	if err := s.rest(); err != nil {
		return err
	}
	s.began = time.Now()
	for time.Since(s.began) < s.duration && s.ctx.Err() == nil {
		until := time.Now().Add(s.round)
		if last := s.began.Add(s.duration); last.Before(until) {
			until = last
		}
		s.disturb(until)
		if s.hasty {
			return s.endAll(func(p pending) bool { return p.obstacle })
		}
		if err := s.putRight(); err != nil {
			return err
		}
		if err := s.rest(); err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

// disturb carries out steps, and ends what has lasted, until a moment.
func (s *soak) disturb(until time.Time) {
	next := s.stream.step()
	due := time.Now().Add(next.Pause)
	for s.pause(min(time.Until(until), time.Until(s.earliest(due)))) && time.Now().Before(until) {
		s.endDue(func(p pending) bool { return !time.Now().Before(p.due) })
		if time.Now().Before(due) {
			continue
		}
		s.carryOut(next)
		next = s.stream.step()
		due = time.Now().Add(next.Pause)
	}
}

// earliest is when the first thing is due, of the next step and of what ends.
func (s *soak) earliest(due time.Time) time.Time {
	for _, p := range s.pending {
		if p.due.Before(due) {
			due = p.due
		}
	}
	return due
}

func (s *soak) carryOut(next step) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == next.Kind })
	e, err := kinds[i].do(s, next.Dice)
	switch {
	case err != nil:
		s.say("#%d %s: not done: %v", next.Number, next.Kind, err) // the API server may be away
	case e.what == "":
		s.say("#%d %s: nothing to do it to", next.Number, next.Kind)
	default:
		s.done[next.Kind]++
		s.say("#%d %s: %s", next.Number, next.Kind, e.what)
		s.later(e)
	}
}

// later remembers what is to end.
func (s *soak) later(e effect) {
	if e.end != nil {
		s.pending = append(s.pending, pending{time.Now().Add(e.lasts), e})
	}
}

// endDue ends those effects; what cannot be ended now is tried again.
func (s *soak) endDue(which func(pending) bool) {
	var due []pending
	s.pending = slices.DeleteFunc(s.pending, func(p pending) bool {
		if which(p) {
			due = append(due, p)
			return true
		}
		return false
	})
	for _, p := range due {
		if err := p.end(); err != nil {
			p.due = time.Now().Add(time.Second)
			s.pending = append(s.pending, p)
			continue
		}
		s.say("  over: %s", p.what)
	}
}

// endAll ends all such effects, however often it takes.
func (s *soak) endAll(which func(pending) bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, restPatience)
	defer cancel()
	for slices.ContainsFunc(s.pending, which) {
		s.endDue(which)
		if ctx.Err() != nil {
			return fmt.Errorf("disturbances cannot be ended: %w", ctx.Err())
		}
		s.pause(50 * time.Millisecond)
	}
	return nil
}

// putRight ends all disturbances: first those that may keep a drain from ending,
// and when every drain has ended the others.
func (s *soak) putRight() error {
	s.say("--- everything is put right")
	if err := s.endAll(func(p pending) bool { return p.obstacle }); err != nil {
		return err
	}
	if err := s.setBudgets(`"100%"`); err != nil {
		return err
	}
	s.hold("a drain with open budgets has not ended", drainPatience, s.undrained)
	if err := s.setBudgets("1"); err != nil {
		return err
	}
	return s.endAll(func(pending) bool { return true })
}

// setBudgets sets those of all workloads, however often it takes: an API server that
// has just come back may refuse it.
func (s *soak) setBudgets(unavailable string) error {
	for end := time.Now().Add(restPatience); ; {
		var errs []error
		for _, name := range budgeted(s.workloads) {
			errs = append(errs, s.setBudget(name, unavailable))
		}
		err := errors.Join(errs...)
		if err == nil || time.Now().After(end) || !s.pause(time.Second) {
			return err
		}
	}
}

// rest waits until nothing moves and nothing is left over. Machines without a Node are
// brought back meanwhile: no scaler has to end many of them in this time.
func (s *soak) rest() error {
	settled := func() ([]string, error) {
		found, err := s.unrest()
		return found, errors.Join(err, s.reunite())
	}
	if s.hold("the world does not come to rest", restPatience, settled) {
		s.say("--- at rest: %s", s.census())
	}
	return s.ctx.Err()
}

// lull is how long nothing must be found wrong.
const lull = 2 * time.Second

// hold waits until a look has found nothing for a while; what is still found when
// patience ends is a breach.
func (s *soak) hold(what string, patience time.Duration, look func() ([]string, error)) bool {
	var since time.Time
	for end := time.Now().Add(patience); ; {
		found, err := look()
		if err != nil {
			found = append(found, err.Error())
		}
		switch now := time.Now(); {
		case len(found) > 0 && now.After(end):
			for _, f := range found {
				s.breach(what + ": " + f)
			}
			return false
		case len(found) > 0:
			since = time.Time{}
		case since.IsZero():
			since = now
		case now.Sub(since) >= lull:
			return true
		}
		if !s.pause(250 * time.Millisecond) {
			return false
		}
	}
}

// pause lets time pass, and samples meanwhile what is to be watched. It returns
// false when it is time to end.
func (s *soak) pause(d time.Duration) bool {
	if time.Since(s.sampled) > samplePause {
		s.sampled = time.Now()
		s.lives.take(s.w.Processes(), s.sampled)
		s.look(s.sampled.Add(-hindsight))
	}
	select {
	case <-time.After(max(d, 0)):
		return true
	case <-s.ctx.Done():
		return false
	}
}

const samplePause = 5 * time.Second

// look holds the laws against what has happened so far, and against the calls to AWS
// before a moment what was seen of pods.
func (s *soak) look(before time.Time) {
	audit, err := s.audit.Requests()
	if err != nil {
		s.breach(err.Error())
		return
	}
	if s.dryRun {
		for _, b := range slices.Concat(laws.Exits(s.w.Exits()), laws.Memory(s.w.Processes()), laws.DryRun(audit, s.w.AWS.Calls(ofWindlass))) {
			s.breach(b)
		}
		return
	}
	s.book.sizes(s.w.AWS.Groups())
	s.strangers.note(s.w, s.w.AWS.Instances())
	calls := s.w.AWS.Calls(ofWindlass)
	// Not laws.Completions: here deadlines pass, and the watch knows of them.
	found := slices.Concat(laws.Exits(s.w.Exits()), laws.Memory(s.w.Processes()), laws.Calls(calls, s.book.raisedBefore), laws.Doubles(calls), laws.Denials(calls, nil), laws.Evictions(audit), laws.Turns(audit), laws.Unseen(audit, calls),
		s.watch.breaches(calls, audit, before, s.skewed), s.unrecognised(calls, audit), s.partitioned(calls), s.late(calls), s.crowded(before))
	for _, b := range found {
		s.breach(b)
	}
}

func ofWindlass(c fakeaws.Call) bool {
	return c.Service != "imds" && c.AccessKey != world.AutoscalerKey
}

// breach notes a broken law, once.
func (s *soak) breach(what string) {
	if !slices.Contains(s.breaches, what) {
		s.breaches = append(s.breaches, what)
		s.say("BREACH: %s", what)
	}
}

// serving are the instances of groups that are in service and up, the oldest first.
func (s *soak) serving(groups ...string) []fakeaws.Instance {
	return slices.DeleteFunc(s.w.AWS.Instances(), func(i fakeaws.Instance) bool {
		return !slices.Contains(groups, i.Group) || i.LifecycleState != fakeaws.InService || i.OS != fakeaws.OSUp
	})
}

func (s *soak) aboveMin(group string) bool {
	g, err := s.w.AWS.Group(group)
	return err == nil && g.Desired > g.Min
}

// unlessGone forgives an error about an instance that has ended, or has left the
// state in which it was, meanwhile.
func (s *soak) unlessGone(i fakeaws.Instance, err error) error {
	if err == nil {
		return nil
	}
	now, missing := s.w.AWS.Instance(i.ID)
	if missing != nil || now.Gone || now.LifecycleState != i.LifecycleState {
		return nil
	}
	return err
}

func named(i fakeaws.Instance) string { return i.ID + " of " + i.Group + " (" + i.PrivateDNSName + ")" }
