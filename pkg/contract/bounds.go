package contract

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Whoever may write a Node may write anything there, up to 256 KiB of annotations. What is
// read of that is bounded, as it gets into verdicts, Events and the state. Programs of ours
// write far less.
// https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/
const (
	// mostRequest and mostReport are the most bytes of a request, in which people may give
	// a long reason, and of a report or of the notices.
	mostRequest, mostReport = 64 << 10, 32 << 10
	// mostEntries is how long a list may be, and mostID the most bytes of an id.
	mostEntries, mostID = 64, 512
	// MostText is the most bytes of a text for people; of longer ones the rest is cut.
	MostText = 1 << 10
)

// firstDate and lastDate bound what a date can be. Others are no dates of a drain.
var (
	firstDate = time.Unix(0, 0).UTC()
	lastDate  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// IsDate reports whether a moment can be one of a drain: what is read of others is not believed.
func IsDate(t time.Time) bool { return !t.Before(firstDate) && t.Before(lastDate) }

// ShortID is a text as part of an id. One that is long where it is written is told from others
// by its hash.
func ShortID(text string) string {
	const most = 256
	if written(text) <= most {
		return text
	}
	hash := fnv.New64a()
	hash.Write([]byte(text)) // never fails
	short := Shorten(text, min(len(text), most))
	for written(short) > most {
		short = Shorten(short, len(short)/2)
	}
	return fmt.Sprintf("%s%x", short, hash.Sum64())
}

// written is how many bytes a text has in an annotation, where some characters have six.
func written(text string) int {
	if isPlain(text) { // nearly all are, and a drain asks for each pod
		return len(text)
	}
	return len(encode(text)) - len(`""`)
}

// isPlain reports whether a text stands in an annotation as it is.
func isPlain(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			return false
		}
	}
	return true
}

// tooLong says that a value, or something in it, is longer than it may be. what names it.
func tooLong(what string, has, most int, unit string) error {
	if has <= most {
		return nil
	}
	return fmt.Errorf("%s has %d %s: want at most %d", what, has, unit, most)
}

// boundIDs holds a list of ids to their bounds.
func boundIDs(what string, ids []string) error {
	if err := tooLong(what, len(ids), mostEntries, "entries"); err != nil {
		return err
	}
	for _, id := range ids {
		if err := tooLong(what, written(id), mostID, "bytes in an entry"); err != nil {
			return err
		}
	}
	return nil
}

// bound holds a report to its bounds, and shortens what is for people.
func (r *Report) bound() error {
	var called []string
	for _, c := range r.LastCalls {
		called = append(called, c.ID)
	}
	for _, list := range []struct {
		name string
		ids  []string
	}{{"answers", r.Answers}, {"blockedBy", r.BlockedBy}, {"overdue", r.Overdue}, {"told", r.Told}, {"lastCalls", called}, {"wants", []string{r.Wants}}, {"kind", []string{string(r.Kind)}}} {
		if err := boundIDs(AnnotationDrainReport+" "+list.name, list.ids); err != nil {
			return err
		}
	}
	r.shorten()
	return nil
}

func (r *Report) shorten() {
	r.Reason, r.Message, r.Version = Shorten(r.Reason, MostText), Shorten(r.Message, MostText), Shorten(r.Version, MostText)
}

// bound holds a request to its bounds, and shortens what is for people.
func (r *Request) bound() error {
	r.shorten()
	return tooLong(AnnotationDrainRequest+" id", written(r.ID), mostID, "bytes")
}

func (r *Request) shorten() {
	r.Reason, r.By = Shorten(r.Reason, MostText), Shorten(r.By, MostText)
}

// bound holds notices to their bounds, and shortens what is for people.
func (l NoticedList) bound() error {
	if err := tooLong(AnnotationNotices, len(l), mostEntries, "entries"); err != nil {
		return err
	}
	for i := range l {
		if err := tooLong(AnnotationNotices+" id", written(l[i].ID), mostID, "bytes"); err != nil {
			return err
		}
	}
	copy(l, l.shortened(MostText))
	return nil
}

// shortened is the list with what is for people cut.
func (l NoticedList) shortened(most int) NoticedList {
	l = slices.Clone(l)
	for i := range l {
		l[i].Reason = Shorten(l[i].Reason, most)
	}
	return l
}

// leastText is the least that is left of a text for people.
const leastText = 32

// fit is the list with its texts so short that it can be read again.
func (l NoticedList) fit() NoticedList {
	l = l.shortened(MostText)
	for most := MostText / 2; most >= leastText && len(encode(l)) > mostReport; most /= 2 {
		l = l.shortened(most)
	}
	return l
}

// fit is the report with its texts so short that it can be read again.
func (r Report) fit() Report {
	r.shorten()
	for most := MostText / 2; most >= leastText && len(encode(r)) > mostReport; most /= 2 {
		r.Reason, r.Message, r.Version = Shorten(r.Reason, most), Shorten(r.Message, most), Shorten(r.Version, most)
	}
	return r
}
