package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/notifier/config"
	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/notifier/render"
	"windlass.dev/windlass/notifier/send"
	"windlass.dev/windlass/notifier/store"
)

const (
	// settle is how long things that come together are waited for.
	settle = time.Second
	// atLeast is how often the world is looked at where nothing changes: things end by the time
	// that has gone by.
	atLeast = 15 * time.Second
	// farewell is how long messages that are in flight are given when this process ends: the
	// lease is held until then.
	farewell = 3 * time.Second
	// A service that has not taken a message is tried again after firstWait, and after twice as
	// long each time, up to lastWait. One that refuses a message gets others after nextAfter, and
	// that one again in the same way, tries times in all.
	firstWait, lastWait = 5 * time.Second, 10 * time.Minute
	nextAfter           = time.Second
	tries               = 3
)

// saver persists what was seen and sent; *store.Store is one.
type saver interface {
	Save(ctx context.Context, s store.Saved) (store.Saved, error)
}

// notifier sends what happens to services, while it leads. One goroutine has all state; each
// service has at most one message in flight, so that none waits for another.
type notifier struct {
	cluster  string
	services []config.Service
	wants    map[string]delivery.Want
	senders  map[string]send.Sender

	now     func() time.Time
	world   func(time.Time) (happening.World, error)
	changed <-chan struct{}
	store   saver
	logger  *slog.Logger
	metrics *metrics
	alive   func()

	saved  store.Saved
	latest happening.World
	lines  map[string]*line
	landed chan landing
	said   string // the trouble that was logged last
}

// line is the way to one service.
type line struct {
	busy    bool
	message delivery.Message
	failed  int       // tries in a row
	since   time.Time // when the first of them failed
	until   time.Time // not before
}

// landing is what became of a message.
type landing struct {
	service string
	ref     string
	err     error
}

// run goes on until ctx ends, or another replica has written the state.
func (n *notifier) run(ctx context.Context, saved store.Saved) error {
	saved.State = saved.State.Resume()
	n.saved, n.lines, n.landed = saved, map[string]*line{}, make(chan landing, len(n.services))
	for _, s := range n.services {
		n.lines[s.Name] = &line{}
		defer n.metrics.fails(s.Name, time.Time{}) // which the next leader shows
	}
	flight, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	for {
		n.alive()
		again, err := n.turn(ctx, flight)
		if errors.Is(err, store.ErrOthers) {
			return err
		}
		if ctx.Err() == nil {
			n.wait(ctx, again)
		}
		if ctx.Err() != nil {
			return n.leave(ctx, end)
		}
	}
}

// turn takes the world in, persists what follows, and sends what each service is owed. It returns
// when to look again.
func (n *notifier) turn(ctx, flight context.Context) (time.Time, error) {
	now := n.now()
	n.fold(now)
	again := now.Add(atLeast)
	var owed []string
	for _, s := range n.services {
		l := n.lines[s.Name]
		if l.busy {
			continue
		}
		if now.Before(l.until) {
			again = delivery.Soonest(again, l.until)
			continue
		}
		message, is, at := delivery.Next(n.sent(s.Name), n.wants[s.Name], n.saved.State, now)
		if is {
			l.message = message
			owed = append(owed, s.Name)
		} else {
			l.failed, l.since = 0, time.Time{} // what failed is owed no more
			n.metrics.fails(s.Name, l.since)
			again = delivery.Soonest(again, at)
		}
	}
	saved, err := n.store.Save(ctx, n.saved)
	n.saved = saved
	n.trouble(err)
	if err != nil {
		return delivery.Soonest(again, now.Add(firstWait)), err // what is not persisted is not sent
	}
	for _, name := range owed {
		n.launch(flight, name)
	}
	return again, nil
}

// trouble logs what keeps the state from being written, once.
func (n *notifier) trouble(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != n.said && err != nil {
		n.logger.Warn("state not written, nothing is sent until it is", "err", err)
	}
	n.said = text
}

// fold forgets what everybody was told, so that it takes nobody's room, and takes the world in.
func (n *notifier) fold(now time.Time) {
	world, err := n.world(now)
	if err != nil {
		n.logger.Warn("status page unreadable", "err", err)
	}
	n.latest = world
	state := happening.Fold(n.saved.State.Without(n.told, world), world)
	n.saved.State = state
	n.saved.Sent = n.saved.Sent.Clone()
	n.saved.Sent.Forget(state, slices.Collect(maps.Keys(n.wants)))
	n.metrics.happenings(state)
}

