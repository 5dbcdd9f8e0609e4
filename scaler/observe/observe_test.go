package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const ours = "windlass-system"

// groups is a reading that is handed out as it is.
type groups struct {
	at     time.Time
	list   []fleet.Group
	err    error
	nudged atomic.Int32
}

func (g *groups) Groups(map[string]resource.Quantity) ([]fleet.Group, time.Time, error) {
	return g.list, g.at, g.err
}
func (g *groups) Look(string, bool) { g.nudged.Add(1) }

// world starts an Observer over a fake API server and waits until it has seen
// everything.
func world(t *testing.T, objects ...apiruntime.Object) (*Observer, *fake.Clientset, *groups) {
	t.Helper()
	client := fake.NewClientset(objects...)
	read := &groups{at: time.Now(), list: []fleet.Group{{Name: "web"}}}
	return watchOver(t, client, func(c *Config) { c.Groups = read }), client, read
}

// watchOver starts an Observer over an API server and waits for the first news.
func watchOver(t *testing.T, client kubernetes.Interface, change ...func(*Config)) *Observer {
	t.Helper()
	config := Config{
		Client: client, Namespace: ours, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Groups: &groups{at: time.Now(), list: []fleet.Group{{Name: "web"}}},
	}
	for _, c := range change {
		c(&config)
	}
	o := New(config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { o.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	time.Sleep(time.Second) // the first burst of news
	synctest.Wait()
	drain(o)
	return o
}

func drain(o *Observer) {
	select {
	case <-o.Changed():
	default:
	}
}

// nudgedAfter returns how long it took until the Observer signalled a change.
func nudgedAfter(t *testing.T, o *Observer) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-o.Changed():
	case <-time.After(time.Minute):
		t.Fatal("nothing was told for a minute")
	}
	return time.Since(began)
}

func pod(name string, with ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: name}}}}},
	}
	for _, w := range with {
		w(p)
	}
	return p
}

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func agentOf(node string, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return pod("agent-"+node, on(node), func(p *corev1.Pod) {
		p.Namespace, p.Labels = ours, map[string]string{contract.LabelAppName: contract.AppAgent}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	})
}

func TestSnapshotHasEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, _ := world(t,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			pod("a", on("n1")), pod("b", unschedulable), agentOf("n1", true), agentOf("n2", false),
		)
		s, _, err := o.Snapshot(time.Now(), fleet.State{GrownAt: map[string]time.Time{"web": time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range s.Pods {
			names = append(names, p.Key()+" "+p.Scheduling.String())
		}
		slices.Sort(names)
		want := []string{"default/a ", "default/b Unschedulable", ours + "/agent-n1 ", ours + "/agent-n2 "}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]bool{"n1": true, "n2": false}, s.Agents); diff != "" {
			t.Error(diff)
		}
		if len(s.Nodes) != 1 || len(s.Groups) != 1 || len(s.Autoscalers) != 0 || len(s.State.GrownAt) != 1 {
			t.Errorf("nodes %d, groups %d, autoscalers %v, state %v", len(s.Nodes), len(s.Groups), s.Autoscalers, s.State)
		}

		// What was handed out does not change any more.
		if err := client.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		nudgedAfter(t, o)
		later, _, err := o.Snapshot(time.Now(), fleet.State{})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Pods) != 4 || len(later.Pods) != 3 {
			t.Errorf("%d pods before, %d after", len(s.Pods), len(later.Pods))
		}
	})
}

// From the watch event of an unschedulable pod to the decision pass 4 ms, in
// which what comes with it arrives; what is not urgent may take longer.
func TestUrgentNewsAreQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, read := world(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		pods := client.CoreV1().Pods("default")
		create := func(p *corev1.Pod) {
			t.Helper()
			if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create(pod("plain"))
		if took := nudgedAfter(t, o); took != later {
			t.Errorf("a new pod is told of after %s, want %s", took, later)
		}
		create(pod("other"))
		for i := range 5 {
			create(pod(fmt.Sprint("waits", i), unschedulable))
		}
		if took := nudgedAfter(t, o); took != soon {
			t.Errorf("waiting pods are told of after %s, want %s", took, soon)
		}
		time.Sleep(time.Second)
		select {
		case <-o.Changed():
			t.Error("one burst was told of twice")
		default:
		}

		before := read.nudged.Load()
		if _, err := client.CoreV1().Nodes().Update(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Annotations: map[string]string{contract.AnnotationDrainReport: contract.Report{Phase: contract.PhaseDrained}.String()}}}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := nudgedAfter(t, o); took != soon {
			t.Errorf("a report is told of after %s, want %s", took, soon)
		}
		if read.nudged.Load() == before {
			t.Error("a report did not ask for a reading of the groups")
		}
	})
}

