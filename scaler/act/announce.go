package act

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
)

// announcedPerSecond is how many pods are told in a second. It is the rate of the
// writer of Events, so that no more than a second's worth stands there before what
// is told of actions.
const announcedPerSecond = 20

// Announcer tells pods that get no node why: one Event when the verdict is
// reached, and another only when it changes. The oldest pod is told first. What
// finds no room is told later, if it still holds then.
type Announcer struct {
	Events Events

	mu      sync.Mutex
	told    map[string]string // the message, by the pod's UID
	waiting []plan.Verdict    // to be told, the oldest pod first
	limiter *rate.Limiter
}

// Announce tells what is new in the verdicts of waiting pods, as far as there is
// room now. It is for Run to tell the rest.
func (n *Announcer) Announce(s fleet.Snapshot, verdicts []plan.Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = n.news(verdicts)
	if len(n.waiting) == 0 {
		return
	}
	created := map[string]int64{}
	for _, p := range s.Pods {
		if p.Node == "" {
			created[string(p.UID)] = p.Created.UnixNano()
		}
	}
	slices.SortStableFunc(n.waiting, func(a, b plan.Verdict) int { return cmp.Compare(created[a.UID], created[b.UID]) })
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

// tell tells as many pods as it may. Whoever calls it holds the lock.
func (n *Announcer) tell() {
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(announcedPerSecond, announcedPerSecond)
	}
	for len(n.waiting) > 0 && n.limiter.Allow() {
		v := n.waiting[0]
		namespace, name, _ := strings.Cut(v.Name, "/")
		event := kube.Event{Object: kube.PodReference(namespace, name, v.UID), Reason: contract.EventNotTriggerScaleUp, Message: v.Message}
		if !n.Events.Write(event) {
			return
		}
		n.told[v.UID] = v.Message
		n.waiting = n.waiting[1:]
	}
}

// news returns the verdicts that were not told, and forgets pods that do not
// wait any more.
func (n *Announcer) news(verdicts []plan.Verdict) []plan.Verdict {
	told := make(map[string]string, len(n.told))
	var news []plan.Verdict
	for _, v := range verdicts {
		if v.Of != plan.OfPod || !refused(v.Reason) {
			continue
		}
		if n.told[v.UID] == v.Message {
			told[v.UID] = v.Message
			continue
		}
		news = append(news, v)
	}
	n.told = told
	return news
}

// refused says that the pod waits and nothing is done about it.
func refused(r plan.Reason) bool {
	return r == plan.PodFitsNothing || r == plan.PodGroupsFull || r == plan.PodGangShort
}
