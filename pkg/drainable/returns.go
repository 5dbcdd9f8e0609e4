package drainable

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Whoever makes pods makes another one in the stead of each that is evicted. Where that
// tolerates the taints of a node that drains, or goes past the scheduler, it may come back
// to this very node, to be evicted again, without end. So pods that may come back leave one
// by one, and once one has, those of its owner are left alone: until the deadline is near,
// or, without one, for as long as the drain has gone on. What has come back is told from
// facts of the cluster, which no restart of ours forgets: a pod that is younger than the
// drain.

const (
	// settles is how long after a node was closed kube-scheduler may bind pods to it that
	// it had looked at before.
	settles = 10 * time.Second
	// ShowsWithin is how long after an eviction its pod's successor shows up, as a rule. Once
	// one has come back, those after it are waited for from the end of their predecessor on,
	// for showsLate: an owner may make them then only, and they may wait for a node.
	ShowsWithin, showsLate = 5 * time.Second, 2*time.Minute + slack
	// firstRetry is how long the first pods that came back are left alone, where no
	// deadline is to come, and longestRetry how long any are: what tells since when the node
	// is closed may be wrong.
	firstRetry, longestRetry = time.Minute, 24 * time.Hour
	// lastCall is how long before a deadline they are asked once more, or what they need
	// to end if that is longer. A pod that came within slack before that moment came after
	// it: the clocks of the API server and of whoever drains differ so much at most.
	lastCall, slack = 2 * time.Minute, 5 * time.Second
)

// Returns is a drain as far as pods come back to its node.
type Returns struct {
	// Closed is since when nothing is to come to the node; Open says that it cannot be
	// closed, and is since when pods leave all the same.
	Closed time.Time
	Open   bool
	// Deadline is when the instance goes, if that is known and to come; zero otherwise.
	// LastCall is the deadline before which the last call of the same notice has begun, zero
	// where it has not: one that is put off brings no other call.
	Now, Deadline, LastCall time.Time
	Steps                   Steps
	// Evicted are the evictions of the drain that count still.
	Evicted []Eviction

	owners map[string]*maker
	// repeat: a pod of one of the owners may come back. cameBack: one has.
	repeat, cameBack bool
}

// Eviction is one that the API server accepted.
type Eviction struct {
	// Maker makes the pod; see MakerOf.
	Maker string
	// At is when it was asked for, Left when the pod was first not seen any more; zero while it
	// is.
	At, Left time.Time
}

// Expired reports whether the pod left so long ago that its successor would have shown up.
func (e Eviction) Expired(now time.Time) bool {
	return !e.Left.IsZero() && now.Sub(e.Left) >= showsLate
}

// maker makes pods: an owner, or whoever makes a naked pod of that name.
type maker struct {
	// repeats: a pod of it may come back. first is one that came back, and newest when
	// the last one came; nil and zero if none has.
	repeats bool
	first   *fleet.Pod
	newest  time.Time
	// asked is when the last of those that are leaving was asked to; gone says that its
	// successor comes when it has left, and not before.
	asked time.Time
	gone  bool
}

// Find returns r with what it finds of the node's pods.
func (r Returns) Find(pods iter.Seq[*fleet.Pod]) Returns {
	r.owners, r.repeat, r.cameBack = map[string]*maker{}, false, false
	r.Closed = r.Closed.Truncate(time.Second) // as pods are dated
	for p := range pods {
		if BelongsToNode(p) || p.Ended() {
			continue
		}
		name := MakerOf(p)
		m := r.owners[name]
		if m == nil {
			m = &maker{}
			r.owners[name] = m
		}
		_, tolerates := ToleratesDrain(p)
		m.repeats = m.repeats || tolerates || r.isNew(p)
		r.repeat = r.repeat || m.repeats
		if r.CameBack(p) {
			m.see(p)
			r.cameBack = true
		}
		if !p.Deleted.IsZero() && !IsLongTerminating(p, r.Now) {
			m.leave(p)
		}
	}
	return r
}

func (m *maker) see(p *fleet.Pod) {
	if m.first == nil || cmp.Or(cmp.Compare(p.Created, m.first.Created), cmp.Compare(p.Key(), m.first.Key())) < 0 {
		m.first = p
	}
	if p.Created.Time().After(m.newest) {
		m.newest = p.Created.Time()
	}
}

func (m *maker) leave(p *fleet.Pod) {
	if asked := AskedAt(p); asked.After(m.asked) {
		m.asked = asked
	}
	m.gone = m.gone || comesLate(p)
}

