// Package watch observes what the notifier goes by: Nodes, the Events of both programs, and the
// status page.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// Client reaches the API server. A clientset is one; so is less, which links less.
type Client interface {
	CoreV1() corev1client.CoreV1Interface
}

// Watcher has the world in memory while it runs.
type Watcher struct {
	namespace   string
	nodes, page cache.SharedIndexInformer
	events      []cache.SharedIndexInformer
	changed     chan struct{}
	running     sync.WaitGroup
}

// New returns a watcher of the cluster, and of the status page in a namespace. Report is told of
// each success and failure of a watch.
func New(client Client, namespace string, report func(error)) (*Watcher, error) {
	core := client.CoreV1()
	page := fields.OneTermEqualSelector("metadata.name", contract.ConfigMapStatus)
	w := &Watcher{
		namespace: namespace,
		nodes:     informer(client, &corev1.Node{}, fields.Everything(), core.Nodes().List, core.Nodes().Watch),
		page:      informer(client, &corev1.ConfigMap{}, page, core.ConfigMaps(namespace).List, core.ConfigMaps(namespace).Watch),
		changed:   make(chan struct{}, 1),
	}
	for _, place := range contract.EventPlaces(namespace) {
		events := core.Events(place.Namespace)
		w.events = append(w.events, informer(client, &corev1.Event{}, place.Selector(), events.List, events.Watch))
	}
	for _, informer := range w.informers() {
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

// informer of what a selector finds.
func informer[L runtime.Object](client Client, object runtime.Object, selector fields.Selector, list func(context.Context, metav1.ListOptions) (L, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error)) cache.SharedIndexInformer {
	calls := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return open(ctx, o)
		},
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(calls, client), object, 0, nil)
}

func (w *Watcher) informers() []cache.SharedIndexInformer {
	return append([]cache.SharedIndexInformer{w.nodes, w.page}, w.events...)
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
var read = []string{contract.AnnotationDrainRequest, contract.AnnotationDrainReport, contract.AnnotationNotices, contract.AnnotationServed, contract.AnnotationTerminating}

// readOfEvents are the annotations of Events that happening.EventOf reads.
var readOfEvents = []string{contract.AnnotationEventFacts, contract.AnnotationEventID, contract.AnnotationEventKind, contract.AnnotationEventSource, contract.AnnotationEventInstance, contract.AnnotationEventDeadline}

// mostOfEvent is the most bytes that are kept of an annotation of an Event, or of its message: no
// program of ours writes more.
const mostOfEvent = 8 << 10

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
	case *corev1.Event:
		few := map[string]string{}
		for _, key := range readOfEvents {
			if value, ok := x.Annotations[key]; ok && len(value) <= mostOfEvent {
				few[key] = strings.Clone(value)
			}
		}
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: x.Namespace, Name: x.Name, UID: x.UID, ResourceVersion: x.ResourceVersion, CreationTimestamp: x.CreationTimestamp, Annotations: few},
			InvolvedObject: corev1.ObjectReference{Kind: x.InvolvedObject.Kind, Namespace: x.InvolvedObject.Namespace, Name: contract.Shorten(x.InvolvedObject.Name, mostOfEvent)},
			Reason:         contract.Shorten(x.Reason, mostOfEvent), Message: contract.Shorten(x.Message, mostOfEvent),
			Source: corev1.EventSource{Component: x.Source.Component},
		}, nil
	case metav1.Object:
		x.SetManagedFields(nil)
	}
	return object, nil
}

// Changed is sent to when something is new.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Run watches until ctx ends. It returns once the first lists are there, or ctx has ended.
func (w *Watcher) Run(ctx context.Context) error {
	var synced []cache.InformerSynced
	for _, informer := range w.informers() {
		w.running.Go(func() { informer.RunWithContext(ctx) })
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("waiting for the first lists: %w", context.Cause(ctx))
	}
	return nil
}

// Stop waits until all that Run has begun has ended, after its ctx has.
func (w *Watcher) Stop() { w.running.Wait() }

// World is what is there now. The error says why there is no page where one cannot be read, or why
// it is not known which pods wait for which group.
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
				if event, ours := happening.EventOf(e, w.namespace); ours {
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
			if !happening.SeveralAtMax(page) {
				continue // verdicts of a large cluster take a while to read
			}
			verdicts, err := statuspage.ReadVerdicts(m)
			switch {
			case err == nil:
				world.Waiting = happening.WaitingFor(verdicts)
			case !errors.Is(err, statuspage.ErrNoVerdicts): // of an older scaler
				return world, err
			}
		}
	}
	return world, nil
}
