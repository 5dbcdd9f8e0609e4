package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// interrupted is a spot interruption in two minutes.
func interrupted() notice.Notice {
	return notice.Notice{
		ID: "spot-terminate:" + instance + ":2000-01-01", Cause: notice.SpotTerminate, Kind: contract.KindSpot, Source: notice.FromInstanceAction,
		Reason: "EC2 interrupts the spot instance", Deadline: time.Now().Add(2 * time.Minute),
	}
}

// The Node cannot be written, whatever the reason: the pods of an instance that
// goes leave all the same, after a moment, and no request is repeated without a pause. When it
// can be written again, it is.
func TestNodeCannotBeWritten(t *testing.T) {
	for _, tc := range []struct {
		name string
		took time.Duration
		err  error
		by   time.Duration // when the last pod has been asked to leave
	}{
		{"a right is missing", 0, apierrors.NewForbidden(corev1.Resource("nodes"), nodeName, errors.New("no")), 6 * time.Second},
		{"a webhook fails", 0, apierrors.NewInternalError(errors.New(`failed calling webhook "nodes": connection refused`)), 6 * time.Second},
		{"no connection", 0, errDown, 6 * time.Second},
		{"the server has no time", 0, apierrors.NewTooManyRequests("too many requests", 1), 6 * time.Second},
		{"no answer", 30 * time.Second, context.DeadlineExceeded, 11 * time.Second},
		{"it has always changed", 0, fmt.Errorf("%w: denied with 422", kube.ErrChanged), 6 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			story(t, func(w *world) {
				w.addPod("web-1")
				w.addPod("web-2")
				var mended atomic.Bool
				w.agentWith(func(a *Agent) {
					read, write := a.ReadNode, a.WriteNode
					a.ReadNode = func(ctx context.Context) (*corev1.Node, error) {
						time.Sleep(2 * time.Millisecond) // of virtual time
						return read(ctx)
					}
					a.WriteNode = func(ctx context.Context, patch kube.NodePatch) (*corev1.Node, error) {
						if mended.Load() {
							return write(ctx, patch)
						}
						w.set(func() { w.writes++ })
						time.Sleep(5*time.Millisecond + tc.took)
						return nil, tc.err
					}
				})
				w.after(time.Second)
				w.set(func() { w.reads = 0 })
				w.notify(interrupted())
				w.after(tc.by)
				if n := w.deleted(); n != 2 {
					t.Errorf("%d of 2 pods asked to leave after %s", n, tc.by)
				}
				w.after(time.Minute)
				w.set(func() {
					if w.reads > 40 || w.writes > 40 {
						t.Errorf("%d reads and %d writes in a minute", w.reads, w.writes)
					}
				})
				mended.Store(true)
				w.after(40 * time.Second)
				if r := w.report(); r.Phase != contract.PhaseDrained || !w.cordoned() {
					t.Errorf("unschedulable %v, report %s", w.cordoned(), r)
				}
			})
		})
	}
}

// A write that failed for a drain that was then called off says nothing about the
// next one: no pod is evicted before that node is closed.
func TestUnwritableIsForgotten(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.agentWith(func(a *Agent) {
			write := a.WriteNode
			a.WriteNode = func(ctx context.Context, patch kube.NodePatch) (*corev1.Node, error) {
				time.Sleep(time.Second) // of virtual time
				return write(ctx, patch)
			}
		})
		w.after(time.Second)
		w.set(func() { w.down = true })
		w.notify(terminated)
		w.after(3 * time.Second)
		w.notify()
		w.after(time.Second)
		w.set(func() { w.down = false })
		w.after(time.Hour)
		w.notify(terminated)
		w.after(900 * time.Millisecond)
		if w.deleted() > 0 || w.cordoned() {
			t.Errorf("%d pods evicted before the node was closed", w.deleted())
		}
		w.after(10 * time.Second)
		w.expectDrained()
	})
}

// A read of the Node hangs in mid-drain: the drain goes on without.
func TestNodeReadHangs(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("db-1")
		w.room["db"] = 0
		var hangs atomic.Bool
		w.agentWith(func(a *Agent) {
			read := a.ReadNode
			a.ReadNode = func(ctx context.Context) (*corev1.Node, error) {
				if !hangs.Load() {
					return read(ctx)
				}
				time.Sleep(30 * time.Second) // of virtual time
				return nil, context.DeadlineExceeded
			}
		})
		w.after(time.Second)
		w.notify(interrupted())
		w.after(5 * time.Second)
		hangs.Store(true)
		w.change(func(n *corev1.Node) { n.Labels = map[string]string{"turn": "1"} })
		w.after(100 * time.Millisecond)
		w.addPod("late-1")
		w.allow("db", 1)
		w.after(readPatience)
		if n := w.deleted(); n != 2 {
			t.Errorf("%d of 2 pods evicted while the read hangs", n)
		}
		w.set(func() { w.writes = 0 })
		w.after(10 * time.Second)
		if w.written() > 0 {
			t.Error("the Node was written, but what it is like is not known")
		}
		hangs.Store(false)
		w.after(30 * time.Second)
		w.expectDrained()
	})
}

// Whatever has come is one pass, also where the watch of the pods and an answer come together.
func TestOnePassForAll(t *testing.T) {
	l := &loop{ctx: t.Context(), do: make(chan func(), 1), nudge: make(chan struct{}, 1)}
	for range 30 {
		l.nudge <- struct{}{}
		answered := false
		l.post(func() { answered = true })
		if l.wait(time.Time{}); !answered || len(l.nudge) != 0 {
			t.Fatalf("an answer was taken: %v, and %d nudges are left", answered, len(l.nudge))
		}
	}
}
