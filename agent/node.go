package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
)

// nodeAccess is the Node as it was last read, and how reading and writing it
// goes. Only one of both is under way at a time.
type nodeAccess struct {
	// raw is nil while the Node is not known. Of one that was deleted while it
	// drained it is what was last seen.
	raw *corev1.Node
	// gone is since when it is deleted, as far as is known; zero while it is not.
	gone time.Time
	// dirty: it has changed since.
	dirty bool

	reads, writes traffic

	// written is when the last write succeeded.
	written time.Time
	// unwritable is since when no write has succeeded though one was tried; zero
	// where the last one did.
	unwritable time.Time
}

// forget drops what is not needed while there is nothing to do.
func (n *nodeAccess) forget() {
	n.raw, n.dirty, n.unwritable = nil, false, time.Time{}
	n.reads.forget()
	n.writes.forget()
}

const (
	// slowWrite is how long a write may take that does not count as failed yet.
	slowWrite = 10 * time.Second
	// contested is how many changes by others in a row, each in the very moment of a
	// write, are no accident.
	contested = 3
)

// unwritableSince is since when the Node cannot be written, as far as is known:
// it is deleted, writes fail, or one hangs. It is zero where none of these is known.
func (n *nodeAccess) unwritableSince(now time.Time) time.Time {
	since := notice.Earliest(n.gone, n.unwritable)
	if n.writes.underWay() && !now.Before(n.writes.began.Add(slowWrite)) {
		since = notice.Earliest(since, n.writes.began)
	}
	return since
}

// writeWake is when to try a wanted write again.
func (n *nodeAccess) writeWake(now time.Time) time.Time {
	if hangs := n.writes.began.Add(slowWrite); n.writes.underWay() && now.Before(hangs) {
		return hangs
	}
	return n.writes.wake(now)
}

func (n *nodeAccess) fleet() *fleet.Node {
	node := fleet.NodeFrom(n.raw)
	return &node
}

// attached names the volumes that are attached to the node.
func (n *nodeAccess) attached() []string {
	var names []string
	for _, v := range n.raw.Status.VolumesAttached {
		names = append(names, string(v.Name))
	}
	slices.Sort(names)
	return names
}

// take keeps the Node, without its list of images, which is most of it.
func (n *nodeAccess) take(node *corev1.Node) {
	node.Status.Images, node.ManagedFields = nil, nil
	n.raw, n.gone, n.dirty = node, time.Time{}, false
}

// take keeps the Node as an answer shows it. The watch may have reported a later change before
// the answer came.
func (l *loop) take(node *corev1.Node) {
	l.node.take(node)
	if l.metadata.Version == "" || !newer(l.metadata.Version, node.ResourceVersion) {
		return
	}
	if l.metadata.Exists {
		l.node.dirty = true
	} else {
		l.lose()
	}
}

// lose notes that the Node was deleted. Its pods are still there, and for what
// of them has been seen to drain, the drain goes on: without the object, the
// garbage collector of pods would end them without grace.
func (l *loop) lose() {
	n := &l.node
	if n.gone.IsZero() {
		n.gone = time.Now()
		l.Logger.Info("node object deleted", "draining", l.drain != nil)
	}
	n.dirty = false
	if l.drain == nil {
		n.raw = nil
	}
}

// hearMetadata notes that the Node has changed.
func (l *loop) hearMetadata(m evict.Metadata) {
	l.metadata = m
	n := &l.node
	if !m.Exists {
		l.lose()
		return
	}
	if !n.gone.IsZero() {
		l.Logger.Info("node object is back")
		n.gone, n.raw = time.Time{}, nil
	}
	if n.raw != nil && newer(m.Version, n.raw.ResourceVersion) {
		n.dirty = true
	}
}

// newer compares resource versions. Those of one resource are numbers that
// grow; https://github.com/kubernetes/enhancements/issues/5504
func newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return a != b
	}
	return x > y
}

// idle reports whether nothing has changed since there was nothing to do, and that
// nothing is due.
func (l *loop) idle(now time.Time) bool {
	due := !l.settledUntil.IsZero() && !now.Before(l.settledUntil)
	return l.drain == nil && !due && l.settled != "" && l.settled == l.shows()
}

// shows is everything from which a drain may begin, or something be left to
// undo, as far as it is seen without reading the Node: our own keys, and what the
// metadata say. Whether somebody has taken back a cordon of ours is not: while one
// stands, each change of the Node counts.
func (l *loop) shows() string {
	var keys []string
	for key, value := range l.metadata.Annotations {
		if strings.HasPrefix(key, contract.Prefix) {
			keys = append(keys, key+"="+value)
		}
	}
	slices.Sort(keys)
	version := ""
	if _, cordoned := l.metadata.Annotations[contract.AnnotationCordonedBy]; cordoned {
		version = l.metadata.Version
	}
	return fmt.Sprintf("%v %s %q %v", l.metadata.Exists, version, keys, l.sighting)
}

