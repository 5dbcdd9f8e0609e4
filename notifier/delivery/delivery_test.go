package delivery

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/notifier/happening"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func some(kind happening.Kind, n int) happening.State {
	var s happening.State
	for i := range n {
		s.Happenings = append(s.Happenings, happening.Happening{ID: fmt.Sprint(kind, i), Kind: kind, Revision: 1, Began: noon, Group: "web", Namespaces: []string{"shop"}})
	}
	return s
}

var everything = Want{Routes: []Route{{}}}

// all sends what a service is owed until it is owed nothing more, and says how many happenings
// each message is about.
func all(s *Service, w Want, state happening.State, now time.Time) (sizes []int, again time.Time) {
	for {
		m, owed, at := Next(s, w, state, now)
		if !owed {
			return sizes, at
		}
		sizes = append(sizes, len(m.Of))
		s.Done(m, "ref", now)
	}
}

// A burst is one message with a count; what comes after waits, and is one, too.
func TestBurst(t *testing.T) {
	s := &Service{}
	state := some(happening.ScaleUp, 12)
	sizes, _ := all(s, everything, state, noon)
	if diff := cmp.Diff([]int{12}, sizes); diff != "" {
		t.Error(diff)
	}
	s = &Service{}
	sizes, _ = all(s, everything, some(happening.ScaleUp, burst), noon)
	if diff := cmp.Diff([]int{1, 1, 1, 1, 1}, sizes); diff != "" {
		t.Error(diff)
	}
	sizes, again := all(s, everything, state, noon.Add(time.Second))
	if len(sizes) != 0 || !again.Equal(noon.Add(window)) {
		t.Errorf("messages %v, again at %s", sizes, again)
	}
	sizes, _ = all(s, everything, state, again)
	if diff := cmp.Diff([]int{7}, sizes); diff != "" {
		t.Error(diff)
	}
	// Kinds do not wait for one another.
	state.Happenings = append(state.Happenings, some(happening.Fault, 1).Happenings...)
	if sizes, _ = all(s, everything, state, again); len(sizes) != 1 {
		t.Errorf("messages %v", sizes)
	}
}

// What is critical waits for no change of another message, and no message that changes all the
// time keeps others waiting.
func TestOrder(t *testing.T) {
	can := everything
	can.Updates = true
	s, state := &Service{}, some(happening.ScaleUp, burst)
	all(s, can, state, noon)
	change := func(i int) { state.Happenings[i].Revision++ }
	for i := range burst {
		change(i)
	}
	state.Happenings = append(state.Happenings,
		happening.Happening{ID: "warning", Kind: happening.Interruption, Revision: 1, Began: noon.Add(time.Second)},
		happening.Happening{ID: "critical", Kind: happening.Interruption, Phase: happening.Failed, Revision: 1, Began: noon.Add(time.Minute)})
	first, owed, _ := Next(s, can, state, noon.Add(time.Minute))
	if !owed || first.Of[0].ID != "critical" {
		t.Fatalf("first comes %+v", first.Of)
	}
	s.Done(first, "ref", noon.Add(time.Minute))
	seen := map[string]bool{}
	for i := range 2 * burst {
		at := noon.Add(time.Minute + time.Duration(i+1)*time.Second)
		m, owed, _ := Next(s, can, state, at)
		if !owed {
			break
		}
		seen[m.Of[0].ID] = true
		s.Done(m, "ref", at)
		change(0)
		change(1)
	}
	for _, h := range state.Happenings {
		if h.ID != "critical" && !seen[h.ID] {
			t.Errorf("%s is not heard of while others change", h.ID)
		}
	}
}

// Of a burst that is refused because of one of it, all others arrive, and what else happens does
// not wait for it.
func TestRefusedBurst(t *testing.T) {
	s, state := &Service{}, some(happening.ScaleUp, 12)
	arrived, now := map[string]bool{}, noon
	culprit := state.Happenings[7].ID
	for step := range 200 {
		m, owed, again := Next(s, everything, state, now)
		switch {
		case !owed && again.IsZero():
			if len(arrived) != 12 || arrived[culprit] || s.Given != 1 || len(s.Refused) != 0 {
				t.Errorf("%d arrived, %d given up, refused are %v", len(arrived), s.Given, s.Refused)
			}
			return
		case !owed:
			now = again
			continue
		}
		if step == 1 {
			if !arrived["other"] && m.Of[0].ID != "other" {
				t.Errorf("after the refusal comes %s", m.Of[0].ID)
			}
		}
		bad := false
		for _, h := range m.Of {
			bad = bad || h.ID == culprit
		}
		if !bad {
			for _, h := range m.Of {
				arrived[h.ID] = true
			}
			s.Done(m, "", now)
			continue
		}
		if s.Refuse(m, now, func(int) time.Duration { return time.Minute }) >= 3 {
			s.GaveUp(m, now)
		}
		if step == 0 {
			state.Happenings = append(state.Happenings, happening.Happening{ID: "other", Kind: happening.ScaleUp, Revision: 1, Began: now})
		}
	}
	t.Error("there is no end of it")
}

