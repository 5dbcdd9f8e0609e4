package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
)

// hangingNodes are as slowNodes, and those whose names begin with "hanging" answer nothing until the
// caller gives up. The one that is called "once" fails the first time.
type hangingNodes struct {
	slowNodes
	failed *bool
}

func (n hangingNodes) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error) {
	if strings.HasPrefix(name, "hanging") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if name == "once" && !*n.failed {
		*n.failed = true
		return nil, errors.New("etcdserver: leader changed")
	}
	return n.slowNodes.Get(ctx, name, options)
}

func drainOf(node string) action.Action {
	return action.RequestDrain{Group: "web", Node: action.NodeRef{Name: node}, Kind: contract.KindScaleDown, ID: "scale-down:" + node}
}

// busyNodes are as slowNodes of a server that has much else to do.
type busyNodes struct{ slowNodes }

func (n busyNodes) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error) {
	time.Sleep(250 * time.Millisecond)
	return n.slowNodes.Get(ctx, name, options)
}

// What one evaluation does not ask for waits until the pods of the others are scheduled, for the node may
// be where they go: sixty drains are one evaluation's also where the server is busy.
func TestSixtyDrainsInOneEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		b.Nodes = busyNodes{}
		var actions []action.Action
		for i := range 60 {
			actions = append(actions, drainOf(fmt.Sprint("n", i)))
		}
		for _, r := range b.Do(t.Context(), actions) {
			if r.Outcome != Done {
				t.Errorf("%s: %s, %v", r.Action, r.Outcome, r.Err)
			}
		}
	})
}

// Writes on hundreds of nodes last several evaluations, so that pods get their nodes between them. Neither
// these nor what hangs keep evictions and other groups from having their turn in each, or other
// nodes from theirs soon, also those that failed once, or those that are called as their instances are.
func TestWritesOnNodesDoNotHoldUp(t *testing.T) {
	const ofEach = 8 // evictions, and groups that are made smaller, in an evaluation
	for _, tc := range []struct {
		name             string
		healthy, hanging int
		// within is how long an evaluation may take, until for how long there are such, and wait how long
		// a node that does not hang may wait after the first minutes, in which those show that do.
		within, until, wait time.Duration
	}{
		{"a slow server", 800, 0, 3 * time.Second, 10 * time.Second, 0},
		{"some hang", 0, 16, 13 * time.Second, 20 * time.Minute, 11 * time.Second},
		{"many hang", 0, 200, 13 * time.Second, time.Hour, 11 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(nil)
				b.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
				b.Nodes, b.Pods = hangingNodes{slowNodes{b.Nodes}, new(bool)}, slowPods{b.Pods}
				asked := map[string]time.Time{}
				for i := range tc.healthy {
					asked[fmt.Sprint("n", i)] = time.Now()
				}
				began, done := time.Now(), 0
				const early = 5 * time.Minute
				for round := 0; time.Since(began) < tc.until; round++ {
					asked[fmt.Sprint("new-", round)] = time.Now()
					if _, before := asked["once"]; !before && done > 0 && time.Since(began) > early && !*b.Nodes.(hangingNodes).failed {
						asked["once"] = time.Now()
					}
					var actions []action.Action
					do := func(x action.Action) {
						if _, paused := b.BackedOff(x); !paused { // as the loop does
							actions = append(actions, x)
						}
					}
					for i := range tc.hanging {
						name := fmt.Sprint("hanging-", i)
						do(action.Heartbeat{Group: "web", Instance: name, Hook: "h"})
						do(drainOf(name))
						do(action.Mark{Group: "web", Node: action.NodeRef{Name: name}, Since: began})
					}
					for node := range asked {
						do(drainOf(node))
					}
					others := 0
					for i := range ofEach {
						name := fmt.Sprint(round, "-", i)
						do(action.Evict{Group: "web", Node: n1, Pod: action.PodRef{Namespace: "default", Name: name, UID: "u"}})
						do(action.Lower{Group: "lowered-" + name, From: 2, To: 1})
					}
					start := time.Now()
					for _, r := range b.Do(t.Context(), actions) {
						if r.Outcome != Done {
							continue
						}
						switch x := r.Action.(type) {
						case action.Evict, action.Lower:
							others++
						case action.RequestDrain:
							if waited := r.Ended.Sub(asked[x.Node.Name]); tc.wait > 0 && waited > tc.wait && r.Ended.Sub(began) > early {
								t.Fatalf("%s waited for %s in evaluation %d", x.Node.Name, waited, round)
							}
							delete(asked, x.Node.Name)
							done++
						}
					}
					if took := time.Since(start); took > tc.within {
						t.Fatalf("evaluation %d took %s", round, took)
					}
					if others != 2*ofEach {
						t.Fatalf("evaluation %d: %d others are done", round, others)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if len(asked) > 1 || done < tc.healthy || tc.hanging > 0 && !*b.Nodes.(hangingNodes).failed {
					t.Errorf("%d are done, and %d are left", done, len(asked))
				}
			})
		})
	}
}

// What failed all day, and would be done now, has its turn among what hangs; so has a buffer among
// buffers.
func TestWhatFailedForLongHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		b.Nodes = hangingNodes{slowNodes{b.Nodes}, new(bool)}
		healed := drainOf("healed")
		for range 1000 {
			b.backOffs.note(healed, Result{Action: healed, Outcome: Failed, Err: errors.New("no"), Ended: time.Now()})
		}
		var actions []action.Action
		for i := range 80 {
			actions = append(actions, drainOf(fmt.Sprint("hanging-", i)))
		}
		actions = append(actions, healed)
		for began := time.Now(); ; {
			ready := slices.DeleteFunc(slices.Clone(actions), func(x action.Action) bool { _, paused := b.BackedOff(x); return paused })
			for _, r := range b.Do(t.Context(), ready) {
				if r.Action == healed && r.Outcome == Done {
					return
				}
			}
			if time.Since(began) > 10*time.Minute {
				t.Fatal("it has had no turn")
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	buffer := action.UpdateBuffer{}
	b := newBed(nil)
	b.backOffs.note(buffer, Result{Action: buffer, Outcome: Failed, Err: errors.New("no"), Ended: time.Now()})
	if q := b.queues([]action.Action{buffer, action.Suspend{Group: "web", Process: "A"}}); len(q[0].lanes) != 1 || len(q[len(q)-1].lanes) != 1 {
		t.Errorf("queues %v", q)
	}
}
