package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// BenchmarkSixtyOfHundred: of a group of a hundred nodes with twenty pods each, sixty
// are not needed: their pods are small and fit on the others. The pods need five
// seconds to end, and their ReplicaSet makes them again elsewhere. The time from when
// the last of the sixty is due until the last call that ends one of them, and how far
// the slowest node was at each step between. There is an agent on each node, a process as
// the manifests run it. Before that, for comparison, as many such pods of the same nodes, which
// are cordoned already, are evicted by a bare loop with an administrator's rights, without a
// scaler: the time from its first request until the last is evicted, and until the last is gone.
func BenchmarkSixtyOfHundred(b *testing.B) {
	const nodes, unneeded, podsEach = 100, 60, 20
	spec := world.Spec{
		Replicas: ptr.To(0), // until the pods are there
		Scaler:   []string{"--consolidate=unneeded", "--max-drain-parallelism=60", "--scale-down-unneeded-time=" + unneededTime.String(), "--scale-down-delay-after-add=0s"},
	}
	spec.Cloud.Groups = []fakeaws.Group{groupOf("web", "m5.2xlarge", 0, nodes)}
	spec.Cloud.Groups[0].Desired = ptr.To(nodes)
	t := start(b, spec)
	once(b, func() {
		names := t.readyNodes(nodes)
		t.settleOn("busy", names[unneeded:], podsEach, "250m")
		bareEvicted, bareGone := t.evictBare("bare", names[:unneeded], podsEach)
		t.settleOn("spare", names[:unneeded], podsEach, "20m")
		leaving := t.watchLeaving()
		t.scale(1)
		t.await("the last termination", func() bool { return len(t.terminations()) == unneeded })
		due := leaving.last(func(l departure) time.Time { return l.due })
		seconds := func(at time.Time) float64 { return at.Sub(due).Seconds() }
		b.ReportMetric(0, "ns/op") // says nothing here
		b.ReportMetric(bareEvicted.Seconds(), "bare-evicted-s")
		b.ReportMetric(bareGone.Seconds(), "bare-pods-gone-s")
		b.ReportMetric(seconds(leaving.last(func(l departure) time.Time { return l.asked })), "asked-s")
		b.ReportMetric(seconds(t.pods.last("spare", evicted)), "evicted-s")
		b.ReportMetric(seconds(t.pods.last("spare", gone)), "pods-gone-s")
		b.ReportMetric(seconds(leaving.last(func(l departure) time.Time { return l.drained })), "drained-s")
		calls := t.terminations()
		bounded(b, "s", seconds(calls[len(calls)-1].Time), 12)
	})
	if evictions := t.pods.count("spare", evicted); evictions != unneeded*podsEach {
		b.Errorf("%d pods were evicted, want %d", evictions, unneeded*podsEach)
	}
	if g, err := t.AWS.Group("web"); err != nil || g.Desired != nodes-unneeded {
		b.Errorf("desired is %d (%v), want %d", g.Desired, err, nodes-unneeded)
	}
}

// unneededTime is long enough for a scaler that has just started to mark all nodes.
const unneededTime = 20 * time.Second

// readyNodes waits for so many Ready nodes of groups, each with an agent that runs, and
// returns their names in order.
func (t *bed) readyNodes(count int) []string {
	t.b.Helper()
	var names []string
	t.await(fmt.Sprintf("%d Ready nodes with agents", count), func() bool {
		list, err := t.Client.CoreV1().Nodes().List(t.ctx, metav1.ListOptions{LabelSelector: labelGroup})
		if err != nil {
			t.b.Fatal(err)
		}
		names = nil
		for _, n := range list.Items {
			if isTrue(n.Status.Conditions, corev1.NodeReady) {
				names = append(names, n.Name)
			}
		}
		t.pause(time.Second)
		return len(names) == count && len(t.Processes()) >= count
	})
	slices.Sort(names)
	return names
}

func isTrue(conditions []corev1.NodeCondition, of corev1.NodeConditionType) bool {
	return slices.ContainsFunc(conditions, func(c corev1.NodeCondition) bool {
		return c.Type == of && c.Status == corev1.ConditionTrue
	})
}

