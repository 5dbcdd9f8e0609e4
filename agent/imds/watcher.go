package imds

import (
	"context"
	"errors"
	"log/slog"
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
	// Notices is not there, but for what the Unclear paths may mean.
	Heard bool
	// Unclear are the paths that have said nothing yet that is understood. Such a
	// body, a state that AWS added after this was written as it may be, neither
	// begins anything nor ends what was heard before.
	Unclear []notice.SourceName
	// ClockAhead is how far the clock of this node is ahead of that of the metadata
	// service, by which AWS dates everything; negative where it is behind. Less than
	// five seconds count as none, and it changes only when it moves by more.
	ClockAhead time.Duration
}

// UsualInterval is the pace at which the quickest paths are read if nothing
// else is said.
const UsualInterval = 5 * time.Second

const (
	pathInstanceID = "instance-id"
	pathLifeCycle  = "instance-life-cycle"
	onDemand       = "on-demand"
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
	life  life
	clock clock
	// unwell is since when the service does not answer as it should; zero while
	// it does.
	unwell time.Time
	// puzzled are the paths whose last body was not understood.
	puzzled map[notice.SourceName]bool
	seen    Sighting
}

// life is how the life cycle of the instance becomes known.
type life struct {
	known    bool
	due      time.Time
	failures int
}

// NewWatcher returns a watcher that reads the quickest paths every interval and
// the others in proportion; 0 is UsualInterval.
func NewWatcher(read Read, interval time.Duration, logger *slog.Logger) *Watcher {
	w := &Watcher{
		read: read, logger: logger, pace: 1,
		puzzled: map[notice.SourceName]bool{},
	}
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
		w.recover()
		if now := w.sighting(); !reflect.DeepEqual(now, w.seen) {
			w.seen = now
			saw(now)
		}
	}
}

// learn finds out which instance this is, and whether it is a spot instance. It
// returns false when ctx ended.
func (w *Watcher) learn(ctx context.Context) bool {
	for failures := 1; w.instanceID() == ""; failures++ {
		id, err := w.ask(ctx, pathInstanceID)
		if err == nil {
			w.SetInstance(strings.TrimSpace(id.Body))
			break
		}
		if !w.pause(ctx, time.Now().Add(w.pauseBefore(UsualInterval, failures))) {
			return false
		}
	}
	if !w.life.known && !time.Now().Before(w.life.due) {
		w.learnLife(ctx)
	}
	return ctx.Err() == nil
}

// learnLife leaves out the paths of spot instances where the instance is none.
// While it is not known they are read.
func (w *Watcher) learnLife(ctx context.Context) {
	answer, err := w.ask(ctx, pathLifeCycle)
	if err != nil && !errors.Is(err, ErrAbsent) {
		w.life.failures++
		w.life.due = time.Now().Add(w.pauseBefore(UsualInterval, w.life.failures))
		return
	}
	w.life = life{known: true}
	spot := strings.TrimSpace(answer.Body) != onDemand
	w.logger.Info("reading notices from the instance metadata", "instance", w.instanceID(), "spot", spot)
	if spot {
		return
	}
	w.paths = slices.DeleteFunc(w.paths, func(p *path) bool { return p.SpotOnly })
}

// next is the path that is due first.
func (w *Watcher) next() *path {
	return slices.MinFunc(w.paths, func(a, b *path) int { return a.due.Compare(b.due) })
}

// ask reads a path. It logs when the service begins to fail, and what an answer
// tells of the clocks.
func (w *Watcher) ask(ctx context.Context, path string) (Answer, error) {
	answer, err := w.read(ctx, path)
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if unanswered(err) && w.unwell.IsZero() {
		w.unwell = time.Now()
		w.logger.Warn("instance metadata cannot be read, trying on", "err", err)
	}
	if w.clock.compare(answer.Date, time.Now()) {
		w.logger.Warn("this node's clock is ahead of that of the metadata service, and is corrected by this much", "ahead", w.clock.ahead)
	}
	return answer, err
}

func unanswered(err error) bool { return err != nil && !errors.Is(err, ErrAbsent) }

// recover logs when every path answers again.
func (w *Watcher) recover() {
	silent := func(p *path) bool { return p.silent }
	if w.unwell.IsZero() || w.life.failures > 0 || slices.ContainsFunc(w.paths, silent) {
		return
	}
	w.logger.Info("instance metadata can be read again", "after", time.Since(w.unwell).Round(time.Second))
	w.unwell = time.Time{}
}

func (w *Watcher) sighting() Sighting {
	s := Sighting{Heard: w.life.known, ClockAhead: w.clock.ahead}
	for _, p := range w.paths {
		s.Heard = s.Heard && p.heard
		s.Notices = append(s.Notices, p.notices...)
		if p.heard && !p.understood {
			s.Unclear = append(s.Unclear, p.Path)
		}
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
