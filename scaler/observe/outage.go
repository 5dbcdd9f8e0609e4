package observe

import (
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
	broken  map[string]error // why
	from    time.Time        // of the one that lasts; zero if that is not known
	past    []fleet.Outage
}

// heard takes the outcome of a call that the watch of what consists of.
func (o *outage) heard(what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.breaks(what, err)
		return
	}
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

// breaks notes that a watch has failed. The first that does begins an outage, which may be
// older than this process where nothing was heard before.
func (o *outage) breaks(what string, why error) {
	if o.broken == nil {
		o.broken = map[string]error{}
	}
	if len(o.broken) == 0 {
		o.from = time.Time{}
		if o.heardOf[what] {
			o.from = o.now().UTC()
		}
	}
	o.broken[what] = why
}

// worthTelling is how long an outage lasts before people are told: a server that restarts breaks all
// watches.
const worthTelling = 30 * time.Second

// fault says what has not been seen as it comes for a while; empty where all is.
func (o *outage) fault(now time.Time) string {
	o.mu.Lock()
	defer o.mu.Unlock()
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
	list := slices.Clone(o.past)
	if len(o.broken) > 0 {
		list = append(list, fleet.Outage{From: o.from, Until: now.UTC()})
	}
	return list
}
