package imds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
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
	// Heard means that a path has answered: what is not among Notices is not there, but for
	// what the Unclear paths may mean.
	Heard bool
	// Unclear are the paths that have said nothing yet that is understood: they gave a
	// body, a state that AWS added after this was written as it may be, which neither
	// begins anything nor ends what was heard before; or they were missing, but not yet
	// as often as that counts (notice.Source.Missing); or they did not answer at all.
	Unclear []notice.SourceName
	// ClockAhead is how far the clock of this node is ahead of that of the metadata
	// service, by which AWS dates everything; negative where it is behind. Less than
	// five seconds count as none, and it changes only when it moves by more.
	ClockAhead time.Duration
	// Dated means that ClockAhead is known: an answer had a date.
	Dated bool
}

// UsualInterval is the pace at which the quickest paths are read if nothing
// else is said.
const UsualInterval = 5 * time.Second

const (
	pathInstanceID = "instance-id"
	pathLifeCycle  = "instance-life-cycle"
	onDemand       = "on-demand"
	// onDemandEvery is how often the paths of spot instances are read where the instance
	// is said to be none: amazon-ec2-metadata-mock says so, and interrupts it.
	onDemandEvery = time.Minute
)

// What the service says of the instance must look like it: a page of a captive portal, or
// of a proxy, is asked for again.
var (
	instanceIDs = regexp.MustCompile(`^i-[0-9a-zA-Z]{1,32}$`)
	lifeCycles  = regexp.MustCompile(`^[a-z][a-z-]{0,31}$`)
)

// Watcher reads the paths of notice.Sources again and again, each at its own pace and
// without waiting for any other.
type Watcher struct {
	read   Read
	logger *slog.Logger
	// pace stretches every source's own interval.
	pace float64
	// named is closed when the instance is known, and news is full when there is something
	// to tell.
	named, news chan struct{}
	paths       []*path
	// Unread, if set, is told that for a while some path has not been read or not understood, since
	// when and why, and again each hour for as long as it lasts.
	Unread func(since time.Time, why error)

	mu       sync.Mutex // guards what follows, and what paths have said
	instance string
	life     life
	clock    clock
	// unwell is since when the service does not answer as it should, and why the last
	// trouble; zero while it does.
	unwell time.Time
	why    error
	// puzzled are the paths whose last body was not understood.
	puzzled map[notice.SourceName]bool
}

// life is what is known of the life cycle of the instance: whether it is on demand, and
// how often in a row that could not be read.
type life struct {
	onDemand bool
	failures int
}

// NewWatcher returns a watcher that reads the quickest paths every interval and
// the others in proportion; 0 is UsualInterval.
func NewWatcher(read Read, interval time.Duration, logger *slog.Logger) *Watcher {
	w := &Watcher{
		read: read, logger: logger, pace: 1,
		named: make(chan struct{}), news: make(chan struct{}, 1),
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

// SetInstance names the instance, where it is known before the metadata answer.
func (w *Watcher) SetInstance(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.instance == "" && strings.HasPrefix(id, "i-") { // others are no instances of EC2
		w.instance = id
		close(w.named)
	}
}

func (w *Watcher) instanceID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instance
}

// Run reads until ctx ends, and calls saw whenever there is something new: at
// the latest when every path has answered once. A service that fails is asked
// less often, every 30 s at the least; what it said before stands until it says
// otherwise.
func (w *Watcher) Run(ctx context.Context, saw func(Sighting)) {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { w.watchOver(ctx) })
	if !w.learnInstance(ctx) {
		return
	}
	asking.Go(func() { w.learnLife(ctx) })
	for _, p := range w.paths {
		asking.Go(func() { w.follow(ctx, p) })
	}
	var seen Sighting
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.news:
		}
		if now := w.sighting(); !reflect.DeepEqual(now, seen) {
			seen = now
			saw(now)
		}
	}
}

const (
	// unreadFor is how long a trouble lasts before it is told, and retoldEvery how often it is told
	// again: Events are forgotten after an hour.
	unreadFor   = 2 * time.Minute
	retoldEvery = time.Hour
)

