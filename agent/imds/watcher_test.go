package imds

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/notice"
)

// watching is a watcher in virtual time, with the real client of AWS over HTTP
// in memory.
type watching struct {
	*Watcher
	*service
	t   *testing.T
	log bytes.Buffer

	// unclear: what paths say nothing yet is of interest.
	unclear bool
	// unread are the troubles that were told.
	unread []string

	seeing sync.Mutex
	said   []string
	last   string    // at first that nothing is known
	at     time.Time // of the last sighting
}

func watch(t *testing.T, s *service, interval time.Duration) *watching {
	t.Helper()
	return watchWith(t, s, interval, &watching{service: s, t: t})
}

func watchWith(t *testing.T, s *service, interval time.Duration, w *watching) *watching {
	t.Helper()
	w.last = "heard=false"
	w.Watcher = NewWatcher(newRead(s.pipes(t)), interval, slog.New(slog.NewTextHandler(&w.log, nil)))
	w.Unread = func(since time.Time, why error) {
		w.seeing.Lock()
		defer w.seeing.Unlock()
		w.unread = append(w.unread, fmt.Sprintf("since %s ago: %v", time.Since(since).Round(time.Minute), why))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, w.saw)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watching) saw(s Sighting) {
	line := fmt.Sprintf("heard=%v", s.Heard)
	for _, n := range s.Notices {
		line += " " + n.ID
	}
	if w.unclear && len(s.Unclear) > 0 {
		line += fmt.Sprint(" unclear=", s.Unclear)
	}
	if s.ClockAhead != 0 {
		line += " ahead=" + s.ClockAhead.Round(time.Minute).String()
	}
	w.seeing.Lock()
	defer w.seeing.Unlock()
	w.at = time.Now()
	if line != w.last {
		w.said, w.last = append(w.said, line), line
	}
}

// after lets time pass, and returns what was said meanwhile. It forgets it.
func (w *watching) after(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	w.seeing.Lock()
	defer w.seeing.Unlock()
	said := w.said
	w.said = nil
	return said
}

func (w *watching) lastSaid() string {
	w.seeing.Lock()
	defer w.seeing.Unlock()
	return w.last
}

// sawSince reports whether there was a sighting since a moment.
func (w *watching) sawSince(moment time.Time) bool {
	w.seeing.Lock()
	defer w.seeing.Unlock()
	return w.at.After(moment)
}

// expect lets time pass, in which exactly this is said.
func (w *watching) expect(d time.Duration, what string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.after(d)); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// expectLast lets time pass, in which this is said at last.
func (w *watching) expectLast(d time.Duration, what, want string) {
	w.t.Helper()
	if said := w.after(d); len(said) == 0 || said[len(said)-1] != want {
		w.t.Errorf("%s: said %q, want %q at last", what, said, want)
	}
}

// logged counts lines of the log.
func (w *watching) logged(text string) int {
	w.t.Helper()
	synctest.Wait()
	return strings.Count(w.log.String(), text)
}

const (
	state     = string(notice.FromTargetState)
	action    = string(notice.FromInstanceAction)
	rebalance = string(notice.FromRebalance)
	scheduled = string(notice.FromMaintenance)
	history   = string(notice.FromMaintenanceHistory)

	recommended = `{"noticeTime":"2000-01-01T00:00:00Z"}`
)

// interrupted is a spot interruption in two minutes.
func interrupted() string {
	return fmt.Sprintf(`{"action":"terminate","time":%q}`, time.Now().Add(2*time.Minute).UTC().Format(time.RFC3339))
}

// reboot is a list of scheduled events with one of this id and state.
func reboot(id, state string) string {
	return fmt.Sprintf(`[{"Code":"instance-reboot","EventId":%q,"State":%q}]`, id, state)
}

