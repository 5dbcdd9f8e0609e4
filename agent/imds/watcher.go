package imds

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"windlass.dev/windlass/agent/notice"
)

// Sighting is what the instance metadata say, as far as is known.
type Sighting struct {
	// Notices that stand.
	Notices []notice.Notice
	// Heard says that every path has answered at least once: what is not among
	// Notices is not there.
	Heard bool
}

// UsualInterval is the pace at which the quickest paths are read if nothing
// else is said.
const UsualInterval = 5 * time.Second

const (
	pathInstanceID = "instance-id"
	pathLifeCycle  = "instance-life-cycle"
	onDemand       = "on-demand"

	// longestBackOff is the longest pause between two tries that fail.
	longestBackOff = 30 * time.Second
	// jitter is the share by which a pause may be shorter or longer, so that the
	// instances of a host do not ask in step.
	jitter = 0.1
)

// Watcher reads the paths of notice.Sources again and again, one after the
// other.
type Watcher struct {
	read   Read
	logger *slog.Logger
	// pace stretches every source's own interval.
	pace float64

	mu       sync.Mutex
	instance string

	paths []*path
	// spot is false once the instance is known not to be a spot instance.
	spot      bool
	lifeKnown bool
	// unwell: the service does not answer as it should.
	unwell      bool
	unwellSince time.Time
	seen        Sighting
}

// path is one source, and what it said last.
type path struct {
	notice.Source
	due      time.Time
	failures int
	heard    bool
	notices  []notice.Notice
	// complaint is the last error about the body, so that it is logged once.
	complaint string
}

// NewWatcher returns a watcher that reads the quickest paths every interval and
// the others in proportion; 0 is UsualInterval.
func NewWatcher(read Read, interval time.Duration, logger *slog.Logger) *Watcher {
	w := &Watcher{read: read, logger: logger, pace: 1, spot: true}
	if interval > 0 {
		w.pace = float64(interval) / float64(UsualInterval)
	}
	for _, s := range notice.Sources {
		w.paths = append(w.paths, &path{Source: s})
	}
	return w
}

// SetInstance names the instance, where somebody knows it before the metadata
// have told.
func (w *Watcher) SetInstance(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.instance == "" {
		w.instance = id
	}
}

func (w *Watcher) instanceID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instance
}

// Run reads until ctx ends, and tells saw whenever there is something new: at
// the latest when every path has answered once. A service that fails is asked
// less often, every 30 s at the least; what it said before stands until it says
// otherwise.
func (w *Watcher) Run(ctx context.Context, saw func(Sighting)) {
	for w.learn(ctx) && w.pause(ctx, w.next().due) {
		w.poll(ctx, w.next())
		if now := w.sighting(); !reflect.DeepEqual(now, w.seen) {
			w.seen = now
			saw(now)
		}
	}
}

// learn finds out which instance this is, and whether it is a spot instance. It
// returns false when ctx ended.
func (w *Watcher) learn(ctx context.Context) bool {
	for failures := 0; w.instanceID() == ""; failures++ {
		id, err := w.ask(ctx, pathInstanceID)
		if err == nil {
			w.SetInstance(strings.TrimSpace(id))
			break
		}
		if !w.pause(ctx, time.Now().Add(w.backOff(UsualInterval, failures+1))) {
			return false
		}
	}
	if !w.lifeKnown {
		w.learnLife(ctx)
	}
	return ctx.Err() == nil
}

// learnLife leaves out the paths of spot instances where the instance is none.
// Where it cannot be known they are read.
func (w *Watcher) learnLife(ctx context.Context) {
	life, err := w.ask(ctx, pathLifeCycle)
	if err != nil && !errors.Is(err, ErrAbsent) {
		return // asked again at the next turn
	}
	w.lifeKnown = true
	w.spot = strings.TrimSpace(life) != onDemand
	w.logger.Info("reading notices from the instance metadata", "instance", w.instanceID(), "spot", w.spot)
	if w.spot {
		return
	}
	w.paths = slices.DeleteFunc(w.paths, func(p *path) bool { return p.SpotOnly })
}

// next is the path that is due first.
func (w *Watcher) next() *path {
	return slices.MinFunc(w.paths, func(a, b *path) int { return a.due.Compare(b.due) })
}

func (w *Watcher) poll(ctx context.Context, p *path) {
	body, err := w.ask(ctx, string(p.Path))
	if errors.Is(err, ErrAbsent) {
		p.say(nil)
		w.schedule(p)
		return
	}
	if err == nil {
		err = w.understand(p, body)
	}
	if err != nil {
		p.failures++
	}
	w.schedule(p)
}

// understand reads a body. One that cannot be understood says nothing, and so
// changes nothing.
func (w *Watcher) understand(p *path, body string) error {
	notices, err := p.Parse(w.instanceID(), body)
	if err == nil {
		p.say(notices)
		return nil
	}
	if p.complaint != err.Error() {
		p.complaint = err.Error()
		w.logger.Warn("instance metadata not understood", "err", err)
	}
	return err
}

func (p *path) say(notices []notice.Notice) {
	p.heard, p.failures, p.complaint, p.notices = true, 0, "", notices
}

func (w *Watcher) schedule(p *path) {
	pause := time.Duration(float64(p.Every) * w.pace)
	p.due = time.Now().Add(w.backOff(pause, p.failures))
}

// backOff is the pause after that many failures in a row, with jitter.
func (w *Watcher) backOff(pause time.Duration, failures int) time.Duration {
	if failures > 1 {
		pause = min(pause<<min(failures-1, 10), max(pause, longestBackOff))
	}
	pause = time.Duration(float64(pause) * (1 + jitter*(2*rand.Float64()-1)))
	if failures > 0 {
		pause = min(pause, longestBackOff)
	}
	return pause
}

// ask reads a path, and logs when the service begins to fail and when it is
// well again, once each.
func (w *Watcher) ask(ctx context.Context, path string) (string, error) {
	body, err := w.read(ctx, path)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	failed := err != nil && !errors.Is(err, ErrAbsent)
	switch {
	case failed && !w.unwell:
		w.unwell, w.unwellSince = true, time.Now()
		w.logger.Warn("instance metadata cannot be read, trying on", "err", err)
	case !failed && w.unwell:
		w.unwell = false
		w.logger.Info("instance metadata can be read again", "after", time.Since(w.unwellSince).Round(time.Second))
	}
	return body, err
}

func (w *Watcher) sighting() Sighting {
	s := Sighting{Heard: w.lifeKnown}
	for _, p := range w.paths {
		s.Heard = s.Heard && p.heard
		s.Notices = append(s.Notices, p.notices...)
	}
	return s
}

// pause waits until a moment; it returns false when ctx ended before.
func (w *Watcher) pause(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
