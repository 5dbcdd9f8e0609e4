package observe

import (
	"sync"
	"time"
)

// outage knows since when everything vital has been seen as it comes. What was
// not heard while the API server was away has perhaps been said all the same.
type outage struct {
	mu     sync.Mutex
	broken map[string]bool
	back   time.Time
}

// heard takes the outcome of a call that the watch of what consists of.
func (o *outage) heard(what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		if o.broken == nil {
			o.broken = map[string]bool{}
		}
		o.broken[what] = true
		return
	}
	if o.broken[what] {
		delete(o.broken, what)
		o.back = time.Now()
	}
}

// over is when the last outage ended: now while one lasts, zero if there was none.
func (o *outage) over(now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.broken) > 0 {
		return now
	}
	return o.back
}