func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, newService(), 0)
		w.expect(0, "every path was asked at once, and none has a notice", "heard=true")

		w.put(state, "InService")
		w.expect(6*time.Second, "in service")
		w.put(state, "Terminated")
		w.expect(6*time.Second, "a notice", "heard=true asg-terminate:i-1")
		w.expect(10*time.Minute, "the same notice a hundred times")
		w.put(state, "Warmed:Stopped")
		w.expect(6*time.Second, "another in its place", "heard=true asg-warm:i-1")
		w.put(rebalance, recommended)
		w.expect(31*time.Second, "and one beside it", "heard=true asg-warm:i-1 rebalance:i-1:2000-01-01T00:00:00Z")
		w.put(state, "InService")
		w.expect(6*time.Second, "the first is over", "heard=true rebalance:i-1:2000-01-01T00:00:00Z")

		w.put(state, "<html>")
		w.expect(time.Minute, "a body that says nothing changes nothing")
		w.change(func() { w.mute = true })
		w.expect(time.Hour, "no answer for an hour changes nothing")
		w.change(func() { w.mute = false; delete(w.bodies, rebalance) })
		w.expect(2*time.Minute, "absent is over", "heard=true")
	})
}

// The ways in which a scheduled event ends.
func TestWatcherMaintenance(t *testing.T) {
	for _, tc := range []struct {
		reason string
		end    func(*service)
		ends   bool
	}{
		{"it goes on", func(*service) {}, false},
		{"it disappears", func(s *service) { s.put(scheduled, "[]") }, true},
		{"it is listed as completed", func(s *service) { s.put(scheduled, reboot("e1", "completed")) }, true},
		{"it is listed as cancelled", func(s *service) { s.put(scheduled, reboot("e1", "canceled")) }, true},
		{"the history has it completed, the list still active", func(s *service) { s.put(history, reboot("e1", "completed")) }, true},
		{"the history has it cancelled", func(s *service) { s.put(scheduled, "[]"); s.put(history, reboot("e1", "canceled")) }, true},
		{"the history has another", func(s *service) { s.put(history, reboot("e2", "completed")) }, false},
		{"the list is not understood", func(s *service) { s.put(scheduled, "<html>") }, false},
		{"one in the list is not understood, and it is missing", func(s *service) { s.put(scheduled, "[7]") }, false},
		{"the same, and the history has it", func(s *service) { s.put(scheduled, "[7]"); s.put(history, reboot("e1", "completed")) }, true},
		{"the history is not understood", func(s *service) { s.put(history, "<html>") }, false},
		{"the list fails", func(s *service) { s.change(func() { s.status[scheduled] = 500 }) }, false},
		{"the history fails", func(s *service) { s.change(func() { s.status[history] = 500 }) }, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.put(scheduled, reboot("e1", "active"))
				w := watch(t, s, 0)
				// The history was asked before the event was reported.
				w.expectLast(0, "the event", "heard=true instance-reboot:i-1:e1")
				tc.end(s)
				var want []string
				if tc.ends {
					want = []string{"heard=true"}
				}
				w.expect(61*time.Second, tc.reason, want...)
				w.expect(time.Hour, "and it stays so")
			})
		})
	}
}

// What the history has said holds while it does not answer; and it is not asked
// where there is nothing that could be over.
func TestWatcherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.put(scheduled, "[]")
		w := watch(t, s, 0)
		w.expect(time.Hour, "nothing", "heard=true")
		if n := s.countOf(history); n > 0 {
			t.Errorf("the history was read %d times, though no event is scheduled", n)
		}
		s.put(scheduled, reboot("e1", "active"))
		s.put(history, reboot("e1", "completed"))
		w.expect(time.Minute, "listed, and over")
		s.change(func() { s.status[history] = 503 })
		w.expect(time.Hour, "still over, as far as is known")
		s.change(func() { s.status[history] = 0 })
		s.put(history, "<html>")
		w.expect(time.Hour, "still over, as far as is known")
		s.put(history, "")
		w.expect(time.Hour, "still over: what has happened stays so")
		s.put(history, "[]")
		w.expect(time.Minute, "the history says otherwise", "heard=true instance-reboot:i-1:e1")
	})
}

