package act

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// announcedPerSecond is how much is announced in a second. The writer of Events
// sends a few more, so that what is told of nodes finds its queue short, however
// many pods have still to hear.
const announcedPerSecond = 15

// Announcer tells people, after each look, what becomes of waiting pods, of groups, and
// of nodes. A pod hears which group grows for it, or why none does: once when that is
// decided, and again only when it changes, the oldest pod first; a node why it stays, or
// when it goes, when the reason has changed and the new one lasts. What finds no room is
// told later, if it still holds then.
type Announcer struct {
	Events Events
	// Page is the object that bears the Events of groups, and whether there is one
	// yet: a group is no object of Kubernetes.
	Page func() (page corev1.ObjectReference, ok bool)

	mu      sync.Mutex
	drains  drainNews
	groups  groupNews
	pods    podNews
	nodes   nodeNews
	limiter *rate.Limiter
}

// TakeOver begins to tell of nodes anew, as after another leader: known are the reasons,
// by name, that people know of. What the first look finds of other nodes is old news.
func (n *Announcer) TakeOver(known map[string]verdict.Reason) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes.takeOver(known)
}

// Announce tells what is new after a look, as far as there is room now. It is for
// Run to tell the rest.
func (n *Announcer) Announce(s fleet.Snapshot, p plan.Plan, results []Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drains.follow(p)
	n.groups.follow(s, p, results)
	n.pods.follow(s, p, results)
	n.nodes.follow(s, p)
	n.tell()
}

// Run tells what has found no room yet, until ctx ends. A look at which nothing
// has changed announces nothing, so that this must not wait for one.
func (n *Announcer) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.Lock()
		n.tell()
		n.mu.Unlock()
	}
}

// tell tells as much as it may: of drains and groups first, which are few, and many pods
// hang on each; of why nodes stay last, for which nobody waits. Whoever calls it holds the lock.
func (n *Announcer) tell() {
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(announcedPerSecond, announcedPerSecond)
	}
	for n.tellOne(n.drains.next, n.drains.hear) {
	}
	if page, ok := n.page(); ok {
		for n.tellOne(func() (kube.Event, bool) { return n.groups.next(page) }, n.groups.told) {
		}
	}
	for n.tellOne(n.pods.next, n.pods.told) {
	}
	for n.tellOne(n.nodes.next, n.nodes.hear) {
	}
}

func (n *Announcer) page() (corev1.ObjectReference, bool) {
	if n.Page == nil {
		return corev1.ObjectReference{}, false
	}
	return n.Page()
}

// tellOne tells the next piece of news. It says whether there was one, and room
// for it.
func (n *Announcer) tellOne(next func() (kube.Event, bool), told func()) bool {
	event, ok := next()
	if !ok || !n.limiter.Allow() || !n.Events.Write(event) {
		return false
	}
	told()
	return true
}
