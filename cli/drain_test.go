package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// inFrontOf is the program in front of nodes whose agents take a second for a drain, and end it
// as they are told to. most is how many drains were open at once.
func inFrontOf(t *testing.T, nodes []corev1.Node, ends func(node string) contract.Report) (c *cli, out *bytes.Buffer, most *int) {
	out, most = &bytes.Buffer{}, new(int)
	c = newCLI(t, view.World{Now: time.Now()}, out)
	var objects []runtime.Object
	for i := range nodes {
		objects = append(objects, &nodes[i])
	}
	client := fake.NewClientset(objects...)
	open := 0
	client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.PatchAction).GetName()
		open++
		*most = max(*most, open)
		go func() {
			time.Sleep(time.Second)
			open--
			node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			request, err := contract.ParseRequest(node.Annotations[contract.AnnotationDrainRequest])
			if err != nil {
				t.Error(err)
			}
			report := ends(name)
			report.Answers = []string{request.ID}
			node.Annotations[contract.AnnotationDrainReport] = report.String()
			if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}()
		return false, nil, nil
	})
	c.connect = func() (kubernetes.Interface, error) { return client, nil }
	return c, out, most
}

func named(names ...string) (nodes []corev1.Node) {
	for _, name := range names {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "1", Labels: map[string]string{"role": "batch"}}})
	}
	return nodes
}

// Never more drains are open at once than asked for, all come to their end, and one that fails
// is said and does not stop the others.
func TestDrainsInTurn(t *testing.T) {
	for _, parallel := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			c, out, most := inFrontOf(t, named("a", "b", "c", "d", "e"), func(node string) contract.Report {
				if node == "b" {
					return contract.Report{Phase: contract.PhaseFailed, Message: "no right"}
				}
				return contract.Report{Phase: contract.PhaseDrained}
			})
			err := c.run(t.Context(), []string{"drain", "-l", "role=batch", "--wait", fmt.Sprint("--parallel=", parallel), "--reason=upgrade"})
			if err == nil || err.Error() != "node b: not drained: no right" {
				t.Errorf("error %v", err)
			}
			if *most != parallel {
				t.Errorf("--parallel=%d: %d drains were open at once", parallel, *most)
			}
			if n := strings.Count(out.String(), ": Drained\n"); n != 4 || !strings.Contains(out.String(), "node/b: Failed: no right") {
				t.Errorf("%d drains ended:\n%s", n, out)
			}
		})
	}
}

// A node that goes in the middle of its drain is not called drained: its pods were cut off.
func TestANodeThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := inFrontOf(t, named("a"), func(string) contract.Report {
			return contract.Report{Phase: contract.PhaseBlocked, Left: 3, BlockedBy: []string{"shop/api"}}
		})
		go func() {
			time.Sleep(time.Minute)
			client, err := c.connect()
			if err != nil {
				t.Error(err)
				return
			}
			if err := client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}()
		err := c.run(t.Context(), []string{"drain", "a", "--wait"})
		if err == nil || err.Error() != "node a: not drained: the node is gone, and the end of its drain was not seen" {
			t.Errorf("error %v", err)
		}
	})
}

// What does not end in its time is named with what blocks it, and what was not begun, too.
func TestDrainsHaveATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := inFrontOf(t, named("a", "b"), func(string) contract.Report {
			return contract.Report{Phase: contract.PhaseBlocked, Left: 3, BlockedBy: []string{"shop/api"}}
		})
		err := c.run(t.Context(), []string{"drain", "a", "b", "--wait", "--timeout=10m"})
		for _, want := range []string{"node a: not drained within --timeout: Blocked, pods left: 3, blocked by shop/api", "node b: not asked for: not drained within --timeout"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	})
}

// What stands on a node already is not written over.
func TestRequestsOfOthers(t *testing.T) {
	annotated := func(key, value string) []corev1.Node {
		nodes := named("a")
		nodes[0].Annotations = map[string]string{key: value}
		return nodes
	}
	scaleDown := contract.Request{ID: contract.ScaleDownID("i-1", time.Unix(1, 0)), Kind: contract.KindScaleDown, By: "windlass-scaler"}.String()
	tainted := named("a")
	tainted[0].Spec.Taints = []corev1.Taint{contract.DrainingTaint(contract.KindSpot)}
	requested := named("a")
	requested[0].Spec.Taints = []corev1.Taint{contract.DrainingTaint(contract.KindRequest)}
	for _, c := range []struct {
		args, want string
		nodes      []corev1.Node
	}{
		{"drain a --reason=upgrade", "", annotated(contract.AnnotationDrainRequest, "upgrade")},
		{"drain a --reason=other", "is being drained already: somebody asked for it (upgrade)", annotated(contract.AnnotationDrainRequest, "upgrade")},
		{"drain a", "windlass-scaler asked for it", annotated(contract.AnnotationDrainRequest, scaleDown)},
		{"drain a", "cannot be read", annotated(contract.AnnotationDrainRequest, "{")},
		{"undrain a", "", annotated(contract.AnnotationDrainRequest, "{")},
		{"undrain a", "hold a cancels that", annotated(contract.AnnotationDrainRequest, scaleDown)},
		{"undrain a", "nothing undoes that", annotated(contract.AnnotationDrainRequest, contract.Request{ID: contract.TerminateID("i-1"), Kind: contract.KindASG}.String())},
		{"undrain a", "a notice of kind spot", tainted},
		{"undrain a", "", requested},
		{"hold a --reason=", "would hold nothing", named("a")},
		{"hold node/a", "", named("a")},
		{"unhold a", contract.AnnotationScaleDownDisabled, annotated(contract.AnnotationScaleDownDisabled, "true")},
		{"hold a --reason=false", "would hold nothing", named("a")},
		{"drain a --parallel=2", "--parallel is for --wait", named("a")},
		{"drain a --wait --parallel=0", "want 1 at the least", named("a")},
		{"drain -l role=none", "there is no such node", named("a")},
	} {
		out := &bytes.Buffer{}
		program := newCLI(t, view.World{Nodes: c.nodes}, out)
		err := program.run(t.Context(), strings.Fields(c.args))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.args, err, c.want)
		}
	}
}