// periods of the paths.
var periods = map[string]time.Duration{state: 5 * time.Second, action: 5 * time.Second, rebalance: 30 * time.Second, scheduled: time.Minute}

// A notice is seen within the period of its path, whenever it comes.
func TestWatcherIsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		w := watch(t, s, 0)
		for range 20 {
			bodies := map[string]string{state: "Terminated", action: interrupted(), rebalance: recommended, scheduled: reboot("e1", "active")}
			for path, body := range bodies {
				w.after(time.Minute + 10*time.Millisecond*time.Duration(s.requests()%700))
				came := time.Now()
				s.put(path, body)
				w.after(periods[path])
				if !w.sawSince(came) {
					t.Fatalf("%s: not seen within %s", path, periods[path])
				}
				s.put(path, "")
				w.after(3 * periods[path])
			}
		}
	})
}

// With the tokens, at most 0.6 requests a second; half of that where the instance
// is no spot instance.
func TestWatcherIsFrugal(t *testing.T) {
	for life, most := range map[string]float64{"spot": 0.6, "on-demand": 0.3, "": 0.6} {
		t.Run(life, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.put(pathLifeCycle, life)
				s.put(state, "InService")
				s.put(scheduled, reboot("e1", "active")) // the history is read too
				w := watch(t, s, 0)
				w.after(time.Hour)
				rate := float64(s.requests()) / 3600
				t.Logf("%.3f requests a second", rate)
				if rate > most || rate < most/2 {
					t.Errorf("%.3f requests a second, want at most %.2f", rate, most)
				}
				for _, path := range []string{action, rebalance} {
					if n := s.countOf(path); life == "on-demand" && (n < 60 || n > 70) {
						t.Errorf("%s is read %d times on an on-demand instance, want once a minute", path, n)
					}
				}
				if s.opened-s.closed != 1 {
					t.Errorf("%d connections are kept open, want one", s.opened-s.closed)
				}
			})
		})
	}
}

// A service that fails is asked less often but never given up, and what it said stands;
// the log reports when that began and when it ended.
func TestWatcherOutage(t *testing.T) {
	for reason, fail := range map[string]func(*service){
		"mute":                func(s *service) { s.mute = true },
		"switched off":        func(s *service) { s.status[""] = http.StatusForbidden },
		"broken":              func(s *service) { s.status[""] = http.StatusInternalServerError },
		"overloaded":          func(s *service) { s.status[""] = http.StatusServiceUnavailable },
		"too many requests":   func(s *service) { s.status[""] = http.StatusTooManyRequests },
		"no tokens":           func(s *service) { s.status["token"] = http.StatusForbidden; s.token++ },
		"tokens of no avail":  func(s *service) { s.token = 7; s.status["token"] = http.StatusBadRequest },
		"one path is broken":  func(s *service) { s.status[state] = http.StatusInternalServerError },
		"only the history is": func(s *service) { s.status[history] = http.StatusInternalServerError },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.put(state, "Terminated")
				s.put(scheduled, reboot("e1", "active"))
				w := watch(t, s, 0)
				w.after(time.Minute)
				before := s.requests()
				s.change(func() { fail(s) })
				w.expect(time.Hour, "nothing new")
				if got := w.logged("reading the instance metadata failed"); got != 1 {
					t.Errorf("the outage is logged %d times:\n%s", got, w.log.String())
				}
				if rate := float64(s.requests()-before) / 3600; rate > 0.6 {
					t.Errorf("%.2f requests a second", rate)
				}

				s.change(func() { s.mute, s.status = false, map[string]int{} })
				s.put(state, "InService")
				w.expect(longestBackOff+5*time.Second, "seen soon after it is back", "heard=true instance-reboot:i-1:e1")
				w.after(time.Minute)
				if got := w.logged("works again"); got != 1 {
					t.Errorf("the end is logged %d times:\n%s", got, w.log.String())
				}
			})
		})
	}
}