// watchOver tells Unread of a trouble that lasts.
func (w *Watcher) watchOver(ctx context.Context) {
	if w.Unread == nil {
		return
	}
	var told time.Time
	for pause(ctx, unreadFor/4) {
		w.mu.Lock()
		since, why := w.unwell, w.why
		w.mu.Unlock()
		now := time.Now()
		switch {
		case since.IsZero():
			told = time.Time{}
		case now.Sub(since) >= unreadFor && now.Sub(told) >= retoldEvery:
			told = now
			w.Unread(since, why)
		}
	}
}

// learnInstance finds out which instance this is. It returns false when ctx ended.
func (w *Watcher) learnInstance(ctx context.Context) bool {
	for failures := 1; w.instanceID() == ""; failures++ {
		id, err := w.word(ctx, pathInstanceID, instanceIDs)
		if err == nil {
			w.SetInstance(id)
			break
		}
		if errors.Is(err, ErrAbsent) {
			w.complain(pathInstanceID, fmt.Errorf("%s: %w", pathInstanceID, err)) // whatever this is, EC2's service it is not
		}
		timer := time.NewTimer(w.pauseBefore(UsualInterval, failures))
		select {
		case <-ctx.Done():
		case <-w.named:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// learnLife finds out whether the instance is a spot instance. While it is not known it is
// taken for one.
func (w *Watcher) learnLife(ctx context.Context) {
	for failures := 1; ; failures++ {
		cycle, err := w.word(ctx, pathLifeCycle, lifeCycles)
		if ctx.Err() != nil {
			return
		}
		if err == nil || errors.Is(err, ErrAbsent) {
			w.logger.Info("reading notices from the instance metadata", "instance", w.instanceID(), "spot", cycle != onDemand)
			w.live(life{onDemand: cycle == onDemand})
			return
		}
		w.live(life{failures: failures})
		if !pause(ctx, w.pauseBefore(UsualInterval, failures)) {
			return
		}
	}
}

func (w *Watcher) live(l life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life = l
	w.recover()
}

// word reads a path that has one word of this form.
func (w *Watcher) word(ctx context.Context, path string, form *regexp.Regexp) (string, error) {
	answer, err := w.ask(ctx, path)
	if err != nil {
		return "", err
	}
	word := strings.TrimSpace(answer.Body)
	if !form.MatchString(word) {
		err = fmt.Errorf("%s: %s is none", path, notice.Quote(answer.Body))
	}
	w.complain(notice.SourceName(path), err)
	return word, err
}

// ask reads a path. It logs when the service begins to fail, and reads the clocks' difference
// from the answer.
func (w *Watcher) ask(ctx context.Context, path string) (Answer, error) {
	answer, err := w.read(ctx, path)
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if unanswered(err) && w.ail(err) {
		w.logger.Warn("reading the instance metadata failed, retrying", "err", err)
	}
	if w.clock.compare(answer.Date, time.Now()) {
		w.logger.Warn("node clock differs from the instance metadata service, corrected", "ahead", w.clock.ahead)
	}
	return answer, err
}

// ail notes a trouble; it says whether that is the first.
func (w *Watcher) ail(why error) (first bool) {
	first = w.unwell.IsZero()
	if first {
		w.unwell = time.Now()
	}
	w.why = why
	return first
}

func unanswered(err error) bool { return err != nil && !errors.Is(err, ErrAbsent) }

// recover logs when every path answers again, and is understood.
func (w *Watcher) recover() {
	silent := func(p *path) bool {
		return p.silent || w.puzzled[p.Path] || p.History != nil && w.puzzled[p.History.Path]
	}
	if w.unwell.IsZero() || w.life.failures > 0 || slices.ContainsFunc(w.paths, silent) {
		return
	}
	w.logger.Info("reading the instance metadata works again", "after", time.Since(w.unwell).Round(time.Second))
	w.unwell = time.Time{}
}

// tell has Run look for news.
func (w *Watcher) tell() {
	select {
	case w.news <- struct{}{}:
	default: // it will look anyway
	}
}

func (w *Watcher) sighting() Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Sighting{ClockAhead: w.clock.ahead, Dated: w.clock.dated}
	for _, p := range w.paths {
		s.Heard = s.Heard || p.heard
		s.Notices = append(s.Notices, p.notices...)
		if !p.understood {
			s.Unclear = append(s.Unclear, p.Path)
		}
	}
	return s
}

// pause waits for so long; it returns false when ctx ended before.
func pause(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
