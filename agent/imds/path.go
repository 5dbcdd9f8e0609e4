package imds

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"windlass.dev/windlass/agent/notice"
)

const (
	// longestBackOff is the longest pause between two tries that fail.
	longestBackOff = 30 * time.Second
	// jitter is the share by which a pause may be shorter, so that the instances
	// of a host do not ask in step. None is longer: a notice is seen within the
	// period of its path.
	jitter = 0.1
)

// path is one source, and what it said last.
type path struct {
	notice.Source
	due      time.Time
	failures int
	// heard: it has answered; understood: with something that could be read.
	heard, understood bool
	// silent: it did not answer when it was asked last.
	silent  bool
	notices []notice.Notice
	// history is the last body of Source.History that was understood.
	history string
}

// poll asks the path that is due, and says when to do so again. One whose body is not
// understood does not fail: the next one may be, and is read in time.
func (w *Watcher) poll(ctx context.Context, p *path) {
	err := w.hear(ctx, p)
	p.understood = p.understood || err == nil
	if p.silent {
		p.failures++
	} else {
		p.heard, p.failures = true, 0
	}
	p.due = time.Now().Add(w.pauseBefore(p.Every, p.failures))
}

// hear asks a path. What cannot be read or understood ends no notice, and the
// error is logged already.
func (w *Watcher) hear(ctx context.Context, p *path) error {
	answer, err := w.ask(ctx, string(p.Path))
	p.silent = unanswered(err)
	if errors.Is(err, ErrAbsent) {
		p.notices = nil
		return nil
	}
	if err != nil {
		return err
	}
	notices, err := p.Parse(w.instanceID(), answer.Body)
	w.complain(p.Path, err)
	if err != nil {
		notices = notice.Standing(append(notices, p.notices...)...)
	}
	var unknown error
	p.notices, unknown = w.withoutHistory(ctx, p, notices)
	return errors.Join(err, unknown)
}

// withoutHistory leaves out the notices that are over by the history. If that
// does not answer now, what it said before holds.
func (w *Watcher) withoutHistory(ctx context.Context, p *path, notices []notice.Notice) ([]notice.Notice, error) {
	if p.History == nil || len(notices) == 0 {
		return notices, nil
	}
	answer, err := w.ask(ctx, string(p.History.Path))
	p.silent = unanswered(err)
	if errors.Is(err, ErrAbsent) {
		return notices, nil
	}
	if err == nil {
		notices, err = p.History.Without(notices, answer.Body)
		w.complain(p.History.Path, err)
	}
	if err == nil {
		p.history = answer.Body
		return notices, nil
	}
	if p.history != "" {
		// It was understood when it was kept.
		notices, _ = p.History.Without(notices, p.history)
	}
	return notices, err
}

// complain logs once that the body of a path is not understood, until one is.
func (w *Watcher) complain(path notice.SourceName, err error) {
	if err != nil && !w.puzzled[path] {
		w.logger.Warn("instance metadata not understood", "err", err)
	}
	w.puzzled[path] = err != nil
}

// pauseBefore the next try, where every is the usual pause and so many tries
// have failed in a row. What failed is tried again soon, and then less and less
// often.
func (w *Watcher) pauseBefore(every time.Duration, failures int) time.Duration {
	pause := w.paced(every)
	if failures > 0 {
		pause = min(w.paced(UsualInterval)<<min(failures-1, 10), longestBackOff)
	}
	return time.Duration(float64(pause) * (1 - jitter*rand.Float64()))
}

// paced is a pause of notice.Sources as this watcher was asked to stretch it.
func (w *Watcher) paced(d time.Duration) time.Duration { return time.Duration(float64(d) * w.pace) }
