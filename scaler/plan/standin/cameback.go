package standin

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// returns is what has come back to the node of what was evicted.
func (x loneDrain) returns() drainable.Returns {
	r := drainable.Returns{Closed: x.excludedSince(), Now: x.Now, Deadline: x.toCome(), Steps: x.Policy.Manner.Steps}
	r.LastCall = x.calls().Last(r.Closed)
	for _, maker := range slices.Sorted(maps.Keys(x.memory().Evicted)) {
		e := x.memory().Evicted[maker]
		r.Evicted = append(r.Evicted, drainable.Eviction{Maker: maker, At: e.At, Left: e.Left})
	}
	r = r.Find(slices.Values(x.node.Pods))
	if r.LastCall.IsZero() && slices.ContainsFunc(x.node.Pods, r.IsCalled) {
		r.LastCall = r.Deadline // this plan notes it
	}
	return r
}

// memory is the scaler's persisted state of the drain.
func (x loneDrain) memory() fleet.LoneDrain { return x.Given.StandIns[x.node.Name] }

// calls are the last calls that the agent and the scaler have made, and the notices whose
// deadline is the next to come: that of another notice is not taken for the drain's own.
func (x loneDrain) calls() drainable.Calls {
	c := drainable.Calls{Begun: x.report.LastCalls}
	for _, call := range x.memory().LastCalls {
		c.Begun = c.Begun.Add(call.ID, call.Deadline)
	}
	toCome := contract.At(x.toCome())
	if toCome.IsZero() {
		return c
	}
	for _, notice := range x.node.Noticed {
		if notice.Does == drains && notice.Deadline.Equal(toCome) {
			c.Notices = append(c.Notices, notice.ID)
		}
	}
	if len(c.Notices) == 0 {
		c.Notices = []string{contract.ShortID(x.id)}
	}
	return c
}

// noteCalls are the last calls to persist: those of an agent stand in its report.
func (x loneDrain) noteCalls(r drainable.Returns) contract.LastCalls {
	noted := r.NoteCalls(x.calls(), x.node.Pods)
	if slices.Equal(noted, x.report.LastCalls) {
		return nil
	}
	return noted
}

// mostEvictions is for how many makers of pods a drain persists evictions at most. Pods of others
// wait until one is over.
const mostEvictions = 32

// evictions are the evictions to persist: those of which a pod is leaving, or has left a moment
// ago.
func (x loneDrain) evictions(r drainable.Returns) map[string]fleet.LoneEviction {
	var out map[string]fleet.LoneEviction
	for maker, e := range x.memory().Evicted {
		if at := r.Leaving(maker); !at.IsZero() {
			e.Left = time.Time{}
			if at.After(e.At) {
				e.At = at
			}
		} else if e.Left.IsZero() {
			if x.isThere(e.Pod) {
				continue // its eviction had no effect
			}
			e.Left = x.Now
		}
		if (drainable.Eviction{Left: e.Left}).Expired(x.Now) {
			continue
		}
		if out == nil {
			out = map[string]fleet.LoneEviction{}
		}
		out[maker] = e
	}
	return out
}

// isThere reports whether a pod is on the node, and is not being deleted.
func (x loneDrain) isThere(uid types.UID) bool {
	return slices.ContainsFunc(x.node.Pods, func(p *fleet.Pod) bool { return p.UID == uid && p.Deleted.IsZero() })
}

// noteEviction persists that a pod is asked to leave which may come back; ok is false where that is
// not to be, as enough are persisted.
func (x loneDrain) noteEviction(p *fleet.Pod, r drainable.Returns) (ok bool) {
	if !r.MayReturn(p) {
		return true
	}
	m, maker := x.State.StandIns[x.node.Name], drainable.MakerOf(p)
	if _, known := m.Evicted[maker]; !known && len(m.Evicted) >= mostEvictions && !x.dropOldest(m.Evicted) {
		return false
	}
	if m.Evicted == nil {
		m.Evicted = map[string]fleet.LoneEviction{}
	}
	m.Evicted[maker] = fleet.LoneEviction{Pod: p.UID, At: x.Now}
	x.State.StandIns[x.node.Name] = m
	return true
}

// dropOldest makes room for one more: of what has left, that which left first, if its successor
// would have shown by now.
func (x loneDrain) dropOldest(evicted map[string]fleet.LoneEviction) (dropped bool) {
	oldest := ""
	for _, maker := range slices.Sorted(maps.Keys(evicted)) {
		if left := evicted[maker].Left; !left.IsZero() && (oldest == "" || left.Before(evicted[oldest].Left)) {
			oldest = maker
		}
	}
	if oldest == "" {
		return false
	}
	if shown := evicted[oldest].Left.Add(drainable.ShowsWithin); x.Now.Before(shown) {
		x.Clock.At(shown)
		return false
	}
	delete(evicted, oldest)
	return true
}

// CameBack says what has come to a node that we scale down, and will come again; empty where
// nothing has. It counts from when the agent closed the node, or the scaler in its place.
func (d *StandIn) CameBack(n *cluster.Node) string {
	closed := cluster.FirstKnown(n.Report.Excluded.Time, d.Given.StandIns[n.Name].Excluded)
	if _, answered := n.Answered(n.Request.ID); !answered {
		closed = d.Given.StandIns[n.Name].Excluded
	}
	if closed.IsZero() || !n.Closed() {
		return ""
	}
	return drainable.Returns{Closed: closed, Now: d.Now}.Find(slices.Values(n.Pods)).First()
}
