package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		now: time.Now, logger: slog.New(slog.NewTextHandler(io.Discard, nil)), metrics: newMetrics(), alive: func() {},
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
