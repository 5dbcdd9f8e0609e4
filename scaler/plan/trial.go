package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// judgeTime is how long kube-scheduler has for a node that is new to a pod. A
// pod that is still Unschedulable by then was refused by what it looks at.
const judgeTime = 10 * time.Second

// trialPause is how long no further node is launched for a pod after one came
// in vain; it doubles with each further one.
const trialPause, trialPauseMost = time.Hour, 8 * time.Hour

// trials find out by launching what fit cannot tell: whether a new node helps a
// pod that kube-scheduler refuses, for terms that fit does not look at, on nodes
// that have room for it. Each class of pods gets one node at a time; after
// one that was refused as well there is a long pause.
type trials struct {
	*decision
	// fresh are nodes that kube-scheduler may not have looked at yet, settled
	// the others that serve.
	fresh, settled *rows
	begun          map[*fit.Class]bool
}

func (d *decision) newTrials() *trials {
	t := &trials{decision: d, fresh: newRows(nil), settled: newRows(nil), begun: map[*fit.Class]bool{}}
	for _, n := range d.in(serving) {
		rows := t.settled
		if d.now.Before(n.ReadySince.Add(judgeTime)) {
			rows = t.fresh
		}
		rows.places = append(rows.places, n.place)
	}
	return t
}

// refused says that kube-scheduler has looked at all settled nodes for this pod,
// with terms in mind that fit does not know.
func (t *trials) refused(x fit.Tenant) bool {
	if len(x.Class.NotConsidered) == 0 || x.Pod.Scheduling != fleet.Unschedulable || x.Pod.Judged.IsZero() {
		return false
	}
	if due := x.Pod.Judged.Add(judgeTime); t.now.Before(due) {
		t.clock.at(due)
		return false
	}
	for _, p := range t.fresh.places {
		t.clock.at(t.node(p.Name).ReadySince.Add(judgeTime))
	}
	return true
}

// try lets the pod bring a node although node p has room for it, if it is the
// first of its class and no such node was in vain before.
func (t *trials) try(x fit.Tenant, p *fit.Place) {
	if why := t.inVain(x); why != "" {
		t.sayPod(x, PodRefused, "", why+caveat(x.Class))
		return
	}
	if t.begun[x.Class] {
		t.sayPod(x, PodRefused, "", fmt.Sprintf(
			"kube-scheduler refuses node %s, which has room for it; first one node is launched for another pod like it%s", p.Name, caveat(x.Class)))
		return
	}
	t.begun[x.Class] = true
	t.left = append(t.left, x)
}

// inVain says why no further node is launched for the pod, and remembers for a
// while that one was in vain, because that one goes when nobody needs it.
func (t *trials) inVain(x fit.Tenant) string {
	uid := string(x.Pod.UID)
	b, known := t.state.Refused[uid]
	n := t.useless(x)
	if n != nil && (!known || n.ReadySince.After(b.Until)) {
		b = fleet.BackOff{Count: b.Count + 1, Cause: n.Name}
		b.Until = t.now.Add(doubled(trialPause, b.Count, trialPauseMost))
		t.state.Refused[uid] = b
	}
	if t.now.Before(b.Until) {
		t.clock.at(b.Until)
		return fmt.Sprintf("node %s came, had room for it, and kube-scheduler refused that, too; no further one is launched for it before %s", b.Cause, clockTime(b.Until))
	}
	if n != nil {
		return fmt.Sprintf("node %s came, has room for it, and kube-scheduler refuses that, too", n.Name)
	}
	return ""
}

// forget drops what is remembered of pods that do not wait any more.
func (t *trials) forget(waiting []fit.Tenant) {
	waits := map[string]bool{}
	for _, x := range waiting {
		waits[string(x.Pod.UID)] = true
	}
	maps.DeleteFunc(t.state.Refused, func(uid string, _ fleet.BackOff) bool { return !waits[uid] })
}

// useless is a node that came after the pod was refused and did not help, nil
// if there is none. One that took another pod of the class was of use.
func (t *trials) useless(x fit.Tenant) *node {
	for _, n := range t.in(serving) {
		if !n.ReadySince.After(x.Pod.Judged) || t.now.Before(n.ReadySince.Add(judgeTime)) {
			continue
		}
		like := func(y fit.Tenant) bool { return y.Class == x.Class }
		if len(t.fit.Fits(x.Class, n.place)) == 0 && !slices.ContainsFunc(n.place.Tenants(), like) {
			return n
		}
	}
	return nil
}
