package act

import (
	"context"
	"fmt"
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
// caller gives up.
type hangingNodes struct{ slowNodes }

func (n hangingNodes) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error) {
	if strings.HasPrefix(name, "hanging") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return n.slowNodes.Get(ctx, name, options)
}

func drainOf(node string) action.Action {
	return action.RequestDrain{Group: "web", Node: action.NodeRef{Name: node}, Kind: contract.KindScaleDown, ID: "scale-down:" + node}
}

// Writes on hundreds of nodes last several evaluations, so that pods get their nodes between them. Neither
// these nor what hangs keep evictions, terminations or other nodes from having their turn in each.
func TestWritesOnNodesDoNotHoldUp(t *testing.T) {
	const ofEach = 8 // evictions and terminations in an evaluation
	for _, tc := range []struct {
		name             string
		healthy, hanging int
		// within is how long an evaluation may take, until for how long there are such, and wait how long
		// a healthy node may wait after the first minutes, in which it shows what hangs.
		within, until, wait time.Duration
	}{
		{"a slow server", 800, 0, 3 * time.Second, 10 * time.Second, 10 * time.Second},
		{"some hang", 0, 16, 8 * time.Second, 20 * time.Minute, 10 * time.Second},
		{"many hang", 0, 200, 8 * time.Second, time.Hour, 10 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(nil)
				b.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
				b.Nodes, b.Pods = hangingNodes{slowNodes{b.Nodes}}, slowPods{b.Pods}
				asked := map[string]time.Time{}
				for i := range tc.healthy {
					asked[fmt.Sprint("n", i)] = time.Now()
				}
				began, done := time.Now(), 0
				for round := 0; time.Since(began) < tc.until; round++ {
					asked[fmt.Sprint("new-", round)] = time.Now()
					var actions []action.Action
					for i := range tc.hanging {
						actions = append(actions, drainOf(fmt.Sprint("hanging-", i)))
					}
					for node := range asked {
						actions = append(actions, drainOf(node))
					}
					for i := range ofEach {
						name := fmt.Sprint(round, "-", i)
						actions = append(actions, action.Evict{Group: "web", Node: n1, Pod: action.PodRef{Namespace: "default", Name: name, UID: "u"}})
						actions = append(actions, action.Lower{Group: "lowered-" + name, From: 2, To: 1})
					}
					others, start := 0, time.Now()
					for _, r := range b.Do(t.Context(), actions) {
						x, drains := r.Action.(action.RequestDrain)
						switch {
						case r.Outcome != Done:
						case !drains:
							others++
						default:
							if waited := r.Ended.Sub(asked[x.Node.Name]); waited > tc.wait && r.Ended.Sub(began) > 5*time.Minute {
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
				if len(asked) > tc.healthy/100 || done == 0 {
					t.Errorf("%d are done, and %d left", done, len(asked))
				}
			})
		})
	}
}
