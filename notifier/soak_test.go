package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
	"windlass.dev/windlass/pkg/statuspage"
)

// fact is one thing that truly happens: a node's interruption or scale-down, a launch, a launch
// that fails.
type fact struct {
	kind  happening.Kind
	group string
	node  string
	id    string
	begin time.Time // the first Event
	end   time.Time // the last one
	last  string    // its reason
	size  int       // the group's, before a launch of one node
}

// life is what truly happens, and how late its observers see it.
type life struct {
	facts  []fact
	groups []string
	lag    func(stream string, now time.Time) time.Duration
}

// newLife draws so many facts over some hours.
func newLife(r *rand.Rand, n int, begin time.Time, long time.Duration) *life {
	l := &life{}
	for i := range 8 {
		l.groups = append(l.groups, fmt.Sprint("group-", i))
	}
	at := func() time.Time { return begin.Add(time.Duration(r.Int64N(int64(long)))).Truncate(time.Second) }
	sizes := map[string]int{}
	moments := make([]time.Time, n)
	for i := range moments {
		moments[i] = at()
	}
	slices.SortFunc(moments, time.Time.Compare)
	for i, moment := range moments {
		f := fact{group: l.groups[r.IntN(len(l.groups))], node: fmt.Sprint("node-", i), begin: moment}
		f.end = f.begin.Add(time.Duration(1+r.IntN(300)) * time.Second)
		switch r.IntN(5) {
		case 0, 1:
			f.kind, f.id = happening.Interruption, fmt.Sprint("spot-", i)
			f.last = []string{contract.EventDrained, contract.EventDrainFailed, contract.EventDrainUndone}[r.IntN(3)]
		case 2, 3:
			f.kind, f.id = happening.ScaleDown, contract.ScaleDownID(fmt.Sprint("i-", i), f.begin)
			f.last = []string{contract.EventTerminated, contract.EventTerminated, contract.EventScaleDownCancelled}[r.IntN(3)]
		default:
			f.kind = happening.ScaleUp
			f.size = sizes[f.group]
			sizes[f.group]++
			if r.IntN(4) == 0 {
				f.kind = happening.LaunchFailed
				sizes[f.group]--
			}
		}
		l.facts = append(l.facts, f)
	}
	seed := r.Uint64()
	l.lag = func(stream string, now time.Time) time.Duration {
		// Another lag each ten minutes, up to two of them.
		slot := uint64(now.Unix() / 600)
		q := rand.New(rand.NewPCG(seed, slot*31+uint64(len(stream))))
		return time.Duration(q.IntN(120)) * time.Second
	}
	return l
}

// events that the API server has: those of an hour.
func (l *life) events(now time.Time) []happening.Event {
	var list []happening.Event
	add := func(f fact, at time.Time, writer, reason string) {
		seen := now.Add(-l.lag(writer, now))
		if at.After(seen) || at.Before(seen.Add(-time.Hour)) {
			return
		}
		e := happening.Event{UID: fmt.Sprint(f.node, reason, at.Unix()), Writer: writer, At: at, Reason: reason, Kind: "Node", Object: f.node,
			Facts: contract.Facts{Group: f.group, ID: f.id, From: f.size, To: f.size + 1, Cause: "no capacity"}}
		if f.kind == happening.Interruption && reason == contract.EventDrainStarted {
			e.Notice = contract.Noticed{ID: f.id, Kind: contract.KindSpot}
		}
		list = append(list, e)
	}
	for _, f := range l.facts {
		switch f.kind {
		case happening.Interruption:
			add(f, f.begin, contract.AppAgent, contract.EventDrainStarted)
			add(f, f.end, contract.AppAgent, f.last)
		case happening.ScaleDown:
			add(f, f.begin, contract.AppScaler, contract.EventScaleDown)
			add(f, f.end, contract.AppScaler, f.last)
		case happening.ScaleUp:
			add(f, f.begin, contract.AppScaler, contract.EventScaledUpGroup)
		case happening.LaunchFailed:
			add(f, f.begin, contract.AppScaler, contract.EventScaleUpFailed)
		}
	}
	return list
}

