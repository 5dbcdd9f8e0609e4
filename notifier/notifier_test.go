package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/notifier/config"
	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/notifier/render"
	"windlass.dev/windlass/notifier/send"
	"windlass.dev/windlass/notifier/store"
	"windlass.dev/windlass/pkg/contract"
)

// service is one that does as it is told.
type service func(ctx context.Context, m render.Message) (string, error)

func (s service) Send(ctx context.Context, m render.Message) (string, error) { return s(ctx, m) }

// stage is a notifier whose world has one notice, from a minute after the start.
type stage struct {
	*notifier
	disk *disk
	stop func() error
}

func play(t *testing.T, services map[string]service) *stage {
	begin := time.Now()
	s := &stage{disk: &disk{}}
	s.notifier = &notifier{
		wants: map[string]delivery.Want{}, senders: map[string]send.Sender{}, store: saving{&incarnation{}, s.disk},
		now: time.Now, logger: slog.New(slog.NewTextHandler(io.Discard, nil)), metrics: newMetrics(nil), alive: func() {},
		world: func(now time.Time) (happening.World, error) {
			w := happening.World{Now: now, Nodes: map[string]happening.Node{"n": {Name: "n"}}}
			if now.Sub(begin) >= time.Minute {
				w.Nodes["n"] = happening.Node{Name: "n", Notices: contract.NoticedList{{ID: "spot-1", Kind: contract.KindSpot}}}
			}
			return w, nil
		},
	}
	for name, of := range services {
		s.services = append(s.services, config.Service{Name: name})
		s.wants[name], s.senders[name] = delivery.Want{Routes: []delivery.Route{{}}}, of
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, store.Saved{Sent: delivery.Sent{}}) }()
	s.stop = func() error {
		cancel()
		return <-ended
	}
	return s
}

// A service that does not answer keeps no other from its messages, and is tried again later and
// later.
func TestASlowServiceBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		var told time.Time
		s := play(t, map[string]service{
			"slow": func(ctx context.Context, _ render.Message) (string, error) {
				tries = append(tries, time.Now())
				<-ctx.Done()
				return "", send.Failed("it does not answer")
			},
			"quick": func(context.Context, render.Message) (string, error) { told = time.Now(); return "", nil },
		})
		time.Sleep(time.Hour)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if len(tries) < 5 || told.IsZero() || told.After(tries[0].Add(time.Second)) {
			t.Fatalf("tries at %v, the other was told at %s", tries, told)
		}
		for i := 2; i < len(tries); i++ {
			if before, after := tries[i-1].Sub(tries[i-2]), tries[i].Sub(tries[i-1]); after < before && after < lastWait {
				t.Errorf("tried after %s, and then after %s", before, after)
			}
		}
	})
}

// It is served since when a service takes nothing, until it does, or is owed nothing any more, and by
// the replica that sends alone.
func TestFailingIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first time.Time
		answers := false
		s := play(t, map[string]service{
			"slow": func(context.Context, render.Message) (string, error) {
				if first.IsZero() {
					first = time.Now()
				}
				if answers {
					return "", nil
				}
				return "", send.Failed("it does not answer")
			},
			"quick": func(context.Context, render.Message) (string, error) { return "", nil },
		})
		failing := func(service string) float64 { return testutil.ToFloat64(s.metrics.failing.WithLabelValues(service)) }
		time.Sleep(time.Hour)
		if got := failing("slow"); got != float64(first.Unix()) || failing("quick") != 0 {
			t.Errorf("failing since %v, want %v; the other since %v", got, first.Unix(), failing("quick"))
		}
		answers = true
		time.Sleep(time.Hour)
		if got := failing("slow"); got != 0 {
			t.Errorf("once it answers: failing since %v", got)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}

		s = play(t, map[string]service{"slow": func(context.Context, render.Message) (string, error) { return "", send.Failed("it does not answer") }})
		time.Sleep(time.Hour)
		if failing("slow") == 0 {
			t.Error("another that does not answer is not shown")
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if got := failing("slow"); got != 0 {
			t.Errorf("once it sends no more: failing since %v", got)
		}
	})
}

