package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
)

// nodeAccess is the Node as it was last read, and how reading and writing it
// goes. One of both is under way at a time.
type nodeAccess struct {
	// raw is nil while the Node is not known. Of one that was deleted while it
	// drained it is what was last seen.
	raw *corev1.Node
	// gone is since when it is deleted, as far as is known; zero while it is not.
	gone time.Time
	// dirty: it has changed since.
	dirty bool

	reading, writing bool
	failures         int
	retryAt          time.Time

	written, unwritable time.Time
}

// forget drops what is not needed while there is nothing to do.
func (n *nodeAccess) forget() { n.raw, n.dirty = nil, false }

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

// take remembers the Node, without its list of images, which is most of it.
func (n *nodeAccess) take(node *corev1.Node) {
	node.Status.Images, node.ManagedFields = nil, nil
	n.raw, n.gone, n.dirty = node, time.Time{}, false
}

// take remembers the Node as an answer shows it. The watch may have told of a
// later change before the answer came.
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
		l.Logger.Info("the node was deleted", "draining", l.drain != nil)
	}
	n.dirty = false
	if l.drain == nil {
		n.raw = nil
	}
}

// retry is when the next try is due; zero where none waits for its time.
func (n *nodeAccess) retry(now time.Time) time.Time {
	if n.reading || n.writing || !n.retryAt.After(now) {
		return time.Time{}
	}
	return n.retryAt
}

// succeed and fail keep the pause between tries.
func (n *nodeAccess) succeed() { n.failures, n.retryAt = 0, time.Time{} }

// fail makes the next try wait: not at all after a first failure that was a
// change by somebody else, and longer each time.
func (n *nodeAccess) fail(err error) {
	n.failures++
	if errors.Is(err, kube.ErrChanged) && n.failures == 1 {
		return
	}
	n.retryAt = time.Now().Add(evict.Pause(n.failures, err))
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
		l.Logger.Info("the node is there again")
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

// idle says that nothing has changed since there was nothing to do, and that
// nothing is due.
func (l *loop) idle(now time.Time) bool {
	due := !l.settledUntil.IsZero() && !now.Before(l.settledUntil)
	return l.drain == nil && !due && l.settled != "" && l.settled == l.shows()
}

// shows is everything from which a drain may begin, or something be left to
// undo, as far as it is seen without reading the Node: our own keys, and the
// notices. Whether somebody has taken back a cordon of ours is not: while one
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
	return fmt.Sprintf("%v %s %q %v %v", l.metadata.Exists, version, keys, l.sighting.Heard, l.sighting.Notices)
}

// read begins to read the Node if that is needed and due, and says whether it
// has.
func (l *loop) read(now time.Time) bool {
	n := &l.node
	needed := n.dirty || n.raw == nil && n.gone.IsZero()
	if !needed || n.reading || n.writing || now.Before(n.retryAt) {
		return false
	}
	n.reading = true
	l.running.Go(func() {
		node, err := l.ReadNode(l.ctx)
		l.post(func() { l.tookRead(node, err) })
	})
	return true
}

func (l *loop) tookRead(node *corev1.Node, err error) {
	n := &l.node
	n.reading = false
	if err == nil {
		l.take(node)
		n.succeed()
		if l.Identify != nil {
			l.Identify(n.fleet().InstanceID())
		}
		return
	}
	if apierrors.IsNotFound(err) {
		l.lose()
	}
	n.fail(err)
	l.logFailure("cannot read the node, trying on", err)
}

// logFailure says so at the first time, and then less often.
func (l *loop) logFailure(message string, err error) {
	level := l.Logger.Debug
	if f := l.node.failures; f == 1 || f%20 == 0 {
		level = l.Logger.Warn
	}
	level(message, "err", err, "failures", l.node.failures)
}

// write begins to write the Node if there is something to write and it is due.
func (l *loop) write(now time.Time, next drain.Next) {
	n := &l.node
	if next.Node == nil || !n.gone.IsZero() || n.reading || n.writing || n.dirty || now.Before(n.retryAt) {
		return
	}
	was := kube.StateOf(n.raw)
	want := was.Clone()
	want.Annotations, want.Labels = next.Node.Annotations, next.Node.Labels
	want.Taints, want.Unschedulable = next.Node.Taints, next.Node.Unschedulable
	patch := kube.NewNodePatch(was, want, kube.GuardVersion)
	if patch.Empty() {
		l.Logger.Error("a write without a change", "node", l.Name, "changes", drain.Changes(*n.fleet(), *next.Node))
		n.written = now
		return
	}
	changes := drain.Changes(*n.fleet(), *next.Node)
	n.writing = true
	l.running.Go(func() {
		node, err := l.WriteNode(l.ctx, patch)
		l.post(func() { l.tookWrite(node, err, changes, next.Events) })
	})
}

func (l *loop) tookWrite(node *corev1.Node, err error, changes []string, events []drain.Event) {
	n := &l.node
	n.writing = false
	switch {
	case err == nil:
		l.take(node)
		n.succeed()
		n.written, n.unwritable = time.Now(), time.Time{}
		l.Logger.Debug("node written", "changes", changes)
		l.tell(events)
	case errors.Is(err, kube.ErrChanged):
		n.dirty = true
		n.fail(err)
		l.Logger.Debug("the node changed in between, looking again", "err", err)
	default:
		if refused(err) && n.unwritable.IsZero() {
			n.unwritable = time.Now()
		}
		n.fail(err)
		l.logFailure("cannot write the node, trying on", err)
	}
}

// refused says that the API server answered, and with no.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// tell writes the Events of a change that was written.
func (l *loop) tell(events []drain.Event) {
	for _, e := range events {
		l.Logger.Info("drain", "reason", e.Reason, "message", e.Message)
		l.Tell(kube.Event{Object: kube.NodeReference(l.Name), Warning: e.Warning, Reason: e.Reason, Message: e.Message})
	}
}