// nodes as they are: a node is there as long as something happens to it, and a minute around.
func (l *life) nodes(now time.Time) map[string]happening.Node {
	now = now.Add(-l.lag("nodes", now))
	nodes := map[string]happening.Node{}
	for _, f := range l.facts {
		if f.id == "" || now.Before(f.begin.Add(-time.Minute)) || now.After(f.end.Add(time.Minute)) {
			continue
		}
		n := happening.Node{Name: f.node}
		if during := !now.Before(f.begin) && now.Before(f.end); during && f.kind == happening.ScaleDown {
			n.Request = &contract.Request{ID: f.id, Kind: contract.KindScaleDown, At: contract.At(f.begin)}
		} else if during {
			n.Notices = contract.NoticedList{{ID: f.id, Kind: contract.KindSpot, At: contract.At(f.begin)}}
			n.Report = &contract.Report{Answers: []string{f.id}, Phase: contract.PhaseDraining, Kind: contract.KindSpot, Since: contract.At(f.begin)}
		}
		nodes[f.node] = n
	}
	return nodes
}

// page as it stands: a launched node is Ready after two minutes.
func (l *life) page(now time.Time) *statuspage.Page {
	now = now.Add(-l.lag("page", now))
	page := &statuspage.Page{Written: now}
	for _, name := range l.groups {
		line := statuspage.GroupLine{Name: name, Max: 1000, PricePerHour: 0.1}
		for _, f := range l.facts {
			if f.kind != happening.ScaleUp || f.group != name || now.Before(f.begin) {
				continue
			}
			line.Desired++
			if !now.Before(f.begin.Add(2 * time.Minute)) {
				line.Ready++
			}
		}
		page.Groups = append(page.Groups, line)
	}
	return page
}

// inbox is what a service got.
type inbox struct {
	mu       sync.Mutex
	rand     *rand.Rand
	updates  bool
	firsts   map[string]int // new messages, by the happening's ID
	ends     map[string]int // messages that say that it has ended
	final    map[string]happening.Happening
	inFlight map[string]int // of those, delivered after their sender was killed
	posted   int
}

// incarnation is one process: what it does after it was killed nobody sees, but for what was in
// flight.
type incarnation struct{ dead atomic.Bool }

// disk is what outlives a process; store.Store has the tests of the real one.
type disk struct{ text []byte }

func (d *disk) load() (saved store.Saved, err error) {
	saved.Sent = delivery.Sent{}
	if len(d.text) > 0 {
		err = json.Unmarshal(d.text, &saved)
	}
	return saved, err
}

// saving is how a process writes, as long as it lives.
type saving struct {
	*incarnation
	to *disk
}

func (s saving) Save(_ context.Context, saved store.Saved) (store.Saved, error) {
	if s.dead.Load() {
		return saved, store.ErrOthers
	}
	var err error
	s.to.text, err = json.Marshal(saved)
	return saved, err
}

// mailbox is the way of one process to an inbox: slow, and failing at times.
type mailbox struct {
	*inbox
	of *incarnation
}

func (m mailbox) Send(ctx context.Context, words render.Message) (string, error) {
	m.mu.Lock()
	wait, fails := time.Duration(m.rand.IntN(8000))*time.Millisecond, m.rand.IntN(5) == 0
	arrives := m.rand.IntN(2) == 0
	m.mu.Unlock()
	time.Sleep(wait)
	dead := m.of.dead.Load()
	if fails || dead && !arrives {
		return "", send.Failed("it does not answer")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := words.Ref
	if ref == "" || !m.updates {
		m.posted++
		ref = fmt.Sprint("ref-", m.posted)
	}
	for _, h := range words.Of {
		if words.Ref == "" {
			m.firsts[h.ID]++
		}
		if words.Ended {
			m.ends[h.ID]++
		}
		if dead {
			m.inFlight[h.ID]++
		}
		if h.Revision > m.final[h.ID].Revision {
			m.final[h.ID] = h
		}
	}
	if !m.updates {
		ref = ""
	}
	return ref, nil
}

// More than a thousand things happen, and the notifier is killed twenty times: none is lost, and none is
// told twice but what was in flight.
func TestSoak(t *testing.T) {
	const facts, kills, long = 1500, 20, 4 * time.Hour
	for _, seed := range []uint64{1, 2} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { soak(t, rand.New(rand.NewPCG(seed, 0)), facts, kills, long) })
		})
	}
}