// A message is changed where the service can, else the end is one more; and what has begun and
// ended meanwhile is one.
func TestPhases(t *testing.T) {
	state := some(happening.ScaleUp, 1)
	h := &state.Happenings[0]
	updates, posts, late := &Service{}, &Service{}, &Service{}
	can := everything
	can.Updates = true
	all(updates, can, state, noon)
	all(posts, everything, state, noon)
	h.Revision++
	m, owed, _ := Next(updates, can, state, noon)
	if !owed || m.Ref != "ref" || m.Ended() {
		t.Errorf("a change: %v, %+v", owed, m)
	}
	updates.Done(m, "ref", noon)
	if _, owed, _ := Next(posts, everything, state, noon); owed {
		t.Error("a change is sent where nothing can be changed")
	}
	h.Ended = noon
	h.Revision++
	for _, s := range []struct {
		*Service
		Want
	}{{updates, can}, {posts, everything}, {late, everything}} {
		m, owed, _ := Next(s.Service, s.Want, state, noon)
		if !owed || !m.Ended() || s.Told(h.ID) {
			t.Errorf("the end: %v, %+v", owed, m)
		}
		s.Done(m, "ref", noon)
		if _, owed, _ := Next(s.Service, s.Want, state, noon); owed || !s.Told(h.ID) {
			t.Error("the end is sent twice")
		}
	}
	h.Revision++ // a late Event
	if _, owed, _ := Next(posts, everything, state, noon); owed {
		t.Error("what has ended is sent once more")
	}
	if _, owed, _ := Next(updates, can, state, noon); !owed {
		t.Error("what has ended is not corrected")
	}
}

// A message that lands when others were forgotten is still itself.
func TestForgetInFlight(t *testing.T) {
	state := some(happening.ScaleUp, 2)
	sent := Sent{"a": {}}
	all(sent["a"], everything, state, noon)
	state.Happenings[1].Ended = noon
	m, _, _ := Next(sent["a"], everything, state, noon)
	state.Happenings = state.Happenings[1:]
	sent = sent.Clone()
	sent.Forget(state, []string{"a"})
	sent["a"].Done(m, "", noon)
	if len(sent["a"].Messages) != 1 || !sent["a"].Told(state.Happenings[0].ID) {
		t.Errorf("%+v", sent["a"].Messages)
	}
	sent.Forget(state, nil)
	if len(sent) != 0 {
		t.Error("a service that is no more is kept")
	}
}

func TestRoutes(t *testing.T) {
	h := some(happening.DrainBlocked, 1).Happenings[0]
	for _, c := range []struct {
		route Route
		want  bool
	}{
		{Route{}, true},
		{Route{Kinds: []happening.Kind{happening.Fault}}, false},
		{Route{Kinds: []happening.Kind{happening.DrainBlocked}, Groups: []string{"w*"}}, true},
		{Route{Groups: []string{"batch"}}, false},
		{Route{Namespaces: []string{"sh?p"}}, true},
		{Route{Namespaces: []string{"kube-*"}}, false},
		{Route{Severity: happening.Warning}, true},
		{Route{Severity: happening.Critical}, false},
	} {
		if got := (Want{Routes: []Route{c.route}}).Fits(&h); got != c.want {
			t.Errorf("%+v: %v", c.route, got)
		}
	}
}

