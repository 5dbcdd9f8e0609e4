package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/laws"
)

// book keeps what there is to know of every instance that there ever was; the cloud
// forgets those that are gone.
type book struct {
	mu       sync.Mutex
	machines map[string]*machine
	max      map[string]int // of the groups
	// raised is when others raised the desired capacity of each group.
	raised map[string][]time.Time
}

type machine struct {
	group, node    string
	zone           string
	launched, gone time.Time
	// waits are since when it has waited for our hook.
	waits []time.Time
	// retired means that EC2 has announced to retire it, or to stop it: the scaler gives it up
	// once it is drained.
	retired bool
}

func newBook() *book {
	return &book{machines: map[string]*machine{}, max: map[string]int{}, raised: map[string][]time.Time{}}
}

// see takes a snapshot of an instance.
func (b *book) see(i fakeaws.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[i.ID]
	if m == nil {
		m = &machine{group: i.Group, node: i.PrivateDNSName, zone: i.Zone, launched: i.LaunchedAt}
		b.machines[i.ID] = m
	}
	if i.Gone {
		m.gone = time.Now()
	}
	for _, a := range i.Waiting {
		if a.Hook == ourHook && !slices.ContainsFunc(m.waits, a.Since.Equal) {
			m.waits = append(m.waits, a.Since)
		}
	}
}

// retire notes that EC2 has announced the end of an instance.
func (b *book) retire(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.machines[id]; m != nil {
		m.retired = true
	}
}

// cutOff reports whether so many of the machines of a zone are silent at a moment that it looks
// partitioned, and that one of them has no other reason to go.
func (b *book) cutOff(p partition, id string, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	silent, all := 0, 0
	for other, m := range b.machines {
		if m.zone != p.zone || m.launched.After(at) || !m.gone.IsZero() && m.gone.Before(at) {
			continue
		}
		all++
		if slices.Contains(p.instances, other) {
			silent++
		}
	}
	m := b.machines[id]
	return (m == nil || !m.retired) && silent >= 2 && (silent == all || silent >= 3 && silent*100 > unreadyPercent*all)
}

func (b *book) sizes(groups []fakeaws.GroupStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range groups {
		b.max[g.Spec.Name] = max(b.max[g.Spec.Name], g.Max)
	}
}

// raise notes that somebody raises the desired capacity of a group.
func (b *book) raise(group string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raised[group] = append(b.raised[group], time.Now())
}

// raisedBefore reports whether somebody raised the desired capacity of a group, and the scaler may not
// have read so.
func (b *book) raisedBefore(group string, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.raised[group], func(r time.Time) bool { return r.Before(at) && at.Sub(r) < readBy })
}

func (b *book) machine(id string) (laws.Machine, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.machines[id]
	if m == nil {
		return laws.Machine{}, false
	}
	return laws.Machine{Group: m.group, Max: b.max[m.group], Launched: m.launched}, true
}

// ofNode is the instance that a Node is of, whatever its provider id says: the last one that
// had its name.
func (b *book) ofNode(node string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := ""
	for id, m := range b.machines {
		if m.node == node && (found == "" || m.launched.After(b.machines[found].launched)) {
			found = id
		}
	}
	return found
}

// waited is for how long an instance had waited for its hooks at a moment.
func (b *book) waited(id string, at time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var since time.Duration
	if m := b.machines[id]; m != nil {
		for _, w := range m.waits {
			if !w.After(at) {
				since = at.Sub(w)
			}
		}
	}
	return since
}

// share is which part of the live instances some are at a moment.
func (b *book) share(at time.Time, some func(id string, launched time.Time) bool) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, of := 0, 0
	for id, m := range b.machines {
		if m.launched.After(at) || !m.gone.IsZero() && m.gone.Before(at) {
			continue
		}
		all++
		if some(id, m.launched) {
			of++
		}
	}
	return float64(of) / float64(max(1, all))
}

