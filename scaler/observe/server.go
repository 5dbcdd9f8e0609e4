package observe

import (
	"context"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
)

const (
	// serverEvery is how often the API server is asked what it is: an upgrade is
	// rare, and breaks the watches too.
	serverEvery = 10 * time.Minute
	// serverAgain is how soon after a question that failed, or after the last one
	// where a watch broke, the next one is; twice as long after each more.
	serverAgain     = 500 * time.Millisecond
	serverAgainMost = 10 * time.Second
)

// server knows the version of the API server, and whether it serves devices.
type server struct {
	api discovery.DiscoveryInterface
	// changed is called when the version, or what is served, became another.
	changed func()
	// watchDevices watches until its context ends; forgetDevices empties what it
	// has filled.
	watchDevices  func(context.Context)
	forgetDevices func()
	// refused takes the outcome of every question.
	refused *refusal
	// broke wakes for another question.
	broke chan struct{}

	mu      sync.Mutex
	version string
	asked   bool
	devices bool
}

// watchBroke asks again: behind the address may be another server now.
func (s *server) watchBroke() {
	select {
	case s.broke <- struct{}{}:
	default:
	}
}

func (s *server) run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	stop := func() {}
	defer func() { stop() }()
	again := serverAgain
	for {
		pause := serverEvery
		moved, err := s.ask(ctx)
		switch {
		case err != nil:
			pause, again = again, min(2*again, serverAgainMost)
		case moved:
			stop()
			watching.Wait()
			stop = s.follow(ctx, &watching)
			s.changed()
			fallthrough
		default:
			again = serverAgain
		}
		if !s.sleep(ctx, pause) {
			return
		}
	}
}

// follow begins to watch devices where they are served, and forgets them where
// they are not any more.
func (s *server) follow(ctx context.Context, watching *sync.WaitGroup) (stop func()) {
	if !s.servesDevices() {
		s.forgetDevices()
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	watching.Go(func() { s.watchDevices(ctx) })
	return stop
}

// sleep waits, not as long where a watch breaks; false says that ctx has ended.
func (s *server) sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(min(pause, serverAgain)):
	}
	select {
	case <-ctx.Done():
		return false
	case <-s.broke:
	case <-time.After(pause - min(pause, serverAgain)):
	}
	return true
}

// ask reports whether the server became another one. Without the right to ask, the
// newest rules hold that are known, as for an unknown version.
func (s *server) ask(ctx context.Context) (moved bool, err error) {
	version, devices, err := s.discover(ctx)
	s.refused.heard(err)
	if err != nil && !s.refused.lasts() {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil { // what was known stays
		moved, s.asked = !s.asked, true
		return moved, nil
	}
	moved = !s.asked || s.version != version || s.devices != devices
	s.version, s.devices, s.asked = version, devices, true
	return moved, nil
}

type discovered struct {
	version string
	devices bool
	err     error
}

// discover does not wait longer than ctx for a client that knows no contexts.
func (s *server) discover(ctx context.Context) (version string, devices bool, err error) {
	found := make(chan discovered, 1)
	go func() {
		info, err := s.api.ServerVersion()
		if err != nil {
			found <- discovered{err: err}
			return
		}
		_, err = s.api.ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
		if apierrors.IsNotFound(err) {
			found <- discovered{version: info.GitVersion}
			return
		}
		found <- discovered{info.GitVersion, err == nil, err}
	}()
	select {
	case <-ctx.Done():
		return "", false, ctx.Err()
	case d := <-found:
		return d.version, d.devices, d.err
	}
}

// latest returns the version, and whether anybody asked yet.
func (s *server) latest() (version string, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.asked
}

func (s *server) servesDevices() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.devices
}
