package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/shadow"
	"windlass.dev/windlass/scaler/shadow/record"
	traces "windlass.dev/windlass/scaler/shadow/seen"
	"windlass.dev/windlass/scaler/status"
)

// shadowing is a shadow at work. It has nothing by which anything could be changed but ConfigMaps of
// its own and Events.
type shadowing struct {
	shadow *shadow.Shadow
	book   *status.ShadowBook
	events *observe.AutoscalerEvents
	theirs string // the namespace of Cluster Autoscaler
	// page is the object on which Events stand, once there is one.
	page   func() (corev1.ObjectReference, bool)
	write  func(kube.Event) bool
	logger *slog.Logger
	// unwritten is why the book was not written the last time.
	unwritten string
	// waits is told that the loop stands still, or that it goes on.
	waits func(error)
}

// flushTime is how long the last write of a shadow may take when the program ends.
const flushTime = 3 * time.Second

// newShadowing reads what the shadow before has kept, however long the API server takes to answer; nil
// where ctx ends before.
func (sc *scaler) newShadowing(ctx context.Context, observedOnly bool) *shadowing {
	maps := sc.client.CoreV1().ConfigMaps(sc.settings.namespace)
	waits := sc.waits
	if observedOnly {
		waits = func(error) {} // the loop that acts goes on beside it
	}
	for {
		book, memory, faults, err := status.OpenShadowBook(ctx, maps)
		if err == nil {
			for _, fault := range faults {
				sc.logger.Error("part of what the shadow has kept not read, going on without it", "err", fault)
			}
			why := "--dry-run"
			if observedOnly {
				why = "tag " + contract.TagMode + "=" + contract.ModeObserve
			}
			s := &shadowing{
				shadow: shadow.New(memory, observedOnly), book: book, theirs: sc.settings.theirs, logger: sc.logger,
				events: observe.NewAutoscalerEvents(sc.client, tells(sc.settings.theirs), sc.observer.EventsCame, sc.eventsRefused()),
				page:   sc.statusPage, write: sc.events.Write, waits: waits,
			}
			waits(nil)
			s.keep([]record.Record{{At: sc.now(), Began: &record.Began{Version: telemetry.Version(), Why: why}}})
			return s
		}
		waits(err)
		sc.logger.Warn("what the shadow has kept not read, retrying", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tryAgain):
		}
	}
}

// tells says what an Event tells, given the namespace of Cluster Autoscaler.
func tells(theirs string) func(*corev1.Event) observe.Told {
	return func(e *corev1.Event) observe.Told {
		records := traces.OfEvent(e, theirs)
		switch {
		case len(records) == 0:
			return observe.Nothing
		case records[0].Seen.By == record.ByClaim:
			return observe.Claimed
		}
		return observe.Believed
	}
}

// eventsRefused reports that Events cannot be read, once for each reason.
func (sc *scaler) eventsRefused() func(error) {
	var mu sync.Mutex
	said := ""
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if text := textOf(err); text != said {
			said = text
			if err != nil {
				sc.logger.Warn("Events of Cluster Autoscaler not read: compare goes by what nodes and groups show", "err", err, "remedy", "a ClusterRole for service account "+contract.AppScaler+" with the verbs list and watch of events")
			}
		}
	}
}

// shadowLoop is the loop whose actions are assumed done. observe sees the world; tell publishes; after is
// called with each turn.
func (sc *scaler) shadowLoop(ctx context.Context, s *shadowing, observe func(now time.Time) (fleet.Snapshot, uint64, error), tell func(evaluation), after func(error)) (*loop, error) {
	memory := status.NewShadowMemory(sc.client.CoreV1().ConfigMaps(sc.settings.namespace))
	if err := sc.load(ctx, memory, s.waits); err != nil {
		return nil, err
	}
	planner, since := plan.NewPlanner(), sc.now().UTC()
	p := sc.settings.policy
	p.Shadow = true
	return &loop{
		now: sc.now,
		observe: func(now time.Time) (fleet.Snapshot, uint64, error) {
			world, version, err := observe(now)
			if err != nil {
				return fleet.Snapshot{}, 0, err
			}
			world.Now, world.State, world.Leads = now.UTC(), memory.State(), since
			return s.shadow.See(world), version + s.shadow.Revision(), nil
		},
		decide: func(seen fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
			urgent, rest := planner.Begin(seen, p)
			return urgent, func() plan.Plan {
				decided := rest()
				if wake := s.shadow.Wake(); decided.Wake.IsZero() || wake.Before(decided.Wake) {
					decided.Wake = wake
				}
				return decided
			}
		},
		policy: p,
		remember: func(ctx context.Context, state fleet.State) error {
			_, err := memory.Remember(ctx, state)
			return err
		},
		keep:   memory.Keep,
		paused: func(action.Action) (act.Result, bool) { return act.Result{}, false },
		act:    s.assume,
		due:    func(time.Time) time.Time { return time.Time{} },
		reread: func(context.Context, []act.Result) {},
		awaits: func(bool) {}, // nothing is launched
		judge:  func(seen fleet.Snapshot) { sc.judge(planner.Judge(seen, p)) },
		tell:   tell,
		logger: sc.logger,
		alive: func(err error) {
			s.turned(ctx)
			after(err)
		},
	}, nil
}

// assume has actions be done.
func (s *shadowing) assume(_ context.Context, actions []action.Action) (results []act.Result) {
	for _, a := range actions {
		r := s.shadow.Assume(a)
		outcome := act.Done
		if !r.Done {
			outcome = act.Stopped
		}
		results = append(results, act.Result{Action: a, Outcome: outcome, Answer: r.Answer, Ended: r.Ended})
	}
	return results
}