// unrecognised finds what was done to instances that serve another cluster, or whose Node
// has no provider id: the first are ended one by one at most, and none while they
// are many or their whole group is foreign; the others never. A hook of neither is
// completed before the time for a drain is over.
func (s *soak) unrecognised(calls []fakeaws.Call, audit []laws.Request) []string {
	brake := laws.Brake{Machine: s.book.machine, Provision: provision, BackOff: backOff, Away: s.outages}
	found := brake.Breaches(audit, calls)
	for _, c := range calls {
		id := c.Params["InstanceId"]
		m, known := s.book.machine(id)
		ends, completes := c.Operation == "TerminateInstanceInAutoScalingGroup", c.Operation == "CompleteLifecycleAction"
		if c.Error != "" || !known || !ends && !completes {
			continue
		}
		tell := func(why string, words ...any) {
			found = append(found, fmt.Sprintf("%s of %s of %s at %s: %s", c.Operation, id, m.Group, c.Time.Format("15:04:05.000"), fmt.Sprintf(why, words...)))
		}
		elsewhere, anonymous := s.strangers.at(id, c.Time), s.watch.anonymousAt(id, c.Time)
		switch {
		case !elsewhere && !anonymous:
		case m.Group == foreign:
			tell("it serves another cluster, as its whole group does")
		case anonymous && ends:
			tell("its Node is there and has no provider id")
		case ends:
			share := s.book.share(c.Time, func(id string, launched time.Time) bool {
				return s.strangers.at(id, c.Time) && c.Time.Sub(launched) > readBy
			})
			if share > strangersAllowed {
				tell("it serves another cluster, as %.0f%% of the instances do", 100*share)
			}
		case !s.endedBy(calls, id, c.Time) && s.book.waited(id, c.Time) < drainTime-sight:
			tell("it has no Node here, and has waited for %s", s.book.waited(id, c.Time).Round(time.Second))
		}
	}
	return found
}

// readBy is after how long the scaler has read what happened at AWS, also where answers are ten
// seconds old.
const readBy = 30 * time.Second

// strangersAllowed is a share of unrecognised instances above which none is ended for
// certain: --max-unrecognised-share, and one instance more that the scaler may not
// count yet.
const strangersAllowed = 0.10 + 0.07

// endedBy reports whether the scaler itself had ended an instance.
func (s *soak) endedBy(calls []fakeaws.Call, id string, before time.Time) bool {
	return slices.ContainsFunc(calls, func(c fakeaws.Call) bool {
		return c.Operation == "TerminateInstanceInAutoScalingGroup" && c.Error == "" && c.Params["InstanceId"] == id && c.Time.Before(before)
	})
}

// strangers are the instances that serve another cluster, and until when.
type strangers map[string]laws.Span

func (t strangers) at(id string, at time.Time) bool {
	span, ok := t[id]
	return ok && span.Holds(at)
}

// note looks for those that have come, and those that have joined here after all.
func (t strangers) note(w interface{ Elsewhere(string) bool }, all []fakeaws.Instance) {
	for _, i := range all {
		span, known := t[i.ID]
		switch is := w.Elsewhere(i.ID); {
		case is && !known:
			t[i.ID] = laws.Span{From: i.LaunchedAt, To: forever}
		case !is && known && span.To.Equal(forever) && !i.Gone:
			span.To = time.Now()
			t[i.ID] = span
		}
	}
}

// late finds hooks of ours that timed out, and heartbeats that came when little of the
// time was left, while a scaler led that had all it needs.
func (s *soak) late(calls []fakeaws.Call) []string {
	var found []string
	for _, t := range s.w.AWS.Timeouts() {
		over := t.At.Sub(t.Action.Since) >= drainTime-sight // nobody has to keep it any longer
		if t.Action.Hook != ourHook || t.Group == foreign || over || s.disturbed(t.Action.Beat, t.At) {
			continue
		}
		found = append(found, fmt.Sprintf("the hook of %s of %s timed out at %s, %s after the last heartbeat", t.Instance, t.Group, t.At.Format("15:04:05.000"), t.At.Sub(t.Action.Beat).Round(time.Second)))
	}
	last := map[string]time.Time{}
	for _, c := range calls {
		if c.Operation != "RecordLifecycleActionHeartbeat" || c.Error != "" {
			continue
		}
		id := c.Params["InstanceId"]
		from := c.Time.Add(-s.book.waited(id, c.Time))
		if last[id].After(from) {
			from = last[id]
		}
		last[id] = c.Time
		if gap := c.Time.Sub(from); gap > heartbeatBound && !s.disturbed(from, c.Time) {
			found = append(found, fmt.Sprintf("a heartbeat of %s came at %s, %s after the one before", id, c.Time.Format("15:04:05.000"), gap.Round(time.Millisecond)))
		}
	}
	return found
}

// disturbed reports whether something kept the scaler from its work between two moments:
// no leader, no API server, an AWS that fails, a clock that is wrong.
func (s *soak) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(slices.Concat(s.outages, s.hampered), func(x laws.Span) bool {
		return x.From.Before(to) && from.Before(x.To.Add(recovery))
	})
}

// recovery is how long after such a time the scaler may still be at work on it: a watch
// of the API server takes up to half a minute to come back, a lease 15 s.
const recovery = 45 * time.Second

// hamper notes that something keeps the scaler from its work, until the func that it
// returns is called.
func (s *soak) hamper() (over func()) {
	s.hampered = append(s.hampered, laws.Span{From: time.Now(), To: forever})
	at := len(s.hampered) - 1
	return func() { s.hampered[at].To = time.Now() }
}

// inOneLine joins what was found of many for people.
func inOneLine(all []fakeaws.Instance) string {
	var ids []string
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	return strings.Join(ids, " ")
}
