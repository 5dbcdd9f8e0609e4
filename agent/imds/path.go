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

// path is one source, and what it has said. Its own goroutine writes that, under the lock
// of the watcher.
type path struct {
	notice.Source
	said
}

// said is what a path has said.
type said struct {
	// heard: it has answered; understood: with something that could be read, or it has
	// lacked the path for as often as that has to be said.
	heard, understood bool
	// silent: it did not answer when it was asked last, and failures how often in a row.
	silent   bool
	failures int
	// missing is how many answers in a row lacked the path.
	missing int
	notices []notice.Notice
	// history is the last body of Source.History that was understood.
	history string
}

// follow asks a path again and again until ctx ends.
func (w *Watcher) follow(ctx context.Context, p *path) {
	for {
		now := w.hear(ctx, p.Source, p.said)
		if ctx.Err() != nil || !pause(ctx, w.take(p, now)) {
			return
		}
	}
}

// take notes what a path has said, and says for how long to leave it alone. One whose body
// is not understood does not fail: the next one may be, and is read in time.
func (w *Watcher) take(p *path, now said) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.silent {
		now.failures++
	} else {
		now.heard, now.failures = true, 0
	}
	p.said = now
	w.recover()
	w.tell()
	every := p.Every
	if p.SpotOnly && w.life.onDemand {
		every = max(every, onDemandEvery)
	}
	return w.pauseBefore(every, now.failures)
}

// hear asks a path that has said something before. What cannot be read or understood ends
// no notice, and is logged already.
func (w *Watcher) hear(ctx context.Context, s notice.Source, before said) said {
	now := before
	answer, err := w.ask(ctx, string(s.Path))
	now.silent = unanswered(err)
	switch {
	case errors.Is(err, ErrAbsent):
		w.complain(s.Path, nil)
		if now.missing++; now.missing >= s.Missing {
			now.notices, now.understood = nil, true
			if s.History != nil {
				w.complain(s.History.Path, nil) // it is not asked
			}
		}
		return now
	case err != nil:
		return now
	}
	now.missing = 0
	notices, err := s.Parse(w.instanceID(), answer.Body)
	w.complain(s.Path, err)
	if err != nil {
		notices = notice.Standing(append(notices, before.notices...)...)
	}
	now.notices = notice.Interruptions(notices, before.notices)
	if unknown := w.leaveOut(ctx, s, &now); err == nil && unknown == nil {
		now.understood = true
	}
	return now
}

// leaveOut leaves out the notices that are over by the history. If that does not answer
// now, or is missing, what it said before holds. The error says that it was not understood.
func (w *Watcher) leaveOut(ctx context.Context, s notice.Source, now *said) error {
	if s.History == nil {
		return nil
	}
	if len(now.notices) == 0 {
		w.complain(s.History.Path, nil) // it is not asked
		return nil
	}
	answer, err := w.ask(ctx, string(s.History.Path))
	now.silent = unanswered(err)
	if err == nil {
		now.notices, err = s.History.Without(now.notices, answer.Body)
		w.complain(s.History.Path, err)
	}
	if err == nil {
		now.history = answer.Body
		return nil
	}
	if now.history != "" {
		// It was understood when it was kept.
		now.notices, _ = s.History.Without(now.notices, now.history)
	}
	if errors.Is(err, ErrAbsent) {
		w.complain(s.History.Path, nil)
		return nil
	}
	return err
}

// complain logs once that the body of a path is not understood, until one is.
func (w *Watcher) complain(path notice.SourceName, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !w.puzzled[path] {
		w.logger.Warn("instance metadata not understood", "err", err)
	}
	if w.puzzled[path] = err != nil; err != nil {
		w.ail(err)
	}
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
