package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is read of a Node is bounded, and the error names the key and the bound.
func TestParseHasBounds(t *testing.T) {
	long, many := strings.Repeat("ä", 100<<10), slices.Repeat([]string{"a"}, mostEntries+1)
	controls := strings.Repeat("\x01", 100) // each has six bytes where it is written
	report := func(r Report) error {
		r.Phase = PhaseBlocked
		_, err := ParseReport(encode(r))
		return err
	}
	request := func(r Request) error {
		_, err := ParseRequest(encode(r))
		return err
	}
	notices := func(l NoticedList) error {
		_, err := ParseNoticed(encode(l))
		return err
	}
	for _, c := range []struct {
		reason string
		err    error
		want   string
	}{
		{"a report of 200 KiB", report(Report{Message: long}), AnnotationDrainReport + " has 2048"},
		{"many answers", report(Report{Answers: many}), AnnotationDrainReport + " answers has 65 entries: want at most 64"},
		{"much that blocks", report(Report{BlockedBy: many}), AnnotationDrainReport + " blockedBy has 65 entries"},
		{"much told", report(Report{Told: many}), AnnotationDrainReport + " told has 65 entries"},
		{"many last calls", report(Report{LastCalls: make(LastCalls, mostEntries+1)}), AnnotationDrainReport + " lastCalls has 65 entries"},
		{"a long answer", report(Report{Answers: []string{long[:mostID+2]}}), AnnotationDrainReport + " answers has 514 bytes in an entry: want at most 512"},
		{"a long wish", report(Report{Wants: long[:mostID+2]}), AnnotationDrainReport + " wants has 514 bytes"},
		{"a long kind", report(Report{Kind: Kind(long[:mostID+2])}), AnnotationDrainReport + " kind has 514 bytes"},
		{"a request of 200 KiB", request(Request{Reason: long}), AnnotationDrainRequest + " has 2048"},
		{"a long id", request(Request{ID: long[:mostID+2]}), AnnotationDrainRequest + " id has 514 bytes"},
		{"a word of 200 KiB", func() error { _, err := ParseRequest(long); return err }(), AnnotationDrainRequest + " has 2048"},
		{"notices of 200 KiB", notices(NoticedList{{Reason: long}}), AnnotationNotices + " has 2048"},
		{"many notices", notices(make(NoticedList, mostEntries+1)), AnnotationNotices + " has 65 entries"},
		{"many served", func() error { _, err := ParseServed(encode(make(ServedList, mostEntries+1))); return err }(), AnnotationServed + " has 65 entries"},
		{"served of 200 KiB", func() error { _, err := ParseServed(encode(ServedList{{ID: long}})); return err }(), AnnotationServed + " has 2048"},
		{"a long notice of a cordon", func() error { _, err := ParseCordon(encode(Cordon{Notice: long[:mostID+2]})); return err }(), AnnotationCordonedBy + " notice has 514 bytes"},
		{"a long notice id", notices(NoticedList{{ID: long[:mostID+2]}}), AnnotationNotices + " id has 514 bytes"},
		{"an answer that is long where it is written", report(Report{Answers: []string{controls}}), AnnotationDrainReport + " answers has 600 bytes in an entry"},
		{"a notice id that is long where it is written", notices(NoticedList{{ID: controls}}), AnnotationNotices + " id has 600 bytes"},
		{"a long number for an id", func() error { _, err := ParseRequest(`{"id":` + strings.Repeat("1", 50<<10) + `}`); return err }(), "is not valid JSON: json: cannot unmarshal number"},
		{"a long number of pods", func() error { _, err := ParseReport(`{"left":` + strings.Repeat("1", 20<<10) + `}`); return err }(), "is not valid JSON"},
		{"a long number for notices", func() error { _, err := ParseNoticed(strings.Repeat("1", 20<<10)); return err }(), "is not valid JSON"},
		{"a long kind of request", func() error {
			_, err := ParseRequest(`{"kind":"` + strings.Repeat("1", 50<<10) + `"}`)
			return err
		}(), "unknown kind of drain"},
		{"a date of another age", func() error { _, err := ParseReport(`{"phase":"Drained","since":"9999-12-31T00:00:00Z"}`); return err }(), "is not between 1970 and 2200"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.reason, c.err, c.want)
		}
		if c.err != nil && len(c.err.Error()) > 300 {
			t.Errorf("%s: the error has %d bytes", c.reason, len(c.err.Error()))
		}
	}
}