// A service says when it may be asked again.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		s := play(t, map[string]service{"limited": func(context.Context, render.Message) (string, error) {
			tries = append(tries, time.Now())
			if len(tries) == 1 {
				limited := send.Failed("it is asked too often")
				limited.After = 7 * time.Minute
				return "", limited
			}
			return "", nil
		}})
		time.Sleep(time.Hour)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if len(tries) != 2 || tries[1].Sub(tries[0]) != 7*time.Minute {
			t.Errorf("tries at %v", tries)
		}
	})
}

// A message that is refused is given up, and does not come again.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		s := play(t, map[string]service{"strict": func(context.Context, render.Message) (string, error) {
			count++
			refused := send.Failed("it is no message")
			refused.Refused = true
			return "", refused
		}})
		time.Sleep(time.Hour)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		saved, err := s.disk.load()
		if err != nil || count != tries || saved.Sent["strict"].Given != 1 {
			t.Errorf("%d tries, %+v, %v", count, saved.Sent["strict"], err)
		}
	})
}

// A message that a service refuses keeps no other from it, also not one that changes others', and
// is logged once, when it is given up.
func TestRefusedKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		refusals, told := 0, map[string]time.Duration{}
		s := play(t, map[string]service{"strict": func(_ context.Context, m render.Message) (string, error) {
			for i := range m.Of {
				if m.Of[i].Node == "bad" {
					refusals++
					refused := send.Failed("it is no message")
					refused.Refused = true
					return "", refused
				}
			}
			for i := range m.Of {
				told[m.Of[i].Node] = time.Since(begin)
			}
			return "", nil
		}})
		log := &strings.Builder{}
		s.logger = slog.New(slog.NewTextHandler(log, nil))
		s.world = func(now time.Time) (happening.World, error) {
			w := happening.World{Now: now, Nodes: map[string]happening.Node{}}
			for i, name := range []string{"bad", "c", "d", "e", "f", "g", "h", "i"} {
				if now.Sub(begin) >= time.Minute+time.Duration(i/2)*time.Minute/4 {
					w.Nodes[name] = happening.Node{Name: name, Notices: contract.NoticedList{{ID: "spot-1", Kind: contract.KindSpot}}}
				}
			}
			return w, nil
		}
		time.Sleep(20 * time.Minute)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if refusals != tries {
			t.Errorf("%d refusals, want %d", refusals, tries)
		}
		if len(told) != 7 || told["c"] > time.Minute+3*time.Second {
			t.Errorf("told of %v", told)
		}
		if n := strings.Count(log.String(), "given up"); n != 1 || strings.Contains(log.String(), "not sent") {
			t.Errorf("%s", log)
		}
		saved, err := s.disk.load()
		if err != nil || saved.Sent["strict"].Given != 1 {
			t.Errorf("%+v, %v", saved.Sent["strict"], err)
		}
	})
}