// What fails is asked again soon, and then less and less often, whether or not the instance
// is known.
func TestWatcherBacksOff(t *testing.T) {
	for _, path := range []string{pathInstanceID, pathLifeCycle, state} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.status[path] = http.StatusInternalServerError
				w := watch(t, s, 0)
				asked := func(d time.Duration) int {
					before := s.asked[path]
					w.after(d)
					return s.asked[path] - before
				}
				if n := asked(6 * time.Second); n != 2 {
					t.Errorf("asked %d times in 6 s, want at once and again after 5 s", n)
				}
				if n := asked(9 * time.Second); n != 1 {
					t.Errorf("asked %d times in the next 9 s, want once", n)
				}
				w.after(time.Minute)
				if n := asked(time.Hour); n < 120 || n > 134 { // every 30 s, or a tenth sooner
					t.Errorf("asked %d times in an hour, want every 30 s", n)
				}
				s.change(func() { s.status = map[string]int{} })
				w.after(time.Minute)
				if n := asked(time.Minute); path == state && n < 12 {
					t.Errorf("asked %d times in a minute after it was well again", n)
				}
			})
		})
	}
}

// What a path gave is over when so many answers in a row lack it; one that says so ends it
// at once, and no answer at all is none. A watcher that starts in between does not know
// before that either.
func TestWatcherMissingAnswers(t *testing.T) {
	for path, tc := range map[string]struct {
		body, id string
		ends     int
	}{
		state:     {"Terminated", "asg-terminate:i-1", 3},
		action:    {`{"action":"stop","time":"2000-01-01T00:02:00Z"}`, "spot-stop:i-1:2000-01-01T00:02:00Z", 1},
		rebalance: {recommended, "rebalance:i-1:2000-01-01T00:00:00Z", 3},
		scheduled: {reboot("e1", "active"), "instance-reboot:i-1:e1", 3},
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.put(path, tc.body)
				w := watch(t, s, 0)
				w.expectLast(0, "the notice", "heard=true "+tc.id)
				answers := func(n int) { // so many more of the path
					for until := s.countOf(path) + n; s.countOf(path) < until; {
						time.Sleep(100 * time.Millisecond)
					}
				}
				for range 5 {
					s.put(path, "")
					answers(tc.ends - 1)
					s.put(path, tc.body)
					answers(1)
				}
				w.expect(0, "answers too few lack it")
				s.put(path, "")
				answers(tc.ends - 1)
				s.change(func() { s.status[path] = http.StatusInternalServerError })
				w.expect(time.Hour, "no answer at all is none that lacks it")
				s.change(func() { s.status[path] = 0 })
				w.expect(longestBackOff+3*periods[path], "and at last", "heard=true")
			})
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.put(state, "InService")
				s.put(scheduled, "[]")
				s.put(rebalance, recommended)
				s.put(action, interrupted())
				s.put(path, "")
				unclear := " unclear=[" + path + "]"
				w := watchWith(t, s, 0, &watching{service: s, t: t, unclear: true})
				w.after(0)
				for range tc.ends - 1 {
					if last := w.lastSaid(); !strings.HasSuffix(last, unclear) {
						t.Errorf("after %d answers: %q", s.countOf(path), last)
					}
					w.after(periods[path])
				}
				if last := w.lastSaid(); strings.Contains(last, "unclear") {
					t.Errorf("after %d answers: %q", s.countOf(path), last)
				}
			})
		})
	}
}

// An interruption whose time is another one at each answer is reported once, with the earliest
// of them.
func TestWatcherInterruptionMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		w := watch(t, s, 0)
		w.expect(0, "nothing", "heard=true")
		id := "heard=true spot-terminate:i-1:" + time.Now().Add(2*time.Minute).UTC().Format(time.RFC3339)
		s.put(action, interrupted())
		w.expect(6*time.Second, "it is announced", id)
		for range 100 {
			s.put(action, interrupted())
			w.expect(5*time.Second, "for another time")
		}
	})
}

