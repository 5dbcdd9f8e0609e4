package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

const system = "windlass-system"

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

func pod(name, on, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{
		{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}},
	}}}
}

func status(t *testing.T, v statuspage.Verdicts) *corev1.ConfigMap {
	t.Helper()
	page, err := statuspage.Page{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: contract.ConfigMapStatus}, Data: map[string]string{statuspage.Key: page}, BinaryData: map[string][]byte{statuspage.VerdictsKey: verdicts}}
}

// lease is held for a while, which may be by none.
func lease(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: contract.LeaseScaler},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.Now().Add(time.Hour)}}}
}

func needed(names ...string) (v statuspage.Verdicts) {
	for _, name := range names {
		v.Nodes = append(v.Nodes, statuspage.Node{Name: name, Group: "web", PricePerHour: 0.1, Verdict: statuspage.Verdict{Reason: "Needed"}})
	}
	return v
}

// TestFeed: a view is told of what there is, and of what changes, in one piece where much changes at
// once; of an API server that fails, and that it does not any more.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(node("a"), node("b"), pod("1", "a", "500m"), pod("2", "", "1"), status(t, needed("a", "b")), lease("s-1"))
		var failing atomic.Bool
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return failing.Load(), nil, errors.New("the pods are on strike")
		})
		failing.Store(true)
		f := New(client, system, time.Now)
		var mu sync.Mutex
		var seen []top.World
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- f.Run(ctx, time.Second, func(w top.World) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, w)
			})
		}()
		told := func() (last top.World, times int) {
			time.Sleep(2 * time.Minute) // of virtual time, in which a reflector tries again
			mu.Lock()
			defer mu.Unlock()
			return seen[len(seen)-1], len(seen)
		}

		if w, _ := told(); !strings.Contains(w.Problem, "the pods are on strike") || len(w.Lines) != 2 || w.Lines[0].Pods != 0 {
			t.Errorf("%d nodes, problem %q", len(w.Lines), w.Problem)
		}
		failing.Store(false)
		w, before := told()
		if a := w.Lines[0]; w.Problem != "" || a.Name != "a" || a.CPU != 0.25 || a.Pods != 1 || a.Group != "web" || a.Reason != "Needed" {
			t.Errorf("problem %q, line %+v", w.Problem, a)
		}
		if diff := cmp.Diff([]view.PendingLine{{Count: 1, Example: "shop/2", Message: "there is no verdict on them yet"}}, w.Pending); diff != "" {
			t.Errorf("pending (-want +got):\n%s", diff)
		}
		if why, err := f.Why(view.Subject{Kind: view.KindNode, Name: "a"}); err != nil || why.Reason != "Needed" {
			t.Errorf("why: %+v, error %v", why, err)
		}
		if _, err := f.Why(view.Subject{Kind: view.KindPod, Name: "shop/1"}); err == nil {
			t.Error("a pod that is not pending has an answer")
		}

		nodes := client.CoreV1().Nodes()
		for i := range 100 {
			if _, err := nodes.Create(t.Context(), node(fmt.Sprintf("n%02d", i)), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		}
		for _, err := range []error{
			nodes.Delete(t.Context(), "b", metav1.DeleteOptions{}),
			client.CoreV1().Pods("shop").Delete(t.Context(), "1", metav1.DeleteOptions{}),
			client.CoreV1().Pods("shop").Delete(t.Context(), "2", metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}, Source: corev1.EventSource{Component: contract.AppAgent}, Reason: contract.EventDrainStarted}
		forged := event.DeepCopy()
		forged.Name, forged.Source.Component = "forged", "tenant"
		for _, e := range []*corev1.Event{event, forged} {
			if _, err := client.CoreV1().Events("default").Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		}
		w, after := told()
		if len(w.Lines) != 101 || w.Lines[0].Pods != 0 || len(w.Pending) != 0 || len(w.Recent) != 1 {
			t.Errorf("%d nodes, %d pods on the first, %d pending, %d events", len(w.Lines), w.Lines[0].Pods, len(w.Pending), len(w.Recent))
		}
		if after-before > 3 {
			t.Errorf("%d repaints for what happened at once", after-before)
		}
		silent := lease("s-1")
		silent.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		if _, err := client.CoordinationV1().Leases(system).Update(t.Context(), silent, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		if w, _ := told(); !strings.Contains(w.Problem, "has not renewed its lease") {
			t.Errorf("a lease that is not renewed is told as %q", w.Problem)
		}
		if _, err := client.CoordinationV1().Leases(system).Update(t.Context(), lease(""), metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		if w, _ := told(); !strings.Contains(w.Problem, "no scaler leads") {
			t.Errorf("a lease that nobody holds is told as %q", w.Problem)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadableStatusStands: that windlass-status cannot be understood, or was deleted, is a problem
// until it can be again, also over watches that begin anew.
func TestUnreadableStatusStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := status(t, needed("a"))
		client := fake.NewClientset(node("a"), object, lease("s-1"))
		var mu sync.Mutex
		var open []*watch.FakeWatcher
		client.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			open = append(open, watch.NewFake())
			return true, open[len(open)-1], nil
		})
		f := New(client, system, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx, time.Second, func(top.World) {}) }()
		time.Sleep(time.Minute)
		latest := func() *watch.FakeWatcher {
			mu.Lock()
			defer mu.Unlock()
			return open[len(open)-1]
		}
		again := func() {
			t.Helper()
			before := latest()
			before.Stop()
			time.Sleep(2 * time.Minute)
			if latest() == before {
				t.Fatal("it is not watched any more")
			}
		}
		bad := object.DeepCopy()
		bad.ResourceVersion, bad.BinaryData = "2", map[string][]byte{statuspage.VerdictsKey: []byte("zstd")}
		good := object.DeepCopy()
		good.ResourceVersion = "4"
		for _, step := range []struct {
			what    string
			change  func()
			problem bool
		}{
			{"read", func() {}, false},
			{"unreadable", func() { latest().Modify(bad) }, true},
			{"watched anew", again, true},
			{"readable", func() { latest().Modify(good) }, false},
			{"deleted", func() { latest().Delete(good) }, true},
			{"deleted, watched anew", again, true},
			{"there again", func() { latest().Add(good) }, false},
		} {
			step.change()
			time.Sleep(time.Second)
			if problem := f.World().Problem; strings.Contains(problem, contract.ConfigMapStatus) != step.problem {
				t.Errorf("%s: problem %q", step.what, problem)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCrashIsAnError: what panics beside who has the terminal ends Run, which says where.
func TestCrashIsAnError(t *testing.T) {
	for what, spoil := range map[string]func(*Feed, *fake.Clientset){
		"a handler": func(f *Feed, _ *fake.Clientset) { f.nodes = nil },
		"the lease": func(_ *Feed, client *fake.Clientset) {
			client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { panic("a fault") })
		},
		"the view": nil,
	} {
		t.Run(strings.ReplaceAll(what, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(node("a"), status(t, needed("a")), lease("s-1"))
				f := New(client, system, time.Now)
				show := func(top.World) {}
				if spoil == nil {
					show = func(top.World) { panic("a fault") }
				} else {
					spoil(f, client)
				}
				err := f.Run(t.Context(), time.Second, show)
				if err == nil || !strings.Contains(err.Error(), "a fault of this program: ") || !strings.Contains(err.Error(), "feed.go") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestSums: what is summed up change by change is what one reads at the end, whatever became of
// pods, nodes and verdicts.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := New(nil, system, time.Now)
		pods, nodes := map[string]*corev1.Pod{}, map[string]*corev1.Node{}
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				is := node(name)
				f.node(nodes[name], is)
				nodes[name] = is
			case 1:
				if was := nodes[name]; was != nil {
					f.nodeGone(was)
					delete(nodes, name)
				}
			case 2:
				if was := pods[name]; was != nil {
					f.podGone(was)
					delete(pods, name)
				}
			case 3:
				f.World() // some of it is read meanwhile
			default:
				is := pod(name, rapid.SampledFrom([]string{"", "a", "b", "gone"}).Draw(t, "on"), rapid.SampledFrom([]string{"100m", "1"}).Draw(t, "cpu"))
				is.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded}).Draw(t, "phase")
				f.pod(pods[name], is)
				pods[name] = is
			}
		}
		fresh := New(nil, system, time.Now)
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			fresh.node(nil, nodes[name])
		}
		for _, p := range pods {
			fresh.pod(nil, p)
		}
		if diff := cmp.Diff(fresh.World(), f.World(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-read anew +summed up):\n%s", diff)
		}
	})
}

// BenchmarkFeed is what a view of 5,000 nodes with 100,000 pods is told after one node has changed.
func BenchmarkFeed(b *testing.B) {
	f := New(nil, system, time.Now)
	for i := range 5000 {
		name := fmt.Sprintf("ip-10-%d-%d", i/256, i%256)
		f.node(nil, node(name))
		for j := range 20 {
			f.pod(nil, pod(fmt.Sprint(i, j), name, "50m"))
		}
	}
	f.World()
	changed := node("ip-10-3-3")
	for b.Loop() {
		f.node(nil, changed)
		f.World()
	}
}