// settleOn runs so many pods on each of the nodes, of a ReplicaSet that adopts them when
// all are Ready: it makes each of them again that goes, wherever there is room.
func (t *bed) settleOn(workload string, nodes []string, podsEach int, cpu string) {
	t.b.Helper()
	template := templateFor("web")
	template.Labels = map[string]string{"app": workload}
	template.Spec.TerminationGracePeriodSeconds = ptr.To(int64(5))
	template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	total := len(nodes) * podsEach
	for i := range total {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%04d", workload, i), Labels: template.Labels}, Spec: template.Spec}
		p.Spec.NodeName = nodes[i%len(nodes)]
		if _, err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.ctx, p, metav1.CreateOptions{}); err != nil {
			t.b.Fatal(err)
		}
	}
	t.await(fmt.Sprintf("%d pods of %s", total, workload), func() bool { return t.pods.count(workload, ready) == total })
	owner := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: workload},
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(total)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	if _, err := t.Client.AppsV1().ReplicaSets(metav1.NamespaceDefault).Create(t.ctx, owner, metav1.CreateOptions{}); err != nil {
		t.b.Fatal(err)
	}
	t.await("ReplicaSet "+workload+" to own its pods", func() bool {
		of, err := t.Client.AppsV1().ReplicaSets(metav1.NamespaceDefault).Get(t.ctx, workload, metav1.GetOptions{})
		return err == nil && of.Status.ReadyReplicas == int32(total)
	})
}

// evictBare settles pods on nodes, cordons these and evicts all, and says how long it was until
// the last was evicted, and gone. At the end there is no pod of the workload, and the nodes are
// open again.
func (t *bed) evictBare(workload string, nodes []string, podsEach int) (toEvicted, toGone time.Duration) {
	t.b.Helper()
	t.settleOn(workload, nodes, podsEach, "20m")
	ofWorkload := metav1.ListOptions{LabelSelector: "app=" + workload}
	pods := t.Client.CoreV1().Pods(metav1.NamespaceDefault)
	list, err := pods.List(t.ctx, ofWorkload)
	if err != nil {
		t.b.Fatal(err)
	}
	t.setUnschedulable(nodes, true)
	began := time.Now()
	t.evict(list.Items)
	t.await(fmt.Sprintf("the end of %d pods of %s", len(list.Items), workload), func() bool { return t.pods.count(workload, gone) == len(list.Items) })
	toEvicted, toGone = t.pods.last(workload, evicted).Sub(began), t.pods.last(workload, gone).Sub(began)
	if err := t.Client.AppsV1().ReplicaSets(metav1.NamespaceDefault).Delete(t.ctx, workload, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.b.Fatal(err)
	}
	t.await("no pod of "+workload, func() bool {
		left, err := pods.List(t.ctx, ofWorkload)
		t.pause(time.Second)
		return err == nil && len(left.Items) == 0
	})
	t.setUnschedulable(nodes, false)
	return toEvicted, toGone
}

// terminations are the calls that have ended an instance and lowered desired.
func (t *bed) terminations() []fakeaws.Call {
	return t.AWS.Calls(fakeaws.Operation("TerminateInstanceInAutoScalingGroup"), fakeaws.Succeeded)
}

// departures keeps when a watch saw what of each node that leaves.
type departures struct {
	mu    sync.Mutex
	nodes map[string]departure // by name
}

// departure are the steps of one node's retirement; zero where not yet.
type departure struct {
	due            time.Time // its mark and the unneeded time
	asked, drained time.Time
}

func (t *bed) watchLeaving() *departures {
	t.b.Helper()
	d := &departures{nodes: map[string]departure{}}
	if err := d.watch(t.ctx, t.World); err != nil {
		t.b.Fatal(err)
	}
	return d
}

func (d *departures) watch(ctx context.Context, w *world.World) error {
	factory := informers.NewSharedInformerFactory(w.Client, 0)
	_, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) { d.see(o.(*corev1.Node)) },
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

func (d *departures) see(n *corev1.Node) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.nodes[n.Name]
	if since, marked, err := contract.Unneeded(n.Spec.Taints); err == nil && marked {
		at.due = since.Add(unneededTime)
	}
	if n.Annotations[contract.AnnotationDrainRequest] != "" && at.asked.IsZero() {
		at.asked = now
	}
	report, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	if err == nil && report.Phase == contract.PhaseDrained && at.drained.IsZero() {
		at.drained = now
	}
	d.nodes[n.Name] = at
}

// last is the latest such moment of all nodes.
func (d *departures) last(of func(departure) time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	var last time.Time
	for _, at := range d.nodes {
		if m := of(at); m.After(last) {
			last = m
		}
	}
	return last
}