// What is read of a date is what is taken for one, to the second.
func TestDatesAreRead(t *testing.T) {
	for _, at := range []time.Time{firstDate.Add(-time.Second), firstDate, lastDate.Add(-time.Second), lastDate, lastDate.Add(time.Second)} {
		var read Time
		if err := read.UnmarshalJSON([]byte(`"` + at.Format(time.RFC3339) + `"`)); IsDate(at) != (err == nil) {
			t.Errorf("%s is a date: %v, and reads with %v", at, IsDate(at), err)
		}
	}
}

// Characters that take six bytes where they are written count as six.
func TestShortIDIsShortWhereItIsWritten(t *testing.T) {
	for _, long := range []string{strings.Repeat("\x01", 300), strings.Repeat("<", 100), strings.Repeat("ä", 300)} {
		id := ShortID(long)
		if written(id) > 256+16 || id == ShortID(long+"!") {
			t.Errorf("%d bytes have an id of %d: %s", len(long), written(id), id)
		}
	}
}

// What is counted is what is written.
func TestWrittenIsWhatIsWritten(t *testing.T) {
	texts := []string{"", "shop/web-1", "é", "\u2028", "\xff"}
	for c := range 256 {
		texts = append(texts, string([]byte{byte(c)}), "a"+string(rune(c)))
	}
	for _, text := range texts {
		if n, want := written(text), len(encode(text))-2; n != want {
			t.Errorf("%q takes %d bytes, want %d", text, n, want)
		}
	}
}

// Of too many notices and long texts as much is written as can be read.
func TestWhatIsWrittenFits(t *testing.T) {
	long := strings.Repeat("\x01", MostText)
	var list NoticedList
	for range 40 {
		list = append(list, Noticed{ID: long[:40], Reason: long})
	}
	again, err := ParseNoticed(list.String())
	if err != nil || again.String() != list.String() {
		t.Errorf("%d bytes of notices, error %v", len(list.String()), err)
	}
	report := Report{Phase: PhaseBlocked, Reason: long, Message: long, Version: long, Answers: slices.Repeat([]string{strings.Repeat("a", 400)}, 40)}
	read, err := ParseReport(report.String())
	if err != nil || read.String() != report.String() {
		t.Errorf("%d bytes of a report, error %v", len(report.String()), err)
	}
}

// A request without an id has one that tells it from others, however long its reason is, and
// that the reason of 45 KiB, which is cut, does not outgrow.
func TestRequestsOfLongReasons(t *testing.T) {
	ids := map[string]bool{}
	for _, length := range []int{100, 256, 258, mostID, MostText, 45 << 10} {
		for _, end := range []string{"a", "b"} {
			reason := strings.Repeat("ä", length/2-1) + end
			for range 2 {
				r, err := ParseRequest(encode(Request{Reason: reason}))
				if err != nil || len(r.ID) > mostID || r.Reason != Shorten(reason, MostText) || !strings.HasPrefix(r.ID, "request:ääää") {
					t.Errorf("a reason of %d bytes: id of %d bytes, reason of %d, %v", len(reason), len(r.ID), len(r.Reason), err)
				}
				ids[r.ID] = true
				again, err := ParseRequest(r.String())
				if err != nil || again.ID != r.ID {
					t.Errorf("written again: %v", err)
				}
			}
		}
	}
	if len(ids) != 12 {
		t.Errorf("%d ids of 12 requests", len(ids))
	}
}

// Texts for people are cut where they are read and where they are written, so that what a
// program of ours writes can always be read, and reads as it was written.
func TestTextsAreCut(t *testing.T) {
	long := strings.Repeat("ä", 100<<10)
	r, err := ParseReport(Report{Phase: PhaseFailed, Reason: long, Message: long, Version: long}.String())
	if err != nil || r.Message != Shorten(long, MostText) || r.Reason != r.Message || r.Version != r.Message {
		t.Errorf("a report reads %d bytes, error %v", len(r.Message), err)
	}
	q, err := ParseRequest(Request{ID: "i", Reason: long, By: long}.String())
	if err != nil || q.Reason != Shorten(long, MostText) || q.By != q.Reason {
		t.Errorf("a request reads %d bytes, error %v", len(q.Reason), err)
	}
	l, err := ParseNoticed(NoticedList{{ID: "i", Reason: long}}.String())
	if err != nil || l[0].Reason != Shorten(long, MostText) {
		t.Errorf("notices read as %d, error %v", len(l), err)
	}
	l, err = ParseNoticed(fmt.Sprintf(`[{"reason":%q}]`, long[:4<<10]))
	if err != nil || l[0].Reason != Shorten(long, MostText) {
		t.Errorf("a notice reads %d bytes, error %v", len(l[0].Reason), err)
	}
}
