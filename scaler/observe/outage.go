package observe

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// outagesKept is how many of the latest outages are kept. Where more are needed to tell how
// long a wait was disturbed, the oldest are missing, and a new leader's grace is what is
// left.
const outagesKept = 16

// outage knows since when everything vital has been seen as it comes. What did not arrive
// while the API server was away may have happened all the same.
type outage struct {
	now func() time.Time
	mu  sync.Mutex
	// heardOf are those of which a call succeeded at least once.
	heardOf map[string]bool
	// asked is since when a whole list is waited for.
	asked  map[string]time.Time
	broken map[string]error // why
	from   time.Time        // of the one that lasts; zero if that is not known
	past   []fleet.Outage
}

// listWithin is how long the list of a watch may take: that of 15,000 nodes with their pods takes
// seconds.
const listWithin = 15 * time.Second

// asks notes that the whole is asked for: until it has come what is known is as it was, and after
// listWithin that is an outage.
func (o *outage) asks(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked == nil {
		o.asked = map[string]time.Time{}
	}
	if _, already := o.asked[what]; !already {
		o.asked[what] = o.now().UTC()
	}
}

// listed notes that the whole has come.
func (o *outage) listed(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missLate()
	delete(o.asked, what)
	o.works(what)
}

// heard takes the outcome of a call that the watch of what consists of. An answer that begins a
// list has not brought it yet.
func (o *outage) heard(what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.breaks(what, err, o.now().UTC())
		return
	}
	if _, awaited := o.asked[what]; !awaited {
		o.works(what)
	}
}

// missLate takes lists that do not come for broken, where one has come before: at the start there
// is nothing yet that could be as it was.
func (o *outage) missLate() {
	for what, since := range o.asked {
		if o.heardOf[what] && o.broken[what] == nil && o.now().Sub(since) > listWithin {
			o.breaks(what, errors.New("the whole list was asked for again, and does not come"), since)
		}
	}
}

func (o *outage) works(what string) {
	if o.heardOf == nil {
		o.heardOf = map[string]bool{}
	}
	o.heardOf[what] = true
	if o.broken[what] == nil {
		return
	}
	delete(o.broken, what)
	if len(o.broken) > 0 {
		return
	}
	o.past = append(o.past, fleet.Outage{From: o.from, Until: o.now().UTC()})
	o.past = o.past[max(0, len(o.past)-outagesKept):]
}

// breaks notes that a watch has failed, at a moment. The first that does begins an outage, which may be
// older than this process where nothing was heard before.
func (o *outage) breaks(what string, why error, at time.Time) {
	if o.broken == nil {
		o.broken = map[string]error{}
	}
	heard := o.heardOf[what]
	if len(o.broken) == 0 || heard && at.Before(o.from) {
		o.from = time.Time{}
		if heard {
			o.from = at
		}
	}
	o.broken[what] = why
}

// why is why something vital is not seen as it comes; nil where all is.
func (o *outage) why() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missLate()
	for _, what := range slices.Sorted(maps.Keys(o.broken)) {
		return o.broken[what]
	}
	return nil
}

// worthTelling is how long an outage lasts before people are told: a server that restarts breaks all
// watches.
const worthTelling = 30 * time.Second

// fault says what has not been seen as it comes for a while; empty where all is.
func (o *outage) fault(now time.Time) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missLate()
	if len(o.broken) == 0 || now.Sub(o.from) < worthTelling {
		return ""
	}
	names := slices.Sorted(maps.Keys(o.broken))
	since := ""
	if !o.from.IsZero() {
		since = " at " + o.from.Format(time.TimeOnly)
	}
	return fmt.Sprintf("the watch is broken: %s are as they were%s, and no further node is scaled down: %v", strings.Join(names, ", "), since, o.broken[names[0]])
}

// latest are the last outages, the oldest first; one that lasts ends now.
func (o *outage) latest(now time.Time) []fleet.Outage {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missLate()
	list := slices.Clone(o.past)
	if len(o.broken) > 0 {
		list = append(list, fleet.Outage{From: o.from, Until: now.UTC()})
	}
	return list
}