// told reports whether every service has heard all of a happening that it is to hear of.
func (n *notifier) told(h *happening.Happening) bool {
	for name, want := range n.wants {
		if want.Fits(h) && !n.sent(name).Told(h.ID) {
			return false
		}
	}
	return true
}

// sent is what a service was sent.
func (n *notifier) sent(name string) *delivery.Service {
	if n.saved.Sent[name] == nil {
		n.saved.Sent[name] = &delivery.Service{}
	}
	return n.saved.Sent[name]
}

// launch sends a message, and lands it in n.landed.
func (n *notifier) launch(ctx context.Context, name string) {
	l := n.lines[name]
	l.busy = true
	i := slices.IndexFunc(n.services, func(s config.Service) bool { return s.Name == name })
	template, sender, message, about := n.services[i].Parsed, n.senders[name], l.message, n.about()
	go func() {
		ctx, cancel := context.WithTimeout(ctx, send.Timeout)
		defer cancel()
		words := render.Of(message, about)
		var err error
		if template != nil {
			words, err = template.On(words, about)
		}
		ref := ""
		if err == nil {
			ref, err = sender.Send(ctx, words)
		}
		n.landed <- landing{name, ref, err}
	}()
}

// about is what messages say of the cluster.
func (n *notifier) about() render.Cluster {
	c := render.Cluster{Name: n.cluster, Nodes: len(n.latest.Nodes)}
	if n.latest.Page == nil {
		return c
	}
	for _, g := range n.latest.Page.Groups {
		if g.PricePerHour == 0 && g.Ready > 0 {
			c.Hourly = 0
			return c // a sum without some of it would mislead
		}
		c.Hourly += float64(g.Ready) * g.PricePerHour
	}
	return c
}

// wait waits until there is something to do.
func (n *notifier) wait(ctx context.Context, again time.Time) {
	timer := time.NewTimer(max(again.Sub(n.now()), 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case l := <-n.landed:
		n.land(l)
	case <-n.changed:
		n.pause(ctx)
	}
}

// pause lets what comes together come.
func (n *notifier) pause(ctx context.Context) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case l := <-n.landed:
			n.land(l)
			return // it is persisted at once
		}
	}
}

// land notes what became of a message.
func (n *notifier) land(x landing) {
	l, now := n.lines[x.service], n.now()
	service := n.sent(x.service)
	l.busy = false
	logger := n.logger.With("service", x.service, "kind", l.message.Kind(), "happenings", len(l.message.Of))
	if x.err == nil {
		service.Done(l.message, x.ref, now)
		*l = line{}
		logger.Info("message sent")
		n.metrics.tried(x.service, sent, l.since)
		return
	}
	var answer *send.Error
	after := time.Duration(0)
	refused := !errors.As(x.err, &answer) // a template that fails does so again
	if answer != nil {
		after, refused = answer.After, answer.Refused
	}
	if refused {
		outcome := failed
		if service.Refuse(l.message, now, waitAfter) >= tries {
			service.GaveUp(l.message, now)
			logger.Error("message given up", "err", x.err)
			outcome = givenUp
		}
		*l = line{until: now.Add(max(after, nextAfter))}
		n.metrics.tried(x.service, outcome, l.since)
		return
	}
	if l.failed++; l.failed == 1 {
		l.since = now
	}
	wait := max(after, waitAfter(l.failed))
	l.until = now.Add(wait)
	logger.Warn("message not sent", "err", x.err, "again", wait.String())
	n.metrics.tried(x.service, failed, l.since)
}

// waitAfter is how long to wait after so many tries.
func waitAfter(tries int) time.Duration { return min(lastWait, firstWait<<min(tries-1, 10)) }

// leave gives what is in flight a moment, and persists what became of it.
func (n *notifier) leave(ctx context.Context, end context.CancelFunc) error {
	timer := time.AfterFunc(farewell, end)
	defer timer.Stop()
	for _, s := range n.services {
		for n.lines[s.Name].busy {
			n.land(<-n.landed)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if _, err := n.store.Save(ctx, n.saved); err != nil {
		n.logger.Warn("state not written, so that messages may be sent twice", "err", err)
	}
	return nil
}