// read begins to read the Node if that is needed and due.
func (l *loop) read(now time.Time) {
	n := &l.node
	needed := n.dirty || n.raw == nil && n.gone.IsZero()
	if !needed || n.writes.underWay() || !n.reads.free(now) {
		return
	}
	n.reads.begin(now)
	l.running.Go(func() {
		node, err := l.ReadNode(l.ctx)
		l.post(func() { l.tookRead(node, err) })
	})
}

// hear notes how long a request about the Node took: it tells a drain of the server's time.
func (l *loop) hear(began time.Time) {
	if l.drain != nil {
		now := time.Now()
		l.drain.pace.hear(now, now.Sub(began))
	}
}

// hearRefusal notes that the server had no time for a request about the Node, if that is what err says.
func (l *loop) hearRefusal(err error) {
	if l.drain != nil && apierrors.IsTooManyRequests(err) && !kube.Denied(err) {
		l.drain.pace.refuse(time.Now())
	}
}

// readPatience is how long a drain waits for a read before it goes on by what was
// known before. Others write to the Node all the time, and of the two minutes of
// a spot instance there is no time for a read that hangs.
const readPatience = time.Second

// awaitsRead reports whether nothing is decided before the Node was read, and when to
// look again.
func (l *loop) awaitsRead(now time.Time) (yes bool, wake time.Time) {
	n := &l.node
	switch {
	case n.raw == nil:
		return true, n.reads.wake(now)
	case !n.reads.underWay():
		return false, time.Time{}
	case l.drain == nil:
		return true, time.Time{} // its end is an event
	}
	wake = n.reads.began.Add(readPatience)
	return now.Before(wake), wake
}

func (l *loop) tookRead(node *corev1.Node, err error) {
	n := &l.node
	if err == nil {
		l.hear(n.reads.began)
		n.reads.succeed()
		l.take(node)
		if l.Identify != nil {
			l.Identify(n.fleet().InstanceID())
		}
		return
	}
	n.reads.fail(time.Now(), err)
	l.hearRefusal(err)
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) { // else it is a proxy's answer
		l.lose()
	}
	l.logFailure("reading the node failed, retrying", err, n.reads.failures)
}

// logFailure says so at the first time, and then less often.
func (l *loop) logFailure(message string, err error, failures int) {
	level := l.Logger.Debug
	if failures == 1 || failures%20 == 0 {
		level = l.Logger.Warn
	}
	level(message, "err", err, "failures", failures)
}

// write begins to write the Node if there is something to write and it is due.
func (l *loop) write(now time.Time, next drain.Next) {
	n := &l.node
	if next.Node == nil || !n.gone.IsZero() || n.dirty || n.reads.underWay() || !n.writes.free(now) {
		return
	}
	was := kube.StateOf(n.raw)
	want := was.Clone()
	want.Annotations, want.Labels = next.Node.Annotations, next.Node.Labels
	want.Taints, want.Unschedulable = next.Node.Taints, next.Node.Unschedulable
	patch := kube.NewNodePatch(was, want, kube.GuardVersion)
	if patch.Empty() {
		l.Logger.Error("node not written: nothing would change", "node", l.Name, "changes", drain.Changes(*n.fleet(), *next.Node))
		n.written = now
		return
	}
	changes := drain.Changes(*n.fleet(), *next.Node)
	n.writes.begin(now)
	l.running.Go(func() {
		node, err := l.WriteNode(l.ctx, patch)
		l.post(func() { l.tookWrite(node, err, changes, next.Events) })
	})
}

func (l *loop) tookWrite(node *corev1.Node, err error, changes []string, events []drain.Event) {
	n := &l.node
	if err == nil {
		l.hear(n.writes.began)
		n.writes.succeed()
		n.written, n.unwritable = time.Now(), time.Time{}
		if l.drain != nil {
			l.drain.unwritten = nil
		}
		l.take(node)
		if said := node.Annotations[contract.AnnotationDryRun]; l.Policy.DryRun {
			l.Logger.Info("dry run", "would", said)
		}
		l.Logger.Debug("node written", "changes", changes)
		l.tell(events)
		return
	}
	n.writes.fail(time.Now(), err)
	l.hearRefusal(err)
	changed := errors.Is(err, kube.ErrChanged)
	if !changed || n.writes.failures >= contested {
		n.unwritable = n.writes.failing
	}
	if changed {
		n.dirty = true
		l.Logger.Debug("node changed meanwhile, deciding again", "err", err)
		return
	}
	l.logFailure("writing the node failed, retrying", err, n.writes.failures)
}

// tell writes the Events of a change that was made.
func (l *loop) tell(events []drain.Event) {
	for _, e := range events {
		l.Logger.Info("drain", "reason", e.Reason, "message", e.Message)
		l.Tell(kube.Event{Object: kube.NodeReference(l.Name), Warning: e.Warning, Reason: e.Reason, Message: e.Message, Annotations: e.Notice, At: l.rightTime()})
	}
}