// Quiet hours go over midnight and follow the clock on the wall; what is critical comes all the
// same, and what has waited is one message.
func TestQuietHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w := Want{Routes: []Route{{Quiet: &Hours{From: 22 * time.Hour, To: 7 * time.Hour, Zone: berlin}}}}
	state := some(happening.ScaleUp, 8)
	for _, c := range []struct {
		at, until string // until is empty where it is not quiet
	}{
		{"2026-08-01T21:59:00+02:00", ""},
		{"2026-08-01T22:00:00+02:00", "2026-08-02T07:00:00+02:00"},
		{"2026-08-02T06:59:00+02:00", "2026-08-02T07:00:00+02:00"},
		{"2026-08-02T07:00:00+02:00", ""},
		{"2026-10-25T00:30:00+02:00", "2026-10-25T07:00:00+01:00"}, // the clock is set back
	} {
		now, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		s := &Service{}
		sizes, again := all(s, w, state, now)
		if c.until == "" {
			if len(sizes) != 1 {
				t.Errorf("%s: messages %v", c.at, sizes)
			}
			continue
		}
		if got := again.In(berlin).Format(time.RFC3339); len(sizes) != 0 || got != c.until {
			t.Errorf("%s: messages %v, again at %s", c.at, sizes, got)
		}
		failed := some(happening.Interruption, 1)
		failed.Happenings[0].Phase = happening.Failed
		if sizes, _ := all(s, w, failed, now); len(sizes) != 1 {
			t.Errorf("%s: what is critical waits", c.at)
		}
		if sizes, _ := all(s, w, state, again); len(sizes) != 1 {
			t.Errorf("%s: messages %v afterwards", c.at, sizes)
		}
	}
}

// An end that would be one more message waits in quiet hours, too; one that changes a message, or
// is critical, does not.
func TestQuietHoursHoldEnds(t *testing.T) {
	w := Want{Updates: true, Routes: []Route{{Quiet: &Hours{From: 22 * time.Hour, To: 7 * time.Hour, Zone: time.UTC}}}}
	night := noon.Add(11 * time.Hour)
	for _, c := range []struct {
		ref   string
		phase happening.Phase
		owed  bool
	}{{"", happening.Drained, false}, {"ref", happening.Drained, true}, {"", happening.Failed, true}} {
		s := &Service{}
		state := some(happening.Interruption, 1)
		m, _, _ := Next(s, w, state, noon)
		s.Done(m, c.ref, noon)
		h := &state.Happenings[0]
		h.Phase, h.Ended = c.phase, night
		h.Revision++
		_, owed, again := Next(s, w, state, night)
		if owed != c.owed || !owed && !again.Equal(noon.Add(19*time.Hour)) {
			t.Errorf("%+v: owed %v, again at %s", c, owed, again)
		}
		if _, owed, _ = Next(s, w, state, noon.Add(19*time.Hour)); !owed {
			t.Errorf("%+v: it is not owed in the morning", c)
		}
	}
}

func TestDigest(t *testing.T) {
	w := Want{Digest: &Daily{At: 9 * time.Hour, Zone: time.UTC}}
	s := &Service{}
	state := some(happening.AtMax, 1)
	state.Totals = happening.Totals{Since: noon, NodesUp: 3, Begun: map[happening.Kind]int{happening.ScaleUp: 2}, Saved: 1}
	nine := time.Date(2026, 8, 2, 9, 0, 0, 0, time.UTC)
	if _, again := all(s, w, state, noon); !again.Equal(nine) {
		t.Errorf("again at %s", again)
	}
	m, owed, _ := Next(s, w, state, nine.Add(time.Minute))
	if !owed || m.Digest == nil || m.Digest.NodesUp != 3 || len(m.Digest.Lasting) != 1 {
		t.Fatalf("%v %+v", owed, m.Digest)
	}
	s.Done(m, "", nine)
	if _, owed, _ := Next(s, w, state, nine.Add(time.Hour)); owed {
		t.Error("a digest twice a day")
	}
	state.Totals.NodesUp, state.Totals.Begun = 5, map[happening.Kind]int{happening.ScaleUp: 2, happening.Fault: 1}
	m, owed, _ = Next(s, w, state, nine.Add(24*time.Hour))
	if diff := cmp.Diff(map[happening.Kind]int{happening.Fault: 1}, m.Digest.Begun); diff != "" || !owed || m.Digest.NodesUp != 2 || m.Digest.Saved != 0 {
		t.Errorf("the next: %+v %s", m.Digest, diff)
	}
}

// A message that a service refuses keeps no other.
func TestGivenUp(t *testing.T) {
	s := &Service{}
	state := some(happening.ScaleUp, 1)
	m, _, _ := Next(s, everything, state, noon)
	s.GaveUp(m, noon)
	if _, owed, _ := Next(s, everything, state, noon); owed || s.Given != 1 {
		t.Error("it is owed still")
	}
}