func soak(t *testing.T, r *rand.Rand, facts, kills int, long time.Duration) {
	begin := time.Now().Add(10 * time.Minute)
	l := newLife(r, facts, begin, long)
	services := []config.Service{{Name: "updates"}, {Name: "posts"}}
	inboxes := map[string]*inbox{}
	wants := map[string]delivery.Want{}
	for i, s := range services {
		inboxes[s.Name] = &inbox{rand: rand.New(rand.NewPCG(r.Uint64(), 1)), updates: i == 0, firsts: map[string]int{}, ends: map[string]int{}, final: map[string]happening.Happening{}, inFlight: map[string]int{}}
		wants[s.Name] = delivery.Want{Updates: i == 0, Routes: []delivery.Route{{}}}
	}
	var all []happening.Happening // as they were persisted last
	to := &disk{}
	kill := make([]time.Duration, kills)
	for i := range kill {
		kill[i] = time.Duration(r.Int64N(int64(long)))
	}
	slices.Sort(kill)
	kill = append(kill, long+2*time.Hour) // the end, when all has settled
	var largest int
	for _, after := range kill {
		one := &incarnation{}
		saved, err := to.load()
		if err != nil {
			t.Fatal(err)
		}
		senders := map[string]send.Sender{}
		for name, box := range inboxes {
			senders[name] = mailbox{box, one}
		}
		n := &notifier{
			services: services, wants: wants, senders: senders, store: saving{one, to},
			now: time.Now, changed: nil, logger: slog.New(slog.DiscardHandler), metrics: newMetrics(nil), alive: func() {},
			world: func(now time.Time) (happening.World, error) {
				return happening.World{Now: now, Nodes: l.nodes(now), Events: l.events(now), Page: l.page(now)}, nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.run(ctx, saved) }()
		time.Sleep(time.Until(begin.Add(after)))
		one.dead.Store(true)
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, store.ErrOthers) {
			t.Fatal(err)
		}
		object, err := to.load()
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(object.State.Happenings))
		all = object.State.Happenings
	}
	t.Logf("the state had %d happenings at the most, and has %d", largest, len(all))
	for name, box := range inboxes {
		box.judge(t, name, l, kills)
	}
}

// judge holds what a service got against what truly happened.
func (b *inbox) judge(t *testing.T, name string, l *life, kills int) {
	doubled := 0
	for id, h := range b.final {
		firsts := 1
		if !b.updates && b.ends[id] > 0 && b.firsts[id] > 1 {
			firsts = 2 // the start and the end
		}
		if extra := b.firsts[id] - firsts; extra > 0 {
			doubled += extra
			if extra > b.inFlight[id] {
				t.Errorf("%s: %s was told %d times, %d of them in flight", name, id, b.firsts[id], b.inFlight[id])
			}
		}
		// One that can be changed is corrected by what comes after the end.
		if b.ends[id] > 1+b.inFlight[id] && !b.updates {
			t.Errorf("%s: of %s the end was told %d times, %d of them in flight", name, id, b.ends[id], b.inFlight[id])
		}
		if b.ends[id] == 0 || !h.Over() {
			t.Errorf("%s: of %s the end was not told: %s since %s", name, id, h.Phase, h.Began)
		}
	}
	if doubled > kills*100 {
		t.Errorf("%s: %d were told twice", name, doubled)
	}
	lost := map[happening.Kind]int{}
	members, launches, failures := map[string]int{}, map[string]int{}, map[string]int{}
	for _, h := range b.final {
		switch h.Kind {
		case happening.ScaleUp:
			launches[h.Group] += h.Count
		case happening.LaunchFailed:
			failures[h.Group] += h.Count
		case happening.Interruption:
			members[h.Node+h.NoticeID]++
		case happening.ScaleDown:
			for key := range h.Members {
				members[key]++
			}
		}
	}
	for _, f := range l.facts {
		switch f.kind {
		case happening.ScaleUp:
			launches[f.group]--
		case happening.LaunchFailed:
			failures[f.group]--
		case happening.Interruption:
			if members[f.node+f.id] != 1 {
				lost[f.kind]++
			}
		case happening.ScaleDown:
			if key := happening.Member(f.node, f.id); members[key] != 1 {
				lost[f.kind]++
				for _, h := range b.final {
					if p, is := h.Members[key]; is {
						t.Logf("%s from %s to %s, %s, is %s in %s, which was from %s to %s", f.node, f.begin, f.end, f.last, p, h.ID, h.Began, h.Ended)
					}
				}
			}
		}
	}
	for _, group := range l.groups {
		if launches[group] != 0 || failures[group] != 0 {
			t.Errorf("%s: of %s %+d launches and %+d failures were told", name, group, launches[group], failures[group])
		}
	}
	if len(lost) > 0 {
		t.Errorf("%s: not told, or in more than one happening: %v", name, lost)
	}
	if len(b.final) < 1000 {
		t.Errorf("%s: %d happenings are too few", name, len(b.final))
	}
	t.Logf("%s: %d happenings, %d told twice, %d messages", name, len(b.final), doubled, b.posted)
}
