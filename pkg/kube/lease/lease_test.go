package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// store is the Lease object on the server.
type store struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	down    bool // calls hang until they time out, as behind a broken network

	latency time.Duration // of each call
}

func (s *store) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// take is another process that takes the lease without asking.
func (s *store) take(identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.HolderIdentity = identity
	s.version++
}

func (s *store) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return ""
	}
	return s.record.HolderIdentity
}

// lock is one replica's access to the store, with the optimistic locking of
// the API server.
type lock struct {
	store    *store
	identity string
	version  int
}

var _ resourcelock.Interface = (*lock)(nil)

func (l *lock) call(ctx context.Context, f func() error) error {
	time.Sleep(l.store.latency)
	l.store.mu.Lock()
	down := l.store.down
	l.store.mu.Unlock()
	if down {
		<-ctx.Done()
		return ctx.Err()
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return f()
}

func (l *lock) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.call(ctx, func() error {
		if l.store.record == nil {
			return apierrors.NewNotFound(leases, "l")
		}
		l.version = l.store.version
		copied := *l.store.record
		record = &copied
		raw, err = json.Marshal(copied)
		return err
	})
	return record, raw, err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.call(ctx, func() error {
		if l.store.record != nil {
			return apierrors.NewAlreadyExists(leases, "l")
		}
		l.store.record, l.store.version, l.version = &record, 1, 1
		return nil
	})
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.call(ctx, func() error {
		if l.version != l.store.version {
			return apierrors.NewConflict(leases, "l", errors.New("changed"))
		}
		l.store.version++
		l.store.record, l.version = &record, l.store.version
		return nil
	})
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "test/l" }
func config(identity string) Config {
	return Config{Namespace: "test", Name: "l", Identity: identity, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// replica runs Lead in the background.
type replica struct {
	began, ctxEnded time.Time
	outcome         chan error
	stop            context.CancelFunc
}

// start lets a replica compete; its work ends windUp after its ctx did.
func start(t *testing.T, s *store, identity string, windUp time.Duration) *replica {
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{outcome: make(chan error, 1), stop: cancel}
	go func() {
		r.outcome <- lead(ctx, config(identity), func(ctx context.Context) error {
			r.began = time.Now()
			<-ctx.Done()
			r.ctxEnded = time.Now()
			time.Sleep(windUp)
			return ctx.Err()
		}, &lock{store: s, identity: identity})
	}()
	return r
}

// pass lets time go by, and everybody do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheNextBeginsWhenTheLeaderHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		first := start(t, s, "a", 3*time.Second)
		pass(time.Second)
		second := start(t, s, "b", 0)
		pass(time.Minute)
		if first.began.IsZero() || !second.began.IsZero() {
			t.Fatalf("a began %v, b began %v: want only a", first.began, second.began)
		}

		first.stop()
		stopped := time.Now()
		if err := <-first.outcome; !errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
			t.Errorf("outcome of a: %v, want the error of its work", err)
		}
		if wound := time.Since(stopped); wound != 3*time.Second {
			t.Errorf("a returned after %s, want when its work did, 3s", wound)
		}
		const look = DefaultRetry * 22 / 10 // client-go's jitter at the most
		pass(look)
		if gap := second.began.Sub(stopped); gap < 3*time.Second || gap > 3*time.Second+look {
			t.Errorf("b began %s after a was stopped, want after a's work ended and long before its lease ran out", gap)
		}
		second.stop()
		<-second.outcome
		if holder := s.holder(); holder != "" {
			t.Errorf("lease is still held by %q", holder)
		}
	})
}

// The work of a leader that cannot reach the server ends before anybody else
// may begin.
func TestUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		r := start(t, s, "a", 0)
		pass(time.Minute)
		s.setDown(true)
		down := time.Now()
		if err := <-r.outcome; err != ErrLost {
			t.Errorf("outcome %v, want ErrLost", err)
		}
		if after := r.ctxEnded.Sub(down); after > DefaultRenew {
			t.Errorf("work ended %s after the server went away, want at most %s", after, DefaultRenew)
		}

		s.setDown(false)
		again := start(t, s, "a", 0)
		pass(DefaultDuration + 2*DefaultRetry)
		if again.began.IsZero() {
			t.Error("could not lead again after the lease was lost")
		}
		again.stop()
		<-again.outcome
	})
}

// A replica that waits is not stuck in a call that nobody answers: it leads when the lease is free.
func TestUnansweredWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		leader := start(t, s, "a", 0)
		pass(time.Second)
		waiting := start(t, s, "b", 0)
		pass(time.Minute)
		s.setDown(true)
		pass(DefaultRetry * 2) // its call hangs
		s.setDown(false)
		leader.stop()
		<-leader.outcome
		pass(DefaultRenew + DefaultDuration + 2*DefaultRetry)
		if waiting.began.IsZero() {
			t.Error("it does not lead")
		}
		waiting.stop()
		<-waiting.outcome
	})
}

func TestTakenBySomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		r := start(t, s, "a", time.Second)
		pass(time.Minute)
		s.take("thief")
		taken := time.Now()
		if err := <-r.outcome; err != ErrLost {
			t.Errorf("outcome %v, want ErrLost", err)
		}
		if after := r.ctxEnded.Sub(taken); after > 2*DefaultRetry {
			t.Errorf("work ended %s after the lease was taken, want at the next renewal", after)
		}
		if holder := s.holder(); holder != "thief" {
			t.Errorf("lease is held by %q, want it left alone", holder)
		}
	})
}

func TestStoppedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		leader := start(t, s, "a", 0)
		pass(time.Second)
		waiting := start(t, s, "b", 0)
		pass(time.Second)
		waiting.stop()
		if err := <-waiting.outcome; err != nil {
			t.Errorf("outcome of the one that waits: %v", err)
		}
		if holder := s.holder(); holder != "a" {
			t.Errorf("lease is held by %q, want a", holder)
		}
		leader.stop()
		<-leader.outcome
	})
}

// A leader that was killed and starts again under its name does not wait for
// its own lease to run out.
func TestRestartUnderTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		s := &store{version: 1, record: &resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}}
		r := start(t, s, "a", 0)
		pass(time.Minute)
		if waited := r.began.Sub(now); waited > time.Second {
			t.Errorf("waited %s for itself", waited)
		}
		r.stop()
		<-r.outcome
	})
}

func TestOutcome(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		lost bool
		err  error
		want string
	}{
		{false, nil, "<nil>"},
		{false, broken, "broken"},
		{true, nil, "the leader lease was lost"},
		{true, context.Canceled, "the leader lease was lost"},
		{true, broken, "the leader lease was lost: broken"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tc.lost {
			cancel(ErrLost)
		}
		if got := fmt.Sprint(outcome(ctx, tc.err)); got != tc.want {
			t.Errorf("lost %v, err %v: got %s, want %s", tc.lost, tc.err, got, tc.want)
		}
		cancel(nil)
	}
}

func TestWorkEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		broken := errors.New("broken")
		err := lead(t.Context(), config("a"), func(context.Context) error { return broken }, &lock{store: s, identity: "a"})
		if err != broken {
			t.Errorf("outcome %v, want the error of the work", err)
		}
		if holder := s.holder(); holder != "" {
			t.Errorf("lease is still held by %q", holder)
		}
	})
}

// The end of a term as planned is no error; one that was not is told.
func TestLogOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		loud := config("a")
		loud.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := &store{}
		if err := lead(t.Context(), loud, func(context.Context) error { return nil }, &lock{store: s, identity: "a"}); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); !strings.Contains(got, "leading") || strings.Contains(got, "ERROR") || strings.Contains(got, "Failed") {
			t.Errorf("log of a planned end:\n%s", got)
		}

		log.Reset()
		err := lead(t.Context(), loud, func(ctx context.Context) error {
			s.setDown(true)
			<-ctx.Done()
			time.Sleep(time.Second) // for as long as this, the election goes on trying
			return nil
		}, &lock{store: s, identity: "a"})
		if err != ErrLost || !strings.Contains(log.String(), "ERROR") {
			t.Errorf("outcome %v, log of a lost lease:\n%s", err, log.String())
		}
	})
}

// Replicas that start together race for the lease. To lose is no error.
func TestLogOfARace(t *testing.T) {
	const latency = time.Millisecond
	for name, s := range map[string]*store{
		"for a lease that is not there": {latency: latency},
		"for one that nobody holds":     {latency: latency, version: 1, record: &resourcelock.LeaderElectionRecord{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, nil))
				ctx, end := context.WithCancel(t.Context())
				var replicas sync.WaitGroup
				for _, identity := range []string{"a", "b"} {
					loud := config(identity)
					loud.Logger = logger
					replicas.Go(func() {
						err := lead(ctx, loud, func(ctx context.Context) error { <-ctx.Done(); return nil }, &lock{store: s, identity: identity})
						if err != nil {
							t.Errorf("outcome of %s: %v", identity, err)
						}
					})
				}
				pass(time.Minute)
				end()
				replicas.Wait()
				if got := log.String(); strings.Count(got, "msg=leading") != 1 || strings.Contains(got, "ERROR") {
					t.Errorf("log of the race:\n%s", got)
				}
			})
		})
	}
}

func TestBadTimes(t *testing.T) {
	bad := config("a")
	bad.Duration, bad.Renew = time.Second, time.Minute
	err := Lead(t.Context(), bad, func(context.Context) error { return nil })
	if err == nil {
		t.Error("a lease shorter than its renewal was accepted")
	}
}