// However much lasts, none of it is told twice while it does; a thousand drains have room.
func TestManyThatLast(t *testing.T) {
	blocked := func(n *happening.Node) {
		n.Report = &contract.Report{Phase: contract.PhaseBlocked, Kind: contract.KindRequest, BlockedBy: []string{"shop/" + n.Name}, Message: "budget shop/api allows no further disruption"}
	}
	noticed := func(n *happening.Node) {
		n.Notices = contract.NoticedList{{ID: "maintenance-" + n.Name, Kind: contract.KindMaintenance, Reason: "the machine is replaced"}}
	}
	for _, c := range []struct {
		nodes int
		shows func(*happening.Node)
	}{{1_000, blocked}, {2_000, blocked}, {1_000, noticed}, {2_000, noticed}} {
		nodes := c.nodes
		synctest.Test(t, func(t *testing.T) {
			told := map[string]int{}
			s := play(t, map[string]service{"a": func(_ context.Context, m render.Message) (string, error) {
				for i := range m.Of {
					told[m.Of[i].Node]++
				}
				return "", nil
			}})
			world := map[string]happening.Node{}
			for i := range nodes {
				name := fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/256, i%256)
				n := happening.Node{Name: name}
				c.shows(&n)
				world[name] = n
			}
			maps := fake.NewClientset().CoreV1().ConfigMaps("ours")
			s.store = store.New(maps)
			s.world = func(now time.Time) (happening.World, error) { return happening.World{Now: now, Nodes: world}, nil }
			time.Sleep(25 * time.Minute)
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
			if nodes == 1_000 && len(told) != nodes {
				t.Errorf("of %d drains %d were told", nodes, len(told))
			}
			twice := 0
			for _, n := range told {
				if n > 1 {
					twice++
				}
			}
			if twice > 0 || len(told) < 1_000 {
				t.Errorf("of %d drains %d were told, %d of them more than once", nodes, len(told), twice)
			}
			saved, err := store.New(maps).Load(t.Context())
			if err != nil || len(saved.State.Happenings) < 1_000 {
				t.Errorf("%d are persisted, error %v", len(saved.State.Happenings), err)
			}
		})
	}
}

// What is in flight at the end lands, and is known to the next process.
func TestTheEndWaitsForWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		s := play(t, map[string]service{"slow": func(ctx context.Context, _ render.Message) (string, error) {
			count++
			select {
			case <-time.After(farewell - time.Second):
				return "ref", nil
			case <-ctx.Done():
				return "", send.Failed("it was cut off")
			}
		}})
		time.Sleep(time.Minute + 15*time.Second + time.Millisecond)
		if count != 1 {
			t.Fatalf("%d messages", count)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		saved, err := s.disk.load()
		if err != nil || len(saved.Sent["slow"].Messages) != 1 || saved.Sent["slow"].Messages[0].Ref != "ref" {
			t.Errorf("%+v, %v", saved.Sent["slow"], err)
		}
	})
}

// Nothing is sent that is not persisted.
func TestNothingIsSentUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		s := play(t, map[string]service{"a": func(context.Context, render.Message) (string, error) { count++; return "", nil }})
		broken := &failing{saver: s.store, fails: true}
		s.store = broken
		time.Sleep(30 * time.Minute)
		if count != 0 {
			t.Errorf("%d messages", count)
		}
		broken.fails = false
		time.Sleep(time.Minute)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if count != 1 {
			t.Errorf("%d messages when it can be written", count)
		}
	})
}

type failing struct {
	saver
	fails bool
}

func (f *failing) Save(ctx context.Context, s store.Saved) (store.Saved, error) {
	if f.fails {
		return s, errors.New("the API server is away")
	}
	return f.saver.Save(ctx, s)
}

// Tokens are rotated while this runs; one that is missing is named, and none is shown.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "first\n")
	var used []string
	s := &fromSecret{file: filepath.Join(dir, "a"), dial: func(secret string) (send.Sender, error) {
		return service(func(context.Context, render.Message) (string, error) { used = append(used, secret); return "", nil }), nil
	}}
	for _, text := range []string{"first\n", "first\n", "second"} {
		write("a", text)
		if _, err := s.Send(t.Context(), render.Message{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(used, " "); got != "first first second" {
		t.Errorf("used %s", got)
	}
	write("two", "a-secret\nof two lines")
	write("empty", "\n")
	f, err := config.Parse([]byte("services: [{name: one, webhook: {secret: none}}, {name: two, shoutrrr: {secret: two}}, {name: three, slack: {channel: c, secret: empty}}]"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = dial(t.Context(), f, dir, "blue")
	for _, want := range []string{"service one: ", "none: no such file", "service two: secret ", "service three: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "a-secret") {
		t.Errorf("a secret is in %v", err)
	}
}