// Paths that hang after their headers keep no other waiting, whenever its notice comes.
func TestWatcherPathsHang(t *testing.T) {
	bodies := map[string]string{state: "Terminated", action: `{"action":"stop","time":"2000-01-01T00:02:00Z"}`, rebalance: recommended, scheduled: reboot("e1", "active")}
	for free, period := range periods {
		t.Run(free, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.put(state, "InService")
				w := watch(t, s, 0)
				w.after(time.Minute)
				s.change(func() {
					s.stuck = map[string]bool{pathLifeCycle: true}
					for path := range periods {
						s.stuck[path] = path != free
					}
				})
				for turn := range 40 {
					w.after(5*time.Minute + time.Duration(turn)*777*time.Millisecond)
					came := time.Now()
					s.put(free, bodies[free])
					w.after(period)
					if !w.sawSince(came) {
						t.Fatalf("not seen within %s", period)
					}
					s.put(free, "")
				}
				if open := s.opened - s.closed; open > len(periods)+1 {
					t.Errorf("%d connections are open", open)
				}
			})
		})
	}
}

// What is no instance id is none: it is asked for again, until there is one or the Node names
// it.
func TestWatcherInstanceID(t *testing.T) {
	for _, body := range []string{"<html><body>Sign in</body></html>", "", "i-", "i-1 i-2", "i-1:2", "I-1", strings.Repeat("i-1", 100)} {
		synctest.Test(t, func(t *testing.T) {
			s := newService()
			s.put(state, "Terminated")
			s.change(func() { s.bodies[pathInstanceID] = body })
			w := watch(t, s, 0)
			w.expect(time.Hour, body+" says nothing")
			if n := s.countOf(pathInstanceID); n < 100 || n > 200 {
				t.Errorf("%q: asked %d times in an hour", body, n)
			}
			if got := w.logged("not understood"); got != 1 {
				t.Errorf("%q: logged %d times:\n%s", body, got, w.log.String())
			}
			s.put(pathInstanceID, "i-0123456789abcdef0\n")
			w.expectLast(longestBackOff, "an id", "heard=true asg-terminate:i-0123456789abcdef0")
		})
	}
}

// The instance id does not answer, and the Node names it: that is used at once, before the next
// try.
func TestWatcherIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.put(state, "Terminated")
		s.status[pathInstanceID] = http.StatusInternalServerError
		w := watch(t, s, 0)
		w.after(time.Hour)
		w.SetInstance("i-2")
		w.expectLast(0, "at once", "heard=true asg-terminate:i-2")
	})
}

// A path that always fails keeps no other from being read, nor its notices from ending: what
// an earlier agent heard on that path alone still stands.
func TestWatcherOneCategoryFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.status[rebalance] = http.StatusInternalServerError
		unclear := " unclear=[" + rebalance + "]"
		w := watchWith(t, s, 0, &watching{service: s, t: t, unclear: true})
		w.expectLast(time.Hour, "nothing on the others", "heard=true"+unclear)
		s.put(state, "Terminated")
		w.expectLast(6*time.Second, "a notice on another path", "heard=true asg-terminate:i-1"+unclear)
		s.change(func() { s.status[rebalance] = 0 })
		w.expectLast(longestBackOff+3*periods[rebalance], "it answers", "heard=true asg-terminate:i-1")
	})
}

// The metadata do not answer from the start; the Node names which instance it
// is. Nothing is called heard.
func TestWatcherStartsBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.put(state, "Terminated")
		s.mute = true
		w := watch(t, s, 0)
		w.expect(time.Minute, "nothing is known")
		w.SetInstance("i-2")
		w.expect(time.Minute, "nothing is known")
		s.change(func() { s.mute = false })
		w.expectLast(time.Minute, "the metadata do not overrule the Node", "heard=true asg-terminate:i-2")
		if got := w.logged("works again"); got != 1 {
			t.Errorf("the end is logged %d times:\n%s", got, w.log.String())
		}
	})
}

