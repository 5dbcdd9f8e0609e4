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

// announcedPerSecond is how much is announced in a second. The writer of Events sends a few
// more, so that Events of nodes find its queue short, however many of pods are still to come.
const announcedPerSecond = 15

// Announcer records Events, after each evaluation, for pending pods, groups and nodes. A pod
// gets one that names the group that grows for it, or why none does: once when that is
// decided, and again only when it changes, the oldest pod first. A node gets one with why it
// stays, or when it is scaled down, when the reason has changed and the new one lasts. What
// finds no room in the queue is recorded later, if it still holds then.
type Announcer struct {
	Events Events
	// Page is the object that bears the Events of groups, and whether there is one
	// yet: a group is no object of Kubernetes.
	Page func() (page corev1.ObjectReference, ok bool)
	// Now is the time by the clock of the snapshots; nil for the node's own.
	Now func() time.Time

	mu      sync.Mutex
	drains  drainNews
	groups  groupNews
	pods    podNews
	nodes   nodeNews
	limiter *rate.Limiter
	left    chan struct{} // full where something waits to be recorded; nil before its first use
}

// TakeOver begins the news of groups and nodes anew, as after another leader: known are the reasons of
// nodes, by name, that were announced. What the first evaluation finds of others is old news.
func (n *Announcer) TakeOver(known map[string]verdict.Reason) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.groups.failed = nil // whoever led meanwhile has reported what there is
	n.nodes.takeOver(known)
}

// Announce records what is new after an evaluation, as far as there is room now. Run records
// the rest.
func (n *Announcer) Announce(s fleet.Snapshot, p plan.Plan, results []Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drains.follow(p)
	n.groups.follow(s, p, results)
	n.pods.follow(s, p, results)
	n.nodes.follow(s, p)
	n.tell()
}

// Run records what has found no room yet, until ctx ends. An evaluation that finds no change
// announces nothing, so that this must not wait for one.
func (n *Announcer) Run(ctx context.Context) {
	n.mu.Lock()
	left := n.leftover()
	n.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-left:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		n.mu.Lock()
		n.tell()
		n.mu.Unlock()
	}
}

// leftover signals that something waits to be recorded. Whoever calls it holds the lock.
func (n *Announcer) leftover() chan struct{} {
	if n.left == nil {
		n.left = make(chan struct{}, 1)
	}
	return n.left
}

// tell records as much as it may: drains and groups first, which are few and concern many
// pods; why nodes stay last, for which nothing waits. Whoever calls it holds the lock.
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
	now := time.Now()
	if n.Now != nil {
		now = n.Now()
	}
	for n.tellOne(func() (kube.Event, bool) { return n.nodes.next(now) }, func() { n.nodes.hear(now) }) {
	}
	if len(n.drains.waiting)+len(n.groups.waiting)+len(n.pods.waiting)+len(n.nodes.changed) > 0 {
		select {
		case n.leftover() <- struct{}{}:
		default: // it is known
		}
	}
}

func (n *Announcer) page() (corev1.ObjectReference, bool) {
	if n.Page == nil {
		return corev1.ObjectReference{}, false
	}
	return n.Page()
}

// tellOne records the next piece of news. It reports whether there was one, and room for it.
func (n *Announcer) tellOne(next func() (kube.Event, bool), told func()) bool {
	event, ok := next()
	if !ok || !n.limiter.Allow() || !n.Events.Write(event) {
		return false
	}
	told()
	return true
}
