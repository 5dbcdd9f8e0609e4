package kube

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// clockTolerance is how far our clock may be from the API server's. Its dates are in
	// whole seconds, and are as old as the answer that they come with.
	clockTolerance = 5 * time.Second
	// promptAnswer is how long an answer may have taken for its date to tell the time.
	promptAnswer = time.Second
	// sureAfter is how long answers must agree before they move a clock that was set by one.
	sureAfter = time.Minute
)

// Clock goes by the API server's clock where the node's own is more than five seconds off.
// Dates on Nodes and in the persisted state then mean the same to whoever leads next. It
// never jumps with the node's clock: between two answers it goes on by the time that has
// passed.
//
// The first date counts at once, because by then nothing was decided. Later ones move the
// clock when every answer of a minute says the same: a wait ends early by a clock that is
// set forward, and one of several API servers, or what stands in their place, may be wrong.
//
// A nil Clock is the node's own.
type Clock struct {
	mu sync.Mutex
	// read was the time at the moment at, which is known as a moment of this process.
	read, at time.Time
	heard    bool
	doubted  doubt
}

// doubt is that answers say the clock is off by some time, all of them since a moment.
type doubt struct {
	off   time.Duration
	since time.Time // zero: the last one agreed with the clock
}

// NewClock starts with the node's own time.
func NewClock() *Clock {
	now := time.Now()
	return &Clock{read: now.Round(0), at: now}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return c.read.Add(time.Since(c.at)) }

// Follow has the clock hear the date of each prompt answer to clients made of a config.
func (c *Clock) Follow(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return listener{next, c} })
}

// hear has the clock know a date of the API server's.
func (c *Clock) hear(date time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	off := date.Sub(c.now())
	first := !c.heard
	c.heard = true
	switch {
	case off.Abs() <= clockTolerance:
		c.doubted = doubt{}
	case first || c.doubted.confirmedBy(off):
		c.read, c.at, c.doubted = date, time.Now(), doubt{}
	case c.doubted.since.IsZero() || !c.doubted.sharedBy(off):
		c.doubted = doubt{off, time.Now()}
	}
}

func (d doubt) sharedBy(off time.Duration) bool { return (off - d.off).Abs() <= clockTolerance }

func (d doubt) confirmedBy(off time.Duration) bool {
	return !d.since.IsZero() && d.sharedBy(off) && time.Since(d.since) >= sureAfter
}

// listener reads the date of answers. Where the server failed, it may be that of what stands before it.
// https://www.rfc-editor.org/rfc/rfc9110#field.date
type listener struct {
	next  http.RoundTripper
	clock *Clock
}

func (l listener) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := time.Now()
	answer, err := l.next.RoundTrip(r)
	if err != nil || answer.StatusCode >= http.StatusInternalServerError || time.Since(asked) > promptAnswer {
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		l.clock.hear(date)
	}
	return answer, nil
}

// WrappedRoundTripper is the transport below, for those who look for it there.
func (l listener) WrappedRoundTripper() http.RoundTripper { return l.next }
