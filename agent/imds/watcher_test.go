package imds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// service is the metadata as a map of paths; a nil map does not answer.
type service struct {
	mu     sync.Mutex
	bodies map[string]string
	asked  map[string]int
	at     []time.Time
}

func newService() *service {
	return &service{
		bodies: map[string]string{pathInstanceID: "i-1", pathLifeCycle: "spot"},
		asked:  map[string]int{},
	}
}

// set gives a path a body.
func (s *service) set(path, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[path] = body
}

// turn replaces everything, and returns what was.
func (s *service) turn(bodies map[string]string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.bodies
	s.bodies = bodies
	return before
}

func (s *service) read(_ context.Context, path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[path]++
	s.at = append(s.at, time.Now())
	if s.bodies == nil {
		return "", errors.New("connection refused")
	}
	body, ok := s.bodies[path]
	if !ok {
		return "", ErrAbsent
	}
	return body, nil
}

// watch runs a watcher in virtual time. It returns what it says (a line for
// each sighting) and logs, and a way to let time pass.
func watch(t *testing.T, s *service, interval time.Duration) (said func() []string, log *bytes.Buffer, w *Watcher) {
	t.Helper()
	log = &bytes.Buffer{}
	w = NewWatcher(s.read, interval, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	var lines []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, func(s Sighting) {
			line := fmt.Sprintf("heard=%v", s.Heard)
			for _, n := range s.Notices {
				line += " " + n.ID
			}
			lines = append(lines, line)
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() []string {
		synctest.Wait()
		out := lines
		lines = nil
		return out
	}, log, w
}

const spotBody = `{"action":"terminate","time":"2025-01-01T12:02:00Z"}`

func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		said, _, _ := watch(t, s, 0)
		expect := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, said()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		expect("every path was asked at once, and none has a notice", "heard=true")

		s.set("spot/instance-action", spotBody)
		time.Sleep(6 * time.Second)
		expect("a notice", "heard=true spot-terminate:i-1:2025-01-01T12:02:00Z")

		time.Sleep(10 * time.Minute)
		expect("the same notice a hundred times")

		s.set("autoscaling/target-lifecycle-state", "Terminated")
		time.Sleep(6 * time.Second)
		expect("another", "heard=true asg-terminate:i-1 spot-terminate:i-1:2025-01-01T12:02:00Z")

		s.set("autoscaling/target-lifecycle-state", "<html>")
		time.Sleep(time.Minute)
		expect("a body that says nothing changes nothing")

		bodies := s.turn(nil)
		time.Sleep(time.Hour)
		expect("no answer for an hour changes nothing")

		delete(bodies, "spot/instance-action")
		bodies["autoscaling/target-lifecycle-state"] = "InService"
		s.turn(bodies)
		time.Sleep(time.Minute)
		got := said()
		if len(got) == 0 || got[len(got)-1] != "heard=true" {
			t.Errorf("after both were taken back: %q", got)
		}
	})
}

// On a node without notices at most 0.6 requests a second, 0.2 where the
// instance is no spot instance.
func TestWatcherIsFrugal(t *testing.T) {
	for life, most := range map[string]float64{"spot": 0.45, "on-demand": 0.25} {
		synctest.Test(t, func(t *testing.T) {
			s := newService()
			s.set(pathLifeCycle, life)
			watch(t, s, 0)
			time.Sleep(time.Hour)
			synctest.Wait()
			if rate := float64(len(s.at)) / 3600; rate > most || rate < most/2 {
				t.Errorf("%s: %.2f requests a second, want at most %.2f", life, rate, most)
			}
			if s.asked["spot/instance-action"] > 0 && life != "spot" {
				t.Error("the spot path is read on an on-demand instance")
			}
		})
	}
}

func TestWatcherOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		said, log, _ := watch(t, s, 0)
		said()
		began, bodies := len(s.at), s.turn(nil)
		time.Sleep(time.Hour)
		synctest.Wait()

		tries := s.at[began:]
		if n := len(tries); n < 2*3600/33 || n > 400 {
			t.Errorf("%d tries in an hour", n)
		}
		if got := strings.Count(log.String(), "cannot be read"); got != 1 {
			t.Errorf("the outage is logged %d times:\n%s", got, log)
		}
		s.turn(bodies)
		back := time.Now()
		time.Sleep(2 * longestBackOff)
		synctest.Wait()
		for i := began; i < len(s.at); i++ {
			if s.at[i].After(back) {
				if wait := s.at[i].Sub(back); wait > longestBackOff {
					t.Errorf("asked again %s after it was back", wait)
				}
				break
			}
		}
		if got := strings.Count(log.String(), "can be read again"); got != 1 {
			t.Errorf("the end is logged %d times:\n%s", got, log)
		}
		if got := said(); len(got) != 0 {
			t.Errorf("said %q, but nothing changed", got)
		}
	})
}

// The metadata do not answer from the start; the Node tells which instance it
// is. Nothing is called heard.
func TestWatcherStartsBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.turn(nil)
		said, _, w := watch(t, s, 0)
		time.Sleep(time.Minute)
		w.SetInstance("i-2")
		time.Sleep(time.Minute)
		if got := said(); len(got) != 0 {
			t.Errorf("said %q", got)
		}
		s.turn(map[string]string{"autoscaling/target-lifecycle-state": "Terminated"})
		time.Sleep(time.Minute)
		want := "heard=true asg-terminate:i-2"
		if got := said(); len(got) == 0 || got[len(got)-1] != want {
			t.Errorf("said %q, want %s at last", got, want)
		}
	})
}

func TestWatcherComplainsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.set("spot/instance-action", "{")
		said, log, _ := watch(t, s, time.Second)
		time.Sleep(10 * time.Minute)
		if got := said(); len(got) != 0 {
			t.Errorf("said %q, though a path was never understood", got)
		}
		if got := strings.Count(log.String(), "not understood"); got != 1 {
			t.Errorf("logged %d times:\n%s", got, log)
		}
	})
}

func TestWatcherInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		watch(t, s, 100*time.Millisecond)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := s.asked["spot/instance-action"]; n < 90 || n > 112 {
			t.Errorf("asked %d times in 10 s, every 100 ms", n)
		}
	})
}