// A change that no decision can see is not signalled.
func TestHeartbeatsAreNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, _ := world(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 5}}}}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		select {
		case <-o.Changed():
			t.Error("a list of images was told of")
		default:
		}
	})
}

func TestNothingIsDecidedBeforeAllWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, read := world(t)
		read.at, read.err = time.Time{}, errors.New("no right to call autoscaling:DescribeAutoScalingGroups")
		_, _, err := o.Snapshot(time.Now(), fleet.State{})
		if !errors.Is(err, ErrNotYet) || !errors.Is(err, read.err) {
			t.Errorf("error %v", err)
		}
	})
}

// AwaitNode returns when the watch has seen the version, or the node is deleted.
func TestAwaitNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, _ := world(t)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o.AwaitNode(ctx, "n1", "5")
		o.AwaitNode(ctx, "gone", "9")
		if ctx.Err() != nil {
			t.Fatal("waited for a version that was seen")
		}
		o.AwaitNode(ctx, "n1", "6")
		if ctx.Err() == nil {
			t.Error("did not wait for a version that was not seen")
		}
	})
}

// Pods of one template share one spec, and an unused spec is forgotten.
func TestSpecsAreShared(t *testing.T) {
	s := newSharer()
	spec := func(cpu string) *corev1.PodSpec {
		return &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}
	}
	share := func(spec *corev1.PodSpec) *corev1.PodSpec {
		p := fleet.Pod{Spec: spec}
		s.pod(&p)
		return p.Spec
	}
	a, b, c := share(spec("1")), share(spec("1")), share(spec("2"))
	if a != b || a == c {
		t.Errorf("shared %v, mixed up %v", a == b, a == c)
	}
	runtime.KeepAlive([]*corev1.PodSpec{a, b, c})
	a, b, c = nil, nil, nil
	for range 100 {
		runtime.GC()
		s.specs.mu.Lock()
		left := len(s.specs.known)
		s.specs.mu.Unlock()
		if left == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Error("unused specs are kept")
}

// Nodes of one template share the words of their labels and their room, and are
// what they were.
func TestNodesShare(t *testing.T) {
	s := newSharer()
	shared := func(name, cpu string) fleet.Node {
		n := fleet.Node{
			Name: name, Labels: map[string]string{strings.Clone("team"): strings.Clone("shop"), corev1.LabelHostname: name},
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}, Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}
		was := n
		s.node(&n)
		if diff := cmp.Diff(was, n); diff != "" {
			t.Error(diff)
		}
		return n
	}
	a, b, c := shared("a", "1"), shared("b", "1"), shared("c", "2")
	word := func(n fleet.Node) *byte { return unsafe.StringData(n.Labels["team"]) }
	if word(a) != word(b) || word(a) != word(c) {
		t.Error("labels are there more than once")
	}
	room := func(list corev1.ResourceList) uintptr { return reflect.ValueOf(list).Pointer() }
	if room(a.Capacity) != room(b.Capacity) || room(a.Capacity) != room(a.Allocatable) || room(a.Capacity) == room(c.Capacity) {
		t.Error("equal rooms are there more than once, or different ones once")
	}
}

// What is kept once does not pile up.
func TestOnceForgets(t *testing.T) {
	o := once[int]{most: 2}
	for i := range 10 {
		if got := o.one(strconv.Itoa(i), i); got != i || len(o.known) > o.most {
			t.Fatalf("%d: got %d, %d known", i, got, len(o.known))
		}
	}
}

// What no decision reads is not kept.
func TestSlim(t *testing.T) {
	p := pod("a", func(p *corev1.Pod) {
		p.Annotations = map[string]string{contract.AnnotationSafeToEvict: "false", contract.AnnotationDisruptionCost: "2", "document": "long"}
		p.Spec.Volumes = []corev1.Volume{
			{Name: "kube-api-access-x1", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	})
	slimPod(p)
	if diff := cmp.Diff(map[string]string{contract.AnnotationSafeToEvict: "false", contract.AnnotationDisruptionCost: "2"}, p.Annotations); diff != "" {
		t.Error(diff)
	}
	if len(p.Spec.Volumes) != 1 || p.Spec.Volumes[0].Name != "cache" || p.Spec.Containers[0].Env != nil {
		t.Errorf("spec %+v", p.Spec)
	}
}