// Whoever waits sees what comes after the request, and not how the node was before: without the
// request it would seem to have been removed.
func TestWaitsFromTheRequestOn(t *testing.T) {
	c := newCLI(t, view.World{Now: time.Now()}, &bytes.Buffer{})
	nodes := named("a")
	client := fake.NewClientset(&nodes[0])
	client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		written := nodes[0].DeepCopy()
		written.ResourceVersion = "9"
		written.Annotations = map[string]string{contract.AnnotationDrainRequest: contract.Request{ID: contract.RequestID("no reason was given"), Kind: contract.KindRequest}.String()}
		return true, written, nil
	})
	client.PrependWatchReactor("nodes", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if from := a.(clienttesting.WatchAction).GetWatchRestrictions().ResourceVersion; from != "9" {
			t.Errorf("watches from version %q, want that of its write", from)
		}
		w := watch.NewFakeWithChanSize(1, false)
		drained := nodes[0].DeepCopy()
		id := contract.RequestID("no reason was given")
		drained.Annotations = map[string]string{
			contract.AnnotationDrainRequest: contract.Request{ID: id, Kind: contract.KindRequest}.String(),
			contract.AnnotationDrainReport:  contract.Report{Answers: []string{id}, Phase: contract.PhaseDrained}.String(),
		}
		w.Modify(drained)
		return true, w, nil
	})
	c.connect = func() (kubernetes.Interface, error) { return client, nil }
	if err := c.run(t.Context(), []string{"drain", "a", "--wait"}); err != nil {
		t.Error(err)
	}
}

// A drain that is not watched any more keeps its turn: without the right to watch, no more nodes are asked
// for than --parallel says.
func TestUnwatchedDrainsKeepTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, most := inFrontOf(t, named("a", "b", "c"), func(string) contract.Report { return contract.Report{Phase: contract.PhaseDrained} })
		client, err := c.connect()
		if err != nil {
			t.Fatal(err)
		}
		client.(*fake.Clientset).PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no right to watch"))
		})
		err = c.run(t.Context(), []string{"drain", "-l", "role=batch", "--wait", "--reason=upgrade"})
		time.Sleep(time.Minute)
		for _, want := range []string{"node a: its drain goes on, and is not watched any more: ", "the request stands, and undrain removes it", "node b: not asked for: node a: its drain goes on", "node c: not asked for"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		if *most != 1 {
			t.Errorf("%d drains were open at once", *most)
		}
	})
}

// A drain that has ended before somebody waits for it has ended, and a watch that the server has forgotten is
// begun anew.
func TestWaitsForWhatHasEnded(t *testing.T) {
	drained := named("a")
	drained[0].Annotations = map[string]string{
		contract.AnnotationDrainRequest: "upgrade",
		contract.AnnotationDrainReport:  contract.Report{Phase: contract.PhaseDrained, Answers: []string{contract.RequestID("upgrade")}}.String(),
	}
	c := newCLI(t, view.World{Nodes: drained}, &bytes.Buffer{})
	if err := c.run(t.Context(), []string{"drain", "a", "--wait", "--reason=upgrade", "--timeout=1s"}); err != nil {
		t.Error(err)
	}

	synctest.Test(t, func(t *testing.T) {
		c, _, _ := inFrontOf(t, named("a"), func(string) contract.Report { return contract.Report{Phase: contract.PhaseDrained} })
		client, err := c.connect()
		if err != nil {
			t.Fatal(err)
		}
		forgotten := false
		client.(*fake.Clientset).PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
			if forgotten {
				return false, nil, nil
			}
			forgotten = true
			expired := apierrors.NewResourceExpired("too old").Status()
			w := watch.NewFakeWithChanSize(1, false)
			w.Error(&expired)
			return true, w, nil
		})
		if err := c.run(t.Context(), []string{"drain", "a", "--wait", "--reason=upgrade"}); err != nil {
			t.Error(err)
		}
	})
}

// Somebody's hold is not replaced by one without a reason, and one without a word is a hold all the same.
func TestHoldsOfOthers(t *testing.T) {
	for _, c := range []struct{ has, args, said, want string }{
		{"", "hold a", "node/a held\n", "true"},
		{"heap dump", "hold a", "node/a held already: heap dump\n", "heap dump"},
		{"heap dump", "hold a --reason=audit", "node/a held; the reason was: heap dump\n", "audit"},
		{"false", "hold a", "node/a held\n", "true"},
	} {
		nodes := named("a")
		if c.has != "" {
			nodes[0].Annotations = map[string]string{contract.AnnotationHold: c.has}
		}
		out := &bytes.Buffer{}
		program := newCLI(t, view.World{}, out)
		client := fake.NewClientset(&nodes[0])
		program.connect = func() (kubernetes.Interface, error) { return client, nil }
		if err := program.run(t.Context(), strings.Fields(c.args)); err != nil || out.String() != c.said {
			t.Errorf("%s of one held for %q: said %q, error %v", c.args, c.has, out, err)
		}
		node, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || node.Annotations[contract.AnnotationHold] != c.want {
			t.Errorf("%s of one held for %q: held for %q, error %v", c.args, c.has, node.Annotations[contract.AnnotationHold], err)
		}
	}
}
