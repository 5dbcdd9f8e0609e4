package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// Agent drains one node: it looks at it, lets drain.Decide say what to do, and
// does it. Its functions are all that it knows of the world. Only Evict is
// called again before an earlier call has returned; Tell and Identify must not
// wait.
type Agent struct {
	// Name of the node.
	Name   string
	Policy drain.Policy
	Logger *slog.Logger

	// ReadNode reads the Node.
	ReadNode func(context.Context) (*corev1.Node, error)
	// WriteNode writes to it, on the patch's conditions; see kube.Send.
	WriteNode func(context.Context, kube.NodePatch) (*corev1.Node, error)
	// Evict asks for one eviction or deletion.
	Evict func(context.Context, drain.Evict) drain.Answer

	// WatchNode, WatchPods, WatchBudgets and WatchNotices go on until their context
	// ends. WatchPods is called while the node drains only, and WatchBudgets, for a
	// namespace, while one of its budgets is in the way.
	WatchNode    func(context.Context, func(evict.Metadata))
	WatchPods    func(context.Context, *evict.Pods)
	WatchBudgets func(ctx context.Context, namespace string, pods *evict.Pods)
	WatchNotices func(context.Context, func(imds.Sighting))

	// APITime is the time by the API server's clock, for as long as the metadata service
	// has not named it; nil where that is not known.
	APITime func() time.Time

	// Tell writes an Event.
	Tell func(kube.Event)
	// Identify is given the instance that the Node names.
	Identify func(instance string)
}

// Run goes on until ctx ends. It leaves a drain as it is then: the next agent
// on this node goes on with it.
func (a *Agent) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	l := &loop{
		Agent: a,
		ctx:   ctx,
		do:    make(chan func()),
		nudge: make(chan struct{}, 1),
		begun: time.Now(),
	}
	defer l.running.Wait()
	defer cancel()
	defer l.tellOverrides()
	l.running.Go(func() {
		a.WatchNode(ctx, func(m evict.Metadata) { l.post(func() { l.hearMetadata(m) }) })
	})
	l.running.Go(func() {
		a.WatchNotices(ctx, func(s imds.Sighting) { l.post(func() { l.hearNotices(s) }) })
	})
	for {
		if !l.wait(l.turn()) {
			return
		}
	}
}

// loop is the one goroutine that decides. Its fields belong to that goroutine;
// others reach it by post.
type loop struct {
	*Agent
	ctx     context.Context
	running sync.WaitGroup
	do      chan func()
	nudge   chan struct{}

	begun time.Time
	// sighted: the metadata service has answered, sighting is what.
	sighted   bool
	sighting  imds.Sighting
	metadata  evict.Metadata
	node      nodeAccess
	drain     *underWay
	overrides overrides
	// unlisted is the list of notices that the Node has not taken yet; empty where it has.
	unlisted string
	// notYet is the scaler's word on the Node that a drain is to wait on, and arrived when
	// that came; empty where none stands.
	notYet  string
	arrived time.Time
	// settled is what there was to see when there was last nothing to do; while
	// that does not change, nothing is read until the moment for which something is
	// planned, if anything is.
	settled      string
	settledUntil time.Time
}

// underWay is what the process keeps while the node drains.
type underWay struct {
	ctx    context.Context
	cancel context.CancelFunc
	begun  time.Time
	pods   *evict.Pods
	// listed: the pods have been known.
	listed bool
	tries  drain.Tries
	// unwritten is the report that the Node has not taken yet; nil where it has.
	unwritten *contract.Report
	pace      pace
	// guarded names the namespaces whose budgets are watched.
	guarded map[string]bool
}

// post has f run in the loop's goroutine.
func (l *loop) post(f func()) {
	select {
	case l.do <- f:
	case <-l.ctx.Done():
	}
}

// gatherFor is how long a drain waits for more of what is seen of pods and budgets, once evictions have begun: each
// brings three changes of its pod, and those of a node come within a few milliseconds of each other.
const gatherFor = 20 * time.Millisecond

