// Package watch tells a story.Story what happens in a living cluster and its
// cloud: informers on the API server's objects, and the fake AWS's own state.
package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Watch keeps a Story up to date. All of it may be used concurrently.
type Watch struct {
	mu      sync.Mutex
	story   *story.Story
	changed chan struct{}
}

// New begins an empty story now.
func New() *Watch {
	return &Watch{story: story.New(time.Now()), changed: make(chan struct{})}
}

// Look lends the story; it must not be kept.
func (w *Watch) Look(look func(*story.Story)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	look(w.story)
}

// Changed is closed at the next change.
func (w *Watch) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// tell changes the story; the time is that of the telling.
func (w *Watch) tell(change func(s *story.Story, at time.Time)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.story, time.Now())
	close(w.changed)
	w.changed = make(chan struct{})
}

// Namespaces says whose pods the story is about.
type Namespaces struct {
	// Pods is where the workloads are, Windlass where the programs are.
	Pods, Windlass string
}

// Cluster watches until ctx ends. It returns when everything that was there at
// the call is known.
func (w *Watch) Cluster(ctx context.Context, client kubernetes.Interface, in Namespaces) error {
	everywhere := informers.NewSharedInformerFactory(client, 0)
	demo := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(in.Pods))
	own := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(in.Windlass))
	began := time.Now()

	for _, on := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		{everywhere.Core().V1().Nodes().Informer(), handler(w.node, w.nodeGone)},
		{demo.Core().V1().Pods().Informer(), handler(w.pod, w.podGone)},
		{demo.Apps().V1().Deployments().Informer(), handler(w.deployment, nil)},
		{demo.Policy().V1().PodDisruptionBudgets().Informer(), handler(w.budget, nil)},
		{everywhere.Core().V1().Events().Informer(), handler(func(e *corev1.Event) { w.event(e, began) }, nil)},
		{own.Core().V1().ConfigMaps().Informer(), handler(w.configMap, nil)},
	} {
		if _, err := on.informer.AddEventHandler(on.handler); err != nil {
			return fmt.Errorf("watching the cluster: %w", err)
		}
	}
	for _, factory := range []informers.SharedInformerFactory{everywhere, demo, own} {
		factory.Start(ctx.Done())
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("watching the cluster: listing %s: %w", kind, context.Cause(ctx))
			}
		}
	}
	return nil
}

// handler calls seen for what is new or changed, and gone for what is deleted.
func handler[T any](seen, gone func(T)) cache.ResourceEventHandlerFuncs {
	h := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen(o.(T)) },
		UpdateFunc: func(_, o any) { seen(o.(T)) },
	}
	if gone != nil {
		h.DeleteFunc = func(o any) {
			if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			gone(o.(T))
		}
	}
	return h
}

func (w *Watch) node(n *corev1.Node) {
	w.tell(func(s *story.Story, at time.Time) { s.NodeSeen(story.NodeOf(n), at) })
}

func (w *Watch) nodeGone(n *corev1.Node) {
	w.tell(func(s *story.Story, _ time.Time) { s.NodeGone(n.Name) })
}

func (w *Watch) pod(p *corev1.Pod) {
	w.tell(func(s *story.Story, at time.Time) { s.PodSeen(story.PodOf(p), at) })
}

func (w *Watch) podGone(p *corev1.Pod) {
	w.tell(func(s *story.Story, at time.Time) {
		s.PodSeen(story.PodOf(p), at)
		s.PodGone(string(p.UID), at)
	})
}

func (w *Watch) deployment(d *appsv1.Deployment) {
	w.tell(func(s *story.Story, _ time.Time) { s.WorkloadSeen(story.WorkloadOf(d)) })
}

func (w *Watch) budget(b *policyv1.PodDisruptionBudget) {
	w.tell(func(s *story.Story, _ time.Time) { s.BudgetSeen(story.BudgetOf(b)) })
}

// event passes on Windlass's Events that were written since the watch began.
func (w *Watch) event(e *corev1.Event, began time.Time) {
	out, ours := story.EventOf(e)
	if !ours || e.LastTimestamp.Time.Before(began.Truncate(time.Second)) {
		return
	}
	w.tell(func(s *story.Story, at time.Time) { s.EventSeen(out, at) })
}

func (w *Watch) configMap(c *corev1.ConfigMap) {
	if c.Name != contract.ConfigMapStatus {
		return
	}
	verdicts, err := verdictsOf(c.Data)
	w.tell(func(s *story.Story, at time.Time) {
		if err != nil {
			s.Told(fmt.Sprintf("ConfigMap %s: %s", c.Name, err), at)
			return
		}
		s.VerdictsSeen(verdicts, at)
	})
}

// verdictsOf reads the verdicts that the scaler publishes: a line for each
// group and each node, and one for all pods with the same verdict.
func verdictsOf(data map[string]string) ([]story.Verdict, error) {
	var all []story.Verdict
	for key, text := range data {
		var page statuspage.Page
		if err := yaml.Unmarshal([]byte(text), &page); err != nil {
			return nil, fmt.Errorf("reading %s: %w", key, err)
		}
		for _, g := range page.Groups {
			all = append(all, story.Verdict{Of: verdict.OfGroup, Name: g.Name, Reason: g.Reason, Message: g.Message})
		}
		for _, p := range page.Pods {
			all = append(all, story.Verdict{Of: verdict.OfPod, Name: first(p.Pods), Count: p.Count, Reason: p.Reason, Message: p.Message})
		}
		for _, n := range page.Nodes {
			for _, name := range slices.Sorted(maps.Keys(n.Nodes)) {
				all = append(all, story.Verdict{Of: verdict.OfNode, Name: name, Reason: n.Reason, Message: n.Nodes[name]})
			}
		}
	}
	return all, nil
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// Told adds a sentence of the play's own to the story.
func (w *Watch) Told(text string) {
	w.tell(func(s *story.Story, at time.Time) { s.Told(text, at) })
}

// Nudge says that something has changed that is not of the story, such as the
// act.
func (w *Watch) Nudge() { w.tell(func(*story.Story, time.Time) {}) }