// AskedAt is when a pod that is being deleted was asked to leave, unless that was with another grace
// period than its own.
func AskedAt(p *fleet.Pod) time.Time { return p.Deleted.Time().Add(-GraceOf(p)) }

// comesLate reports whether a pod's successor is made when the pod has left, and not before.
func comesLate(p *fleet.Pod) bool { return p.Owner != nil && p.Owner.Kind == "StatefulSet" }

// hasReturned reports whether a pod of the same maker came back, and is there.
func (r Returns) hasReturned(p *fleet.Pod) bool {
	if !r.cameBack {
		return false
	}
	m := r.owners[MakerOf(p)]
	return m != nil && m.first != nil
}

// MakerOf names who makes a pod.
func MakerOf(p *fleet.Pod) string {
	if p.Owner == nil {
		return "pod " + p.Key()
	}
	return contract.ShortID("pods of " + p.Owner.Kind + " " + p.Namespace + "/" + p.Owner.Name)
}

// CameBack reports whether a pod came to the node though it was closed, and that its successor
// will. One that was on its way when the node was closed is none.
func (r Returns) CameBack(p *fleet.Pod) bool {
	if BelongsToNode(p) || p.Ended() || !r.isNew(p) {
		return false
	}
	_, tolerates := ToleratesDrain(p)
	return r.Open || tolerates || !p.Created.Time().Before(r.Closed.Add(settles))
}

// madeSince reports whether a pod was made since the node was closed, if it is. What was made before
// that had come round is not told from what is made again.
func (r Returns) madeSince(p *fleet.Pod) bool { return !r.Closed.IsZero() && r.isNew(p) }

// isNew reports whether a pod was made after the node was closed.
func (r Returns) isNew(p *fleet.Pod) bool { return !p.Created.Time().Before(r.Closed) }

// First says of the first pod that came back, by age and name, what Why says; empty where
// none has.
func (r Returns) First() string {
	var all maker
	for _, m := range r.owners {
		if m.first != nil {
			all.see(m.first)
		}
	}
	if all.first == nil {
		return ""
	}
	return r.came(all.first)
}

// Hold reports whether a pod is left alone, because one of its maker's came back, and until
// when.
func (r Returns) Hold(p *fleet.Pod) (until time.Time, held bool) {
	if !r.hasReturned(p) {
		return time.Time{}, false
	}
	m := r.owners[MakerOf(p)]
	if call, ok := r.lastCall(p); ok {
		return call, r.Now.Before(call)
	}
	until = m.newest.Add(min(max(firstRetry, m.newest.Sub(r.Closed)), longestRetry))
	if called := earliest(r.Deadline, r.LastCall); until.Before(called) {
		until = called
	}
	return until, r.Now.Before(until)
}

// IsCalled reports whether a pod's last call has come: before the deadline it is asked once more
// although its like came back.
func (r Returns) IsCalled(p *fleet.Pod) bool {
	if !r.hasReturned(p) {
		return false
	}
	call, ok := r.lastCall(p)
	return ok && !r.Now.Before(call)
}

// lastCall is when a pod that may come back is asked once more; ok is false where it came
// after that, or where there is no deadline.
func (r Returns) lastCall(p *fleet.Pod) (at time.Time, ok bool) {
	if r.Deadline.IsZero() {
		return time.Time{}, false
	}
	deadline := earliest(r.Deadline, r.LastCall)
	whole := max(0, deadline.Sub(r.Closed))
	at = deadline.Add(-min(max(lastCall, r.needs(p)), whole/2)).Truncate(time.Second)
	return at, !r.isNew(p) || p.Created.Time().Before(at.Add(-slack))
}

// hasNotedCall reports whether the last call before the present deadline is written down, so
// that no other follows it.
func (r Returns) hasNotedCall() bool { return !r.LastCall.IsZero() && !r.LastCall.After(r.Deadline) }

// Calls are the last calls of a drain.
type Calls struct {
	// Begun are those that are written down.
	Begun contract.LastCalls
	// Notices are those whose deadline is the next to come, by id.
	Notices []string
}

// Last is the deadline of the last call of those notices; zero where one of them has had none.
// Where as many are written down as can be, they do not tell which had none. One for a deadline
// before the node was closed is of an earlier drain.
func (c Calls) Last(closed time.Time) (deadline time.Time) {
	for _, id := range c.Notices {
		of := c.Begun.Of(id)
		if of.IsZero() && len(c.Begun) >= contract.MostLastCalls {
			continue
		}
		if !of.After(closed) {
			return time.Time{}
		}
		deadline = earliest(of.Time, deadline)
	}
	return deadline
}

