// Package watch observes what the notifier goes by: Nodes, the Events of both programs, and the
// status page.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Watcher has the world in memory while it runs.
type Watcher struct {
	nodes, page cache.SharedIndexInformer
	events      []cache.SharedIndexInformer
	factories   []informers.SharedInformerFactory
	changed     chan struct{}
}

// New returns a watcher of the cluster, and of the status page in a namespace. Report is told of
// each success and failure of a watch.
func New(client kubernetes.Interface, namespace string, report func(error)) (*Watcher, error) {
	w := &Watcher{changed: make(chan struct{}, 1)}
	factory := func(namespace, selector string) informers.SharedInformerFactory {
		f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = selector }))
		w.factories = append(w.factories, f)
		return f
	}
	w.nodes = factory("", "").Core().V1().Nodes().Informer()
	w.page = factory(namespace, fields.OneTermEqualSelector("metadata.name", contract.ConfigMapStatus).String()).Core().V1().ConfigMaps().Informer()
	// Nothing is asked of the Events of pods, of which there are many.
	for _, program := range []string{contract.AppScaler, contract.AppAgent} {
		selector := fields.AndSelectors(fields.OneTermEqualSelector("source", program), fields.OneTermNotEqualSelector("involvedObject.kind", "Pod"))
		w.events = append(w.events, factory("", selector.String()).Core().V1().Events().Informer())
	}
	for _, informer := range append([]cache.SharedIndexInformer{w.nodes, w.page}, w.events...) {
		err := errors.Join(
			informer.SetTransform(slim),
			informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { report(err) }),
		)
		if _, handled := informer.AddEventHandler(w.handler(report)); handled != nil {
			err = errors.Join(err, handled)
		}
		if err != nil {
			return nil, fmt.Errorf("preparing to watch: %w", err)
		}
	}
	return w, nil
}

func (w *Watcher) handler(report func(error)) cache.ResourceEventHandler {
	nudge := func() {
		report(nil)
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { nudge() }, DeleteFunc: func(any) { nudge() },
		UpdateFunc: func(before, after any) {
			b, isNode := before.(*corev1.Node)
			a, still := after.(*corev1.Node)
			if isNode && still && maps.Equal(a.Annotations, b.Annotations) {
				return // kubelets write Nodes all the time
			}
			nudge()
		},
	}
}

// read are the annotations of Nodes that happening.NodeOf reads.
var read = []string{contract.AnnotationDrainRequest, contract.AnnotationDrainReport, contract.AnnotationNotices, contract.AnnotationTerminating}

// slim keeps what is asked for.
func slim(object any) (any, error) {
	switch x := object.(type) {
	case *corev1.Node:
		few := map[string]string{}
		for _, key := range read {
			if value, ok := x.Annotations[key]; ok {
				few[key] = value
			}
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: x.Name, UID: x.UID, ResourceVersion: x.ResourceVersion, Annotations: few}}, nil
	case metav1.Object:
		x.SetManagedFields(nil)
	}
	return object, nil
}

// Changed is sent to when something is new.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Run watches until ctx ends. It returns once the first lists are there, or ctx has ended.
func (w *Watcher) Run(ctx context.Context) error {
	for _, f := range w.factories {
		f.StartWithContext(ctx)
	}
	for _, f := range w.factories {
		for kind, synced := range f.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("waiting for the first list of %s: %w", kind, context.Cause(ctx))
			}
		}
	}
	return nil
}

// Stop waits until all that Run has begun has ended, after its ctx has.
func (w *Watcher) Stop() {
	for _, f := range w.factories {
		f.Shutdown()
	}
}

// World is what is there now. The error says why there is no page where one cannot be read.
func (w *Watcher) World(now time.Time) (happening.World, error) {
	world := happening.World{Now: now, Nodes: map[string]happening.Node{}}
	for _, object := range w.nodes.GetStore().List() {
		if n, is := object.(*corev1.Node); is {
			world.Nodes[n.Name] = happening.NodeOf(n)
		}
	}
	for _, informer := range w.events {
		for _, object := range informer.GetStore().List() {
			if e, is := object.(*corev1.Event); is {
				if event, ours := happening.EventOf(e); ours {
					world.Events = append(world.Events, event)
				}
			}
		}
	}
	for _, object := range w.page.GetStore().List() {
		if m, is := object.(*corev1.ConfigMap); is && m.Name == contract.ConfigMapStatus {
			page, err := statuspage.Read(m)
			if err != nil {
				return world, err
			}
			world.Page = &page
		}
	}
	return world, nil
}