// wait waits for something new, or until wake. It returns false when it is time
// to end.
func (l *loop) wait(wake time.Time) bool {
	var alarm <-chan time.Time
	if !wake.IsZero() {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-l.ctx.Done():
		return false
	case f := <-l.do:
		f()
	case <-l.nudge:
		l.gather()
	case <-alarm:
	}
	for { // whatever else has come meanwhile is one pass too
		select {
		case f := <-l.do:
			f()
		case <-l.nudge:
		default:
			return l.ctx.Err() == nil
		}
	}
}

// gather waits for further changes of pods and budgets. An answer ends it early.
func (l *loop) gather() {
	if l.drain == nil || !l.drain.pace.hasBegun() {
		return
	}
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	select {
	case <-l.ctx.Done():
	case f := <-l.do:
		f()
	case <-timer.C:
	}
}

// turn is one pass: it looks, decides and acts. It returns when to make the next one, whatever
// happens; zero for never.
func (l *loop) turn() time.Time {
	now := time.Now()
	return notice.Earliest(l.evaluate(now), l.tellOverride(now))
}

func (l *loop) evaluate(now time.Time) time.Time {
	if l.idle(now) {
		l.node.forget()
		return l.settledUntil
	}
	if until := l.awaitsClock(now); !until.IsZero() {
		return until
	}
	l.hearList(now)
	l.read(now)
	if yes, wake := l.awaitsRead(now); yes {
		return wake
	}
	ahead := l.ahead(now)
	next := drain.Decide(moved(l.view(now), -ahead), l.Policy)
	next.Wake = movedTime(next.Wake, ahead)
	l.follow(next.WatchPods, next.WatchBudgets)
	resume := l.evict(now, next.Steps)
	l.unlisted = ""
	if next.Node != nil {
		l.unlisted = next.Node.Annotations[contract.AnnotationNotices]
		if l.drain != nil {
			l.drain.unwritten = next.Report
		}
	}
	l.write(now, next)
	if next.Node == nil && !next.WatchPods && !l.node.dirty {
		l.settled, l.settledUntil = l.shows(), next.Wake
	}
	wake := notice.Earliest(next.Wake, resume)
	if next.Node != nil {
		wake = notice.Earliest(wake, l.node.writeWake(now))
	}
	if l.node.dirty {
		wake = notice.Earliest(wake, l.node.reads.wake(now))
	}
	return wake
}

func (l *loop) hearNotices(s imds.Sighting) {
	for _, n := range s.Notices {
		if !hasNotice(l.sighting.Notices, n.ID) {
			l.Logger.Info("notice received", "id", n.ID, "kind", n.Kind, "reason", n.Reason, "deadline", dated(n.Deadline))
		}
	}
	for _, n := range l.sighting.Notices {
		if !hasNotice(s.Notices, n.ID) {
			l.Logger.Info("notice no longer given by the instance metadata", "id", n.ID)
		}
	}
	l.sighted, l.sighting = true, s
}

// dated prints a moment that may not be known.
func dated(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.UTC().Format(time.RFC3339)
}

func hasNotice(list []notice.Notice, id string) bool {
	for _, n := range list {
		if n.ID == id {
			return true
		}
	}
	return false
}

// view is what is known now, by this node's clock.
func (l *loop) view(now time.Time) drain.View {
	v := drain.View{
		Now:        now,
		Node:       l.node.fleet(),
		Attached:   l.node.attached(),
		Notices:    l.sighting.Notices,
		Heard:      l.sighting.Heard,
		Unclear:    l.sighting.Unclear,
		Written:    l.node.written,
		Unwritable: l.node.unwritableSince(now),
		Unlisted:   l.unlisted,
	}
	v.NotYet = l.hearNotYet(v.Node.Annotations[contract.AnnotationDrainNotYet], now)
	if l.drain == nil {
		return v
	}
	seen := l.drain.pods.Seen()
	if seen.Known {
		l.drain.tries = l.drain.tries.Only(seen.UIDs().Has, now)
	}
	v.Pods, v.PodsKnown, v.Ending, v.Stirred, v.Back = seen.Pods, seen.Known, seen.Ending, seen.Stirred, seen.Back
	v.Budgets, v.Live = seen.Budgets, seen.Live
	v.Tries, v.Unwritten = l.drain.tries, l.drain.unwritten
	v.Crowded = l.drain.pace.crowdedWithin(crowdedForReports, now)
	return v
}

