package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "windlass-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programsDir = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// programsDir is where the programs of this process are built; again and again,
// which costs nothing after the first time.
var programsDir string

// report reports the middle and the worst of what a benchmark has measured under
// this name.
func report(b *testing.B, name string, samples []time.Duration) {
	b.Helper()
	if len(samples) == 0 {
		b.Fatalf("%s: no samples", name)
	}
	b.ReportMetric(0, "ns/op") // says nothing here
	b.ReportMetric(milliseconds(percentile(samples, 50)), name+"-p50-ms")
	b.ReportMetric(milliseconds(percentile(samples, 100)), name+"-max-ms")
}

// percentile is the smallest sample that is not exceeded by that share of them.
func percentile(samples []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[(len(sorted)*percent+99)/100-1]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// bounded reports a figure and its target, which it should not exceed.
func bounded(b *testing.B, unit string, figure, target float64) {
	b.ReportMetric(figure, unit)
	b.ReportMetric(target, "target-"+unit)
}

// bed is a world with Windlass in it, and what was seen of its pods.
type bed struct {
	*world.World
	b    *testing.B
	ctx  context.Context
	pods *podLog
}

// start builds what is needed and starts a world of these groups.
func start(b *testing.B, spec world.Spec) *bed {
	b.Helper()
	ctx := b.Context()
	if _, err := world.BuildControlPlane(ctx, programsDir, os.Stderr); err != nil {
		b.Skipf("the control plane cannot be had here: %v", err)
	}
	programs, err := world.Build(ctx, programsDir, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	w, err := world.Start(ctx, world.Config{Spec: spec, Programs: programs, Progress: os.Stderr})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	t := &bed{World: w, b: b, ctx: ctx, pods: newPodLog()}
	if err := t.pods.watch(ctx, w); err != nil {
		b.Fatal(err)
	}
	if spec.Replicas == nil || *spec.Replicas > 0 {
		t.await("the scaler to lead", func() bool { return t.leads() })
	}
	return t
}

// once takes the samples once, however long -benchtime is.
func once(b *testing.B, samples func()) {
	for taken := false; b.Loop(); taken = true {
		if !taken {
			samples()
		}
	}
}

// leads reports whether a scaler holds the lease.
func (t *bed) leads() bool { return t.holder() != "" }

// holder is who holds the scaler's lease, a name that begins with the one of its pod. It
// is empty if nobody does.
func (t *bed) holder() string {
	lease, err := t.Client.CoordinationV1().Leases(world.Namespace).Get(t.ctx, contract.LeaseScaler, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

const (
	// patience bounds each wait: who runs into it has found a defect.
	patience = 2 * time.Minute
	// pace is how often a wait looks. It is no part of any figure: what is
	// waited for carries its own time.
	pace = 5 * time.Millisecond
)

// await waits until it is so.
func (t *bed) await(what string, so func() bool) {
	t.b.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.b.Fatalf("waiting for %s: not within %s\ncalls:\n%s", what, patience, t.changingCalls())
		}
	}
}

// call waits for the first call of an operation that AWS granted.
func (t *bed) call(operation string, matches ...fakeaws.Match) fakeaws.Call {
	t.b.Helper()
	return t.called(append(matches, fakeaws.Operation(operation))...)
}

// called waits for the first call that matches and that AWS granted.
func (t *bed) called(matches ...fakeaws.Match) fakeaws.Call {
	t.b.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	c, err := t.AWS.WaitCall(ctx, append(matches, fakeaws.Succeeded)...)
	if err != nil {
		t.b.Fatalf("%v\ncalls:\n%s", err, t.changingCalls())
	}
	return c
}

func (t *bed) changingCalls() string {
	var out strings.Builder
	for _, c := range t.AWS.Calls(fakeaws.Mutating) {
		fmt.Fprintln(&out, " ", c)
	}
	return out.String()
}

// instance is the one instance of a group, once its node is Ready.
func (t *bed) instance(group string) fakeaws.Instance {
	var found fakeaws.Instance
	t.await("a Ready node of "+group, func() bool {
		g, err := t.AWS.Group(group)
		if err != nil || len(g.Instances) != 1 {
			return false
		}
		found = g.Instances[0]
		return t.nodeReady(found.PrivateDNSName)
	})
	return found
}

func (t *bed) nodeReady(name string) bool {
	n, err := t.Client.CoreV1().Nodes().Get(t.ctx, name, metav1.GetOptions{})
	return err == nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// labelGroup is on the nodes of a group and selects them.
const labelGroup = "bench"

// groupOf declares a group whose nodes only pods of this group's own want.
func groupOf(name, instanceType string, size, most int, hooks ...fakeaws.Hook) fakeaws.Group {
	return fakeaws.Group{
		Name: name, Type: instanceType, Min: size, Max: most, Hooks: hooks,
		Tags: map[string]string{contract.TagTemplateLabel + labelGroup: name},
	}
}

// podLog keeps when a watch saw what of each pod of the default namespace.
type podLog struct {
	mu   sync.Mutex
	pods map[string]*seen // by name
}

// seen are the moments of a pod's life; zero where not yet.
type seen struct {
	unschedulable, ready, evicted, gone time.Time
	workload                            string
}

func newPodLog() *podLog { return &podLog{pods: map[string]*seen{}} }

func (l *podLog) watch(ctx context.Context, w *world.World) error {
	factory := informers.NewSharedInformerFactoryWithOptions(w.Client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { l.see(o.(*corev1.Pod), false) },
		UpdateFunc: func(_, o any) { l.see(o.(*corev1.Pod), false) },
		DeleteFunc: func(o any) {
			if tombstone, is := o.(cache.DeletedFinalStateUnknown); is {
				o = tombstone.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				l.see(p, true)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

func (l *podLog) see(p *corev1.Pod, gone bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.pods[p.Name]
	if s == nil {
		s = &seen{workload: p.Labels["app"]}
		l.pods[p.Name] = s
	}
	note := func(is bool, at *time.Time) {
		if is && at.IsZero() {
			*at = now
		}
	}
	for _, c := range p.Status.Conditions {
		note(c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable, &s.unschedulable)
		note(c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue, &s.ready)
		note(c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && p.DeletionTimestamp != nil, &s.evicted)
	}
	note(gone, &s.gone)
}

// of returns the pods of a workload, as they were seen so far.
func (l *podLog) of(workload string) []seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []seen
	for _, s := range l.pods {
		if s.workload == workload {
			all = append(all, *s)
		}
	}
	return all
}

// count counts the pods of a workload that have had a moment.
func (l *podLog) count(workload string, had func(seen) time.Time) int {
	n := 0
	for _, s := range l.of(workload) {
		if !had(s).IsZero() {
			n++
		}
	}
	return n
}

// last is the latest such moment of a workload's pods.
func (l *podLog) last(workload string, of func(seen) time.Time) time.Time {
	var at time.Time
	for _, s := range l.of(workload) {
		if m := of(s); m.After(at) {
			at = m
		}
	}
	return at
}