// NoteCalls are the last calls to write down: those that are, and the one that has come, if it
// has for one of the pods.
func (r Returns) NoteCalls(c Calls, pods []*fleet.Pod) contract.LastCalls {
	begun := c.Begun
	if slices.ContainsFunc(pods, r.IsCalled) {
		for _, id := range c.Notices {
			begun = begun.Add(id, contract.At(r.Deadline))
		}
	}
	return begun
}

// earliest of two moments, of which one may be zero.
func earliest(at, other time.Time) time.Time {
	if other.IsZero() || at.Before(other) {
		return at
	}
	return other
}

// Alone names who makes a pod, if its pods are asked one at a time; empty where not. At the
// last call all are; and before any has come back as soon as those that wait would have less
// than their grace otherwise: that they may come back is no reason to cut it.
func (r Returns) Alone(p *fleet.Pod) string {
	if !r.MayReturn(p) {
		return ""
	}
	m := r.owners[MakerOf(p)]
	hurries := !r.Deadline.IsZero() && !r.Now.Before(r.Deadline.Add(-r.needs(p)))
	if m.first == nil && hurries || r.IsCalled(p) {
		return ""
	}
	return MakerOf(p)
}

// needs is how long before a deadline a pod is asked to have all of its grace.
func (r Returns) needs(p *fleet.Pod) time.Duration { return r.Steps.Reserve(0) + GraceOf(p) + settles }

// Next is when the next pod of a pod's maker may be asked, as far as those tell that are
// leaving or have left; ok is false for never while they are leaving.
func (r Returns) Next(p *fleet.Pod) (at time.Time, ok bool) {
	at = r.Now
	if m := r.owners[MakerOf(p)]; m != nil && !m.asked.IsZero() {
		if m.gone || m.first != nil {
			return time.Time{}, false
		}
		at = m.asked.Add(r.shows(p))
	}
	for _, e := range r.Evicted {
		if e.Maker != MakerOf(p) {
			continue
		}
		from := e.At
		if (comesLate(p) || r.hasReturned(p)) && e.Left.After(from) {
			from = e.Left
		}
		if shows := from.Add(r.shows(p)); shows.After(at) {
			at = shows
		}
	}
	return at, true
}

// Leaving is when the last of a maker's pods that are leaving was asked to; zero where none is.
func (r Returns) Leaving(maker string) time.Time {
	if m := r.owners[maker]; m != nil {
		return m.asked
	}
	return time.Time{}
}

// MayReturn reports whether a successor of the pod may come back to the node.
func (r Returns) MayReturn(p *fleet.Pod) bool {
	if !r.repeat {
		return false
	}
	m := r.owners[MakerOf(p)]
	return m != nil && m.repeats
}

// shows is how long after an eviction the next pod of its maker waits for a successor to
// show up.
func (r Returns) shows(p *fleet.Pod) time.Duration {
	if r.hasReturned(p) {
		return showsLate
	}
	return ShowsWithin
}

// Why says of a pod that is left alone what came back and what helps.
func (r Returns) Why(p *fleet.Pod) string {
	return r.came(r.owners[MakerOf(p)].first)
}

// came says how a pod came back, and what helps.
func (r Returns) came(p *fleet.Pod) string {
	toleration, tolerates := ToleratesDrain(p)
	switch {
	case tolerates:
		return fmt.Sprintf("pod %s came to the node while it drains, by its toleration %s: narrow the toleration, or keep the pods off this node by affinity", p.Key(), toleration)
	case r.Open:
		return fmt.Sprintf("pod %s came to the node while it drains, as the node cannot be cordoned: the agent's log tells why its Node cannot be written", p.Key())
	}
	return fmt.Sprintf("pod %s came to the node while it drains, past the cordon: find out which scheduler or controller binds it to the node", p.Key())
}

// ToleratesDrain reports whether kube-scheduler may bind a pod to a node that drains, for one
// kind of drain at least, and by which toleration.
func ToleratesDrain(p *fleet.Pod) (toleration string, tolerates bool) {
	draining, yes := tolerationOf(p, contract.TaintDraining)
	if _, cordoned := tolerationOf(p, corev1.TaintNodeUnschedulable); !yes || !cordoned {
		return "", false
	}
	words := make([]string, 0, 4)
	for _, f := range []struct{ name, value string }{
		{"key", draining.Key}, {"operator", string(draining.Operator)}, {"value", draining.Value}, {"effect", string(draining.Effect)},
	} {
		if f.value != "" {
			words = append(words, f.name+": "+f.value)
		}
	}
	return "{" + strings.Join(words, ", ") + "}", true
}
