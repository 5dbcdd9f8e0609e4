package notice_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/agent/notice"
)

// bodies draws what the metadata might answer: sense, nonsense, and sense that
// was cut and pasted.
func bodies(t *rapid.T) string {
	sense := rapid.SampledFrom([]string{
		"Terminated", "Warmed:Stopped", "InService",
		`{"action":"stop","time":"2025-01-01T12:02:00Z"}`,
		`{"noticeTime":"2025-01-01T12:02:00Z"}`,
		list(event("instance-reboot", "e1", "active", one), event("x", "e2", "canceled", one), event("system-reboot", "e1", "active", "never")),
		"[7,null,{},[]]",
	})
	return rapid.OneOf(sense, rapid.String(), rapid.Custom(func(t *rapid.T) string {
		a, b := sense.Draw(t, "a"), sense.Draw(t, "b")
		return a[:rapid.IntRange(0, len(a)).Draw(t, "until")] + b[rapid.IntRange(0, len(b)).Draw(t, "from"):]
	})).Draw(t, "body")
}

// Whatever the metadata answer: what is read of it has an id that names its
// cause, stands there once, and is the same when it is read again; and what is
// not read is an error.
func TestParseAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := bodies(t)
		for _, s := range notice.Sources {
			got, err := s.Parse(instance, body)
			again, _ := s.Parse(instance, body)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Fatalf("%s, read twice:\n%s", s.Path, diff)
			}
			if len(notice.IDs(got)) != len(got) {
				t.Fatalf("%s: %v, and not each once", s.Path, notice.IDs(got))
			}
			for _, n := range got {
				if c, ok := notice.OfMetadata(n.ID); !ok || c != n.Cause || n.Kind != c.Kind() || !strings.Contains(n.ID, ":"+instance) {
					t.Fatalf("%s: %+v", s.Path, n)
				}
			}
			if err != nil && !strings.HasPrefix(err.Error(), string(s.Path)) {
				t.Fatalf("%s: %v does not begin with the path", s.Path, err)
			}
			if s.History == nil {
				continue
			}
			rest, _ := s.History.Without(got, bodies(t))
			for _, n := range rest {
				if !strings.Contains(strings.Join(notice.IDs(got), " "), n.ID) {
					t.Fatalf("the history has brought %s", n.ID)
				}
			}
		}
	})
}

// The list is the same whatever the order, and however often a notice was seen.
func TestStandingIgnoresOrder(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) notice.Notice {
		c := rapid.SampledFrom(notice.Causes()).Draw(t, "cause")
		n := notice.Notice{
			ID:     string(c) + rapid.SampledFrom([]string{":a", ":b"}).Draw(t, "id"),
			Cause:  c,
			Kind:   c.Kind(),
			Source: rapid.SampledFrom([]notice.SourceName{notice.FromRequest, notice.FromMaintenance}).Draw(t, "source"),
			Reason: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "reason"),
		}
		if in := rapid.IntRange(0, 2).Draw(t, "in"); in > 0 {
			n.Deadline = noon.Add(time.Duration(in) * time.Hour)
		}
		if in := rapid.IntRange(0, 2).Draw(t, "not after"); in > 0 {
			n.NotAfter = noon.Add(time.Duration(in) * time.Hour)
		}
		return n
	})
	rapid.Check(t, func(t *rapid.T) {
		notices := rapid.SliceOfN(one, 0, 6).Draw(t, "notices")
		want := notice.Standing(notices...)
		turned := rapid.Permutation(append(notices, notices...)).Draw(t, "turned")
		if diff := cmp.Diff(want, notice.Standing(turned...)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want, notice.Standing(want...)); diff != "" {
			t.Fatalf("of the list itself:\n%s", diff)
		}
		for i := 1; i < len(want); i++ {
			if want[i-1].Kind.Strength() < want[i].Kind.Strength() {
				t.Fatalf("%s stands before %s", want[i-1].ID, want[i].ID)
			}
		}
	})
}

// A spot interruption whose time is another one at each answer is one notice, with the id
// of the first and the earliest time; another action, or instance, is another one, and what
// is no interruption stays as it is.
func TestInterruptionsMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(-300, 300).Draw(t, "s")) * time.Second
		})
		read := func(instance, action string, at time.Time) notice.Notice {
			list, err := notice.ParseInstanceAction(instance, `{"action":"`+action+`","time":"`+at.Format(time.RFC3339)+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			return list[0]
		}
		others := []notice.Notice{
			read(instance, "stop", noon), read("i-2", "terminate", noon),
			{ID: "system-reboot:" + instance + ":e1", Cause: notice.SystemReboot, Kind: notice.SystemReboot.Kind(), Deadline: noon},
			{ID: "system-reboot:" + instance + ":e2", Cause: notice.SystemReboot, Kind: notice.SystemReboot.Kind(), Deadline: noon},
		}
		first := read(instance, "terminate", noon.Add(offset.Draw(t, "first")))
		earliest, known := first, append([]notice.Notice{first}, others...)
		for _, off := range rapid.SliceOfN(offset, 1, 10).Draw(t, "answers") {
			now := read(instance, "terminate", noon.Add(off))
			if now.Deadline.Before(earliest.Deadline) {
				earliest = now
			}
			given := rapid.Permutation(append([]notice.Notice{now, first}, others...)).Draw(t, "order")
			known = notice.Interruptions(given, known)
		}
		want := first
		want.Deadline, want.Reason = earliest.Deadline, earliest.Reason
		if diff := cmp.Diff(notice.Standing(append(others, want)...), known); diff != "" {
			t.Fatal(diff)
		}
	})
}
