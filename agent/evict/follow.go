package evict

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/pkg/kube"
)

// source is what a watch is made of.
type source struct {
	// what is watched, for the log.
	what string
	// begin reads the whole and says at which version it is; nil where the watch
	// itself begins with what there is.
	begin func(context.Context) (version string, err error)
	// open opens the watch at a version; "" is whatever there is now.
	open func(ctx context.Context, version string) (watch.Interface, error)
	// take is called with each change.
	take func(watch.Event)
	// broke is called when the watch has failed, and back when it is open again after
	// that; each may be nil.
	broke, back func()
	// spare: nothing depends on it. Where the right to it is missing, or it is too large, it
	// is asked for every few minutes only.
	spare bool

	// lost: it failed, and was not opened since. A version that has expired is no
	// failure of the server.
	lost bool
}

// errExpired means that the server no longer knows the version at which the
// watch was to go on.
var errExpired = errors.New("the version of the watch has expired")

const (
	// firstPause and longestPause bound the pauses between tries that fail.
	firstPause, longestPause = 200 * time.Millisecond, 5 * time.Second
	// longestSpared is the longest of them for what is spare.
	longestSpared = 5 * time.Minute
	// overloadPause is the least of them after the server had no time for us.
	overloadPause = 4 * time.Second
	// healthy is how long a watch lives that was no failure. One that ends before is
	// one, in good order or not: a proxy that ends them all at once would be asked
	// without end.
	healthy = 10 * time.Second
)

// follow keeps a watch open until ctx ends. A watch that ends is resumed where
// it ended; where the server no longer knows that point, all is read anew.
func follow(ctx context.Context, s *source, logger *slog.Logger) {
	version, failures := "", 0
	for ctx.Err() == nil {
		opened := time.Now()
		var err error
		version, err = s.follow(ctx, version)
		if ctx.Err() != nil {
			return
		}
		s.lose(err)
		short := time.Since(opened) <= healthy
		if !short {
			failures = 0
		}
		if short || err != nil {
			failures++
		}
		logger.Debug("watch ended", "of", s.what, "err", err, "failures", failures)
		if failures == warnAt {
			logger.Warn("watch failed repeatedly, retrying", "of", s.what, "err", err)
		}
		sleep(ctx, s.pause(failures, err))
	}
}

func (s *source) pause(failures int, err error) time.Duration {
	if s.spare && (apierrors.IsForbidden(err) || kube.TooLarge(err)) {
		return pause(failures, longestSpared, err)
	}
	return Pause(failures, err)
}

// lose notes that the watch has ended with err.
func (s *source) lose(err error) {
	if err == nil || errors.Is(err, errExpired) {
		return
	}
	if !s.lost && s.broke != nil {
		s.broke()
	}
	s.lost = true
}

// warnAt is the number of failures in a row that people should hear of.
const warnAt = 3

// Pause is how long to wait after that many failures in a row, the last of which
// is err: longer each time, with jitter, so that the agents of a cluster do not
// come back to a restarted API server in one moment; and at once for seconds where
// the server has no time, because to ask on is what keeps it from having any.
func Pause(failures int, err error) time.Duration { return pause(failures, longestPause, err) }

func pause(failures int, longest time.Duration, err error) time.Duration {
	const doublings = 20 // more than the longest takes
	pause := min(firstPause<<min(max(failures-1, 0), doublings), longest)
	if overloaded(err) {
		pause = max(pause, overloadPause)
	}
	return pause/2 + rand.N(pause/2)
}

// overloaded reports whether the server did not answer in time, or said that it cannot.
func overloaded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// follow opens one watch and takes what comes until it ends. It returns the
// version at which to go on; an error says that it did not end in good order.
func (s *source) follow(ctx context.Context, version string) (string, error) {
	if version == "" && s.begin != nil {
		var err error
		if version, err = s.begin(ctx); err != nil {
			return "", fmt.Errorf("listing %s: %w", s.what, err)
		}
	}
	w, err := s.open(ctx, version)
	if expired(err) {
		return "", errExpired
	}
	if err != nil {
		return version, fmt.Errorf("watching %s: %w", s.what, err)
	}
	defer w.Stop()
	if s.lost && s.back != nil {
		s.back()
	}
	s.lost = false
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			err := apierrors.FromObject(event.Object)
			if expired(err) {
				return "", errExpired
			}
			return version, fmt.Errorf("watching %s: %w", s.what, err)
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return "", fmt.Errorf("watching %s: unexpected %T: %w", s.what, event.Object, err)
		}
		version = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			s.take(event)
		}
	}
	return version, nil
}

func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// watchSeconds is how long the server keeps a watch open: between 45 and 60
// minutes, so that a thousand agents do not come back in one moment.
func watchSeconds() string { return strconv.Itoa(45*60 + rand.IntN(15*60)) }
