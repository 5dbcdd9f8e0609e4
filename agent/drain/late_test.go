package drain_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// watch is the agent's watch of the pods where an API server without time tells late.
type watch struct {
	late time.Duration
	// seen is what the agent sees, nil for what is, and since when it sees what came late; shots is
	// what was since, each once.
	seen  map[types.UID]fleet.Pod
	since map[types.UID]time.Time
	shots []shot
}

// shot is the pods of the node as they were from a moment on.
type shot struct {
	at   time.Time
	pods map[types.UID]fleet.Pod
}

// delay makes the watch so late from now on. What was seen stays so.
func (w *world) delay(late time.Duration) {
	if w.watch.late = late; w.watch.seen == nil {
		w.watch.seen = maps.Clone(w.pods)
	}
	w.look()
}

// listAnew is the first list of an agent that starts again. It comes from the API server's cache, which
// is as late as the watch; without a pod that must leave it is asked for again, consistently. A pod of
// which it does not say that it is being deleted is asked for once more, and that does no harm.
func (w *world) listAnew() {
	defer func() {
		for uid, p := range w.visible() {
			if p.Deleted.IsZero() {
				delete(w.deletions, uid)
			}
		}
	}()
	for _, p := range w.visible() {
		if drainable.MustBePlacedAgain(&p) {
			return
		}
	}
	w.relist()
}

// relist shows the pods as they are: other lists are never late.
func (w *world) relist() {
	if w.watch.seen == nil {
		return
	}
	w.see(shot{w.now, maps.Clone(w.pods)})
	w.watch.shots = nil
}

// noteBack notes that the watch has come back for all that were being deleted before.
func (w *world) noteBack() {
	for uid, p := range w.visible() {
		if e := w.ending[uid]; !p.Deleted.IsZero() && e.Back.IsZero() {
			e.Back = w.now
			w.ending[uid] = e
		}
	}
}

// look notes what has changed, and shows the agent what it comes to hear of.
func (w *world) look() {
	k := &w.watch
	if k.seen == nil || w.down {
		return
	}
	last := k.seen
	if n := len(k.shots); n > 0 {
		last = k.shots[n-1].pods
	}
	if !reflect.DeepEqual(last, w.pods) {
		k.shots = append(k.shots, shot{w.now, maps.Clone(w.pods)})
	}
	for len(k.shots) > 0 && !k.shots[0].at.Add(k.late).After(w.now) {
		w.see(k.shots[0])
		k.shots = k.shots[1:]
	}
}

func (w *world) see(s shot) {
	for uid, p := range s.pods {
		before, known := w.watch.seen[uid]
		if !known {
			w.watch.since[uid] = w.now
		}
		if known && before.Deleted.IsZero() && !p.Deleted.IsZero() {
			w.ending[uid] = drain.Ending{Heard: w.now, Asked: cmp.Or(w.askedAt[uid], s.at)}
		}
	}
	for uid, p := range w.watch.seen {
		if _, there := s.pods[uid]; !there {
			w.stirred[p.Namespace] = w.now
		}
	}
	w.watch.seen = s.pods
}

// hears is when the agent hears the next news of its pods; zero where none is on its way.
func (w *world) hears() time.Time {
	if len(w.watch.shots) == 0 || w.down {
		return time.Time{}
	}
	return w.watch.shots[0].at.Add(w.watch.late)
}

// visible are the pods that the agent sees.
func (w *world) visible() map[types.UID]fleet.Pod {
	if w.watch.seen != nil {
		return w.watch.seen
	}
	return w.pods
}

// brokenPatience: no pod holds a drain up for longer than half a minute beyond its grace, from when
// it was asked to end, or from when we heard of that, within a minute, or of the API server again, if
// that was later.
func brokenPatience(w *world, view drain.View, next drain.Next) []string {
	if next.Report == nil || !next.Report.Phase.Open() || !view.PodsKnown {
		return nil
	}
	const mostLate = time.Minute
	hold := 0
	for i := range view.Pods {
		p := &view.Pods[i]
		asked, evicted := w.askedAt[p.UID]
		if p.Deleted.IsZero() || !evicted {
			if !drainable.IsMirror(p) && (!p.Ended() || !p.Deleted.IsZero()) {
				hold++
			}
			continue
		}
		from := asked
		if heard := view.Ending[p.UID].Heard; heard.After(from) {
			from = asked.Add(min(heard.Sub(asked), mostLate))
		}
		if back := cmp.Or(view.Ending[p.UID].Back, view.Back); back.After(from) {
			from = back
		}
		grace := max(p.Deleted.Time().Sub(asked), drainable.GraceOf(p)) + drainable.Overtime
		if !view.Now.After(from.Add(grace + time.Second)) {
			hold++
		}
	}
	if next.Report.Left > hold {
		return []string{fmt.Sprintf("%d pods hold the drain up, and %d may", next.Report.Left, hold)}
	}
	return nil
}