// hearList notes that the pods are known: how long that took tells of the server's time.
func (l *loop) hearList(now time.Time) {
	if d := l.drain; d != nil && !d.listed && d.pods.Seen().Known {
		d.listed = true
		d.pace.hear(now, now.Sub(d.begun))
	}
}

// hearNotYet returns when the scaler's word that a drain is to wait on arrived; zero where
// none stands. An agent that starts anew hears it when it first reads it.
func (l *loop) hearNotYet(word string, now time.Time) time.Time {
	if word != l.notYet {
		l.notYet, l.arrived = word, now
	}
	if word == "" {
		return time.Time{}
	}
	return l.arrived
}

// follow watches the pods, and the budgets of those namespaces, or stops. A
// namespace that was watched once is watched until the drain ends.
func (l *loop) follow(pods bool, namespaces []string) {
	switch {
	case pods && l.drain == nil:
		l.drain = l.beginDrain()
	case !pods && l.drain != nil:
		l.drain.cancel()
		l.drain = nil
		debug.FreeOSMemory() // it may be weeks until the next one
	}
	d := l.drain
	for _, namespace := range namespaces {
		if d == nil || d.guarded[namespace] {
			continue
		}
		d.guarded[namespace] = true
		l.running.Go(func() { l.WatchBudgets(d.ctx, namespace, d.pods) })
	}
}

func (l *loop) beginDrain() *underWay {
	ctx, cancel := context.WithCancel(l.ctx)
	list := evict.NewPods(func() {
		select {
		case l.nudge <- struct{}{}:
		default: // a pass is due anyway
		}
	})
	l.running.Go(func() { l.WatchPods(ctx, list) })
	return &underWay{ctx: ctx, cancel: cancel, begun: time.Now(), pods: list, pace: newPace(), guarded: map[string]bool{}}
}

// evict carries out as many steps as the pace admits; what is left stands in the
// next decision again. It returns when the pace admits more, if no answer has to
// come before that.
func (l *loop) evict(now time.Time, steps []drain.Evict) (resume time.Time) {
	d := l.drain
	if d == nil {
		return time.Time{}
	}
	sent := 0
	for ; sent < len(steps) && d.pace.admits(now); sent++ {
		step := steps[sent]
		d.pace.begin(now)
		l.running.Go(func() {
			answer := l.Evict(l.ctx, step)
			l.post(func() { l.learn(d, step, answer, now) })
		})
	}
	d.tries = d.tries.Send(now, steps[:sent]...)
	d.pace.held = sent < len(steps)
	if !d.pace.held {
		return time.Time{}
	}
	return d.pace.resumesAfter(now)
}

func (l *loop) learn(d *underWay, step drain.Evict, answer drain.Answer, begun time.Time) {
	now := time.Now()
	pod := step.Namespace + "/" + step.Name
	first := d.tries.Pods[step.UID].Count == 0
	d.tries = d.tries.Learn(step.UID, now, answer)
	d.pace.end(now, begun, answer)
	switch {
	case answer.Outcome == drain.Accepted:
		l.Logger.Info(map[bool]string{false: "evicted", true: "deleted"}[step.Delete], "pod", pod, "uid", step.UID, "overrides", step.Overrides)
		l.noteOverride(step)
	case answer.Outcome == drain.Gone:
		l.Logger.Debug("pod is gone", "pod", pod, "uid", step.UID)
	case first:
		l.Logger.Info("pod not evicted, retrying", "pod", pod, "outcome", answer.Outcome, "budget", answer.Budget, "message", answer.Message)
	default:
		l.Logger.Debug("pod not evicted, retrying", "pod", pod, "outcome", answer.Outcome, "budget", answer.Budget, "message", answer.Message)
	}
}