// turned keeps what a turn has brought.
func (s *shadowing) turned(ctx context.Context) {
	s.keep(s.shadow.Records())
	for _, e := range s.events.News() {
		s.keep(traces.OfEvent(e, s.theirs))
	}
	s.written(s.book.Write(ctx, s.shadow))
}

// keep logs records, and reports on the status page what would have been done.
func (s *shadowing) keep(records []record.Record) {
	if err := s.book.Append(records); err != nil {
		s.logger.Error("record of the shadow not kept", "err", err)
	}
	for _, r := range records {
		if r.Diverged != nil {
			s.logger.Info("the world went another way than the shadow had assumed", "group", r.Diverged.Group, "node", r.Diverged.Node, "assumed", r.Diverged.Assumed, "is", r.Diverged.Is, "why", r.Diverged.Why)
		}
		if r.Decided == nil {
			continue
		}
		s.logger.Info("would be done", "action", r.Decided.String())
		reason := ""
		switch r.Decided.Kind {
		case record.Grow:
			reason = contract.EventWouldScaleUp
		case record.RequestDrain, record.Terminate:
			reason = contract.EventWouldScaleDown
		}
		if page, is := s.page(); is && reason != "" {
			s.write(kube.Event{Object: page, Reason: reason, Message: r.Decided.String(), At: r.At})
		}
	}
}

// written reports why the book could not be written, once for each reason.
func (s *shadowing) written(err error) {
	if text := textOf(err); text != s.unwritten {
		s.unwritten = text
		if err != nil {
			s.logger.Error("log of the shadow not written, retrying", "err", err)
		}
	}
}

// close writes what is left, also where ctx has ended.
func (s *shadowing) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	s.keep(s.shadow.Records())
	s.written(s.book.Flush(ctx, s.shadow))
}

// leadShadow runs the loop of a dry run until ctx ends.
func (sc *scaler) leadShadow(ctx context.Context) error {
	sc.reader.Forget()
	sc.board.Drop()
	s := sc.newShadowing(ctx, false)
	if s == nil {
		return nil
	}
	defer s.close(ctx)
	l, err := sc.shadowLoop(ctx, s, func(now time.Time) (fleet.Snapshot, uint64, error) {
		snapshot, version, err := sc.observer.Snapshot(now, fleet.State{})
		sc.aws.Report(readingTrouble(sc.reader.Reading()))
		return snapshot, version, err
	}, sc.tellDryRun, sc.turned)
	if err != nil {
		return err
	}
	l.changed, l.asked = sc.observer.Changed(), sc.asked
	watching, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { sc.board.Run(watching) })
	parts.Go(func() { sc.reader.Run(watching) })
	parts.Go(func() { s.events.Run(watching) })
	defer parts.Wait()
	defer stop()
	return l.run(ctx)
}

// tellDryRun publishes what would be done: on the page, in metrics, and nowhere else.
func (sc *scaler) tellDryRun(l evaluation) {
	undone := l
	undone.results = nil
	sc.metrics.record(undone)
	sc.board.Post(func() statuspage.Status {
		page := sc.status(l)
		page.Page.DryRun = true
		return page
	})
	sc.publish(l)
}

// beside is a shadow of the groups that are observed, while the scaler acts on the others. It sees
// what the loop that acts has seen last, and never makes that wait.
type beside struct {
	mu      sync.Mutex
	seen    fleet.Snapshot
	version uint64
	has     bool
	changed chan struct{}
}

func newBeside() *beside { return &beside{changed: make(chan struct{}, 1)} }

// post hands over what was seen; nothing where no group is observed.
func (b *beside) post(s fleet.Snapshot) {
	observed := slices.ContainsFunc(s.Groups, func(g fleet.Group) bool { return g.Observed })
	b.mu.Lock()
	before := b.has
	b.has = observed
	if b.seen = (fleet.Snapshot{}); observed {
		b.seen = s
	}
	b.version++
	b.mu.Unlock()
	if !observed && !before {
		return
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *beside) latest(time.Time) (fleet.Snapshot, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.has {
		return fleet.Snapshot{}, 0, fmt.Errorf("%w: a group with tag %s=%s", observe.ErrNotYet, contract.TagMode, contract.ModeObserve)
	}
	return b.seen, b.version, nil
}

// run has a shadow run while ctx lasts, once a group is observed.
func (b *beside) run(ctx context.Context, sc *scaler) {
	select {
	case <-ctx.Done():
		return
	case <-b.changed:
	}
	for ctx.Err() == nil {
		err := b.lead(ctx, sc)
		if err == nil {
			continue
		}
		sc.logger.Error("shadow of observed groups failed, beginning anew", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(idle):
		}
	}
}

// lead runs one shadow until ctx ends, or another process turns out to write its state.
func (b *beside) lead(ctx context.Context, sc *scaler) error {
	s := sc.newShadowing(ctx, true)
	if s == nil {
		return nil
	}
	defer s.close(ctx)
	l, err := sc.shadowLoop(ctx, s, b.latest, func(evaluation) {}, func(error) {})
	if err != nil {
		return err
	}
	l.changed, l.logger = b.changed, sc.logger.With("of", "observed groups")
	watching, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { s.events.Run(watching) })
	defer parts.Wait()
	defer stop()
	return l.run(ctx)
}
