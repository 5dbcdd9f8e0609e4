package happening

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// margin is how long after another an Event may be seen that the API server dates before it: its
// replicas have clocks of their own, and a call takes its time.
const margin = 5 * time.Minute

// mostTaken is how many Events are remembered one by one. In five minutes a scaler writes six
// thousand at the most; of more the margin gets shorter.
const mostTaken = 8192

// Cursor says which Events were taken in: all that are dated before After, and those of Taken.
type Cursor struct {
	After time.Time `json:"after,omitzero"`
	// Taken has the date of each, in Unix seconds, by the hash of its UID.
	Taken map[string]int64 `json:"taken,omitempty"`
}

func (c Cursor) clone() Cursor { c.Taken = cloned(c.Taken); return c }

// hash is short enough that thousands of them have room.
func hash(texts ...string) string {
	h := fnv.New64a()
	for _, t := range texts {
		h.Write([]byte(t)) // never fails
		h.Write([]byte{0})
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// fresh are the Events that were not taken in yet, in the order of their dates. Each writer has a
// cursor of its own: those of one may be seen long before those of another.
func (f *fold) fresh() []Event {
	byWriter := map[string][]Event{contract.AppAgent: nil, contract.AppScaler: nil}
	for _, e := range f.world.Events {
		byWriter[e.Writer] = append(byWriter[e.Writer], e)
	}
	var fresh []Event
	for writer, events := range byWriter {
		c := f.Cursors[writer].clone()
		fresh = append(fresh, c.take(events, f.world.Now)...)
		f.Cursors[writer] = c
	}
	slices.SortFunc(fresh, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.UID, b.UID))
	})
	return fresh
}

// take takes Events in, and gives those that were not yet. At the very beginning all are old
// news.
func (c *Cursor) take(events []Event, now time.Time) []Event {
	if c.After.IsZero() {
		c.After = now
	}
	var fresh []Event
	newest := c.After.Add(margin)
	for _, e := range events {
		key := hash(e.UID)
		if _, taken := c.Taken[key]; taken || e.At.Before(c.After.Truncate(time.Second)) {
			continue
		}
		c.Taken[key] = e.At.Unix()
		fresh = append(fresh, e)
		if e.At.After(newest) && !e.At.After(now.Add(margin)) {
			newest = e.At // one that is dated in the future moves nothing
		}
	}
	c.advance(newest.Add(-margin))
	return fresh
}

// advance forgets what is dated before a moment.
func (c *Cursor) advance(to time.Time) {
	if to.After(c.After) {
		c.After = to
	}
	if n := len(c.Taken) - mostTaken; n > 0 {
		dates := make([]int64, 0, len(c.Taken))
		for _, at := range c.Taken {
			dates = append(dates, at)
		}
		slices.Sort(dates)
		c.After = latest(c.After, time.Unix(dates[n-1]+1, 0).UTC())
	}
	for key, at := range c.Taken {
		if time.Unix(at, 0).Before(c.After.Truncate(time.Second)) {
			delete(c.Taken, key)
		}
	}
}