// Whether it is a spot instance is asked until it is known, but not at each turn.
func TestWatcherLearnsTheLifeCycleLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.put(pathLifeCycle, "on-demand")
		s.status[pathLifeCycle] = http.StatusInternalServerError
		s.put(rebalance, recommended)
		w := watch(t, s, 0)
		w.expectLast(10*time.Second, "the paths of spot instances are read", "heard=true rebalance:i-1:2000-01-01T00:00:00Z")
		w.after(time.Hour)
		if n := s.countOf(pathLifeCycle); n > 200 {
			t.Errorf("asked %d times in an hour", n)
		}
		s.change(func() { s.status = map[string]int{} })
		s.put(pathLifeCycle, "<html>")
		w.after(time.Hour)
		if n := s.countOf(action); n < 1400 {
			t.Errorf("asked for interruptions %d times in two hours in which nobody said what it is", n)
		}
		if got := w.logged(pathLifeCycle + `: \"<html>\"`); got != 1 {
			t.Errorf("a life cycle of HTML is logged %d times:\n%s", got, w.log.String())
		}
		s.put(pathLifeCycle, "on-demand")
		w.after(time.Minute)
		asked := s.countOf(action)
		w.after(time.Hour)
		if n := s.countOf(action) - asked; n > 70 {
			t.Errorf("asked for interruptions %d times in an hour when it was known to be none", n)
		}
	})
}

func TestWatcherComplainsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		w := watch(t, s, time.Second)
		w.expect(time.Minute, "nothing", "heard=true")
		for i := range 100 {
			s.put(state, fmt.Sprintf("<html>request %d", i))
			w.expect(10*time.Second, "not understood")
		}
		if got := w.logged("not understood"); got != 1 {
			t.Errorf("logged %d times:\n%s", got, w.log.String())
		}
		s.put(state, "InService")
		w.expect(time.Minute, "understood")
		s.put(state, "<html>")
		w.expect(time.Minute, "not understood")
		if got := w.logged("not understood"); got != 2 {
			t.Errorf("logged %d times, want once more:\n%s", got, w.log.String())
		}
	})
}

// A path that was never understood says nothing, which is logged once. The others are read all
// the same; it is read at its pace until it is understood.
func TestWatcherNeverUnderstood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.put(state, "Retained")
		s.put(scheduled, "[]")
		w := watchWith(t, s, 0, &watching{service: s, t: t, unclear: true})
		w.expectLast(time.Minute+time.Second, "three answers lack the recommendation", "heard=true unclear=["+state+"]")
		unclear := "heard=true%s unclear=[" + state + "]"
		w.put(action, "{")
		w.expect(time.Hour, "one that was understood before is no other")
		w.put(scheduled, reboot("e1", "active"))
		w.expect(time.Minute, "and what they say", fmt.Sprintf(unclear, " instance-reboot:i-1:e1"))
		if n := w.logged(`unknown state \"Retained\"`); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, w.log.String())
		}
		w.put(state, "Terminated")
		w.expect(5*time.Second, "understood, and in time", "heard=true asg-terminate:i-1 instance-reboot:i-1:e1")
		w.put(state, "Retained")
		w.expect(time.Hour, "nothing ends by it")
	})
}

// How far the node's clock is off is reported with everything else, and does not
// tremble; the notices are as AWS dates them.
func TestWatcherClock(t *testing.T) {
	for _, tc := range []struct {
		behind time.Duration // the service's clock
		want   string
	}{
		{0, ""},
		{3 * time.Second, ""},
		{-3 * time.Second, ""},
		{time.Hour, " ahead=1h0m0s"},
		{-time.Minute, " ahead=-1m0s"},
	} {
		t.Run(tc.behind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.behind = tc.behind
				w := watch(t, s, 0)
				w.expectLast(0, "the first answers", "heard=true"+tc.want)
				s.put(state, "Terminated")
				w.expect(6*time.Second, "a notice", "heard=true asg-terminate:i-1"+tc.want)
				s.change(func() { s.behind += time.Second })
				w.expect(time.Hour, "the clock drifts a little")
				if got, want := w.logged("node clock differs"), map[bool]int{true: 1}[tc.want != ""]; got != want {
					t.Errorf("logged %d times, want %d", got, want)
				}
				s.change(func() { s.behind = 2 * time.Hour })
				w.expect(time.Minute, "the clock was set", "heard=true asg-terminate:i-1 ahead=2h0m0s")
				s.change(func() { s.behind = 0 })
				w.expect(time.Minute, "and set right", "heard=true asg-terminate:i-1")
			})
		})
	}
}

func TestWatcherInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		w := watch(t, s, 100*time.Millisecond)
		w.after(10 * time.Second)
		if n := s.countOf(action); n < 100 || n > 112 {
			t.Errorf("asked %d times in 10 s, every 100 ms", n)
		}
		if n := s.countOf(scheduled); n < 8 || n > 12 {
			t.Errorf("asked %d times in 10 s, every 1.2 s", n)
		}
	})
}

// The same over a real connection.
func TestWatcherOverTCP(t *testing.T) {
	s := newService()
	s.put(state, "Terminated")
	s.listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan Sighting, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		NewWatcher(NewRead(), time.Second, slog.New(slog.DiscardHandler)).Run(ctx, func(s Sighting) { heard <- s })
	}()
	for {
		if got := <-heard; len(got.Notices) > 0 {
			if !got.Heard || len(got.Notices) != 1 || got.Notices[0].ID != "asg-terminate:i-1" {
				t.Errorf("heard %+v", got)
			}
			break
		}
	}
	cancel()
	<-done
}

// A trouble that lasts is told, each hour; one that passes is not.
func TestWatcherUnread(t *testing.T) {
	for trouble, c := range map[string]struct {
		cause func(*service)
		told  string
	}{
		"nobody answers":           {func(s *service) { s.mute = true }, "instance-id"},
		"another service answers":  {func(s *service) { delete(s.bodies, pathInstanceID) }, "instance-id"},
		"a portal answers":         {func(s *service) { s.bodies[pathInstanceID] = "<html>" }, `"<html>" is none`},
		"one path is broken":       {func(s *service) { s.status[state] = http.StatusInternalServerError }, state},
		"one path is not to parse": {func(s *service) { s.bodies[scheduled] = "<html>" }, scheduled},
		"one that is then absent":  {func(s *service) { s.bodies[action] = "<html>" }, action},
		"the history, of an event that is over then": {func(s *service) {
			s.bodies[scheduled], s.bodies[history] = reboot("e1", "active"), "<html>"
		}, history},
	} {
		t.Run(trouble, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				c.cause(s)
				w := watch(t, s, 0)
				w.after(time.Minute)
				w.told(0, "")
				w.after(4 * time.Minute)
				w.told(1, c.told)
				w.after(55 * time.Minute)
				w.told(1, c.told)
				w.after(10 * time.Minute)
				w.told(2, c.told)
				s.change(func() { s.mute, s.status = false, map[string]int{} })
				s.put(pathInstanceID, "i-1")
				s.change(func() { delete(s.bodies, action); delete(s.bodies, scheduled) })
				w.after(3 * time.Hour)
				w.told(2, c.told)
				if n := w.logged("works again"); n != 1 {
					t.Errorf("the end is logged %d times:\n%s", n, w.log.String())
				}
			})
		})
	}
}

// told checks how often a trouble was told, and that the last time names that.
func (w *watching) told(times int, what string) {
	w.t.Helper()
	w.seeing.Lock()
	defer w.seeing.Unlock()
	if len(w.unread) != times || times > 0 && !strings.Contains(w.unread[times-1], what) {
		w.t.Errorf("told %q, want %d times, of %s", w.unread, times, what)
	}
}
