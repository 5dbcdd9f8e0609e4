package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// leaseEvery is how often it is looked whether a scaler leads.
const leaseEvery = 15 * time.Second

// watch begins to watch; stopped waits until it has ended after ctx.
func (f *Feed) watch(ctx context.Context) (stopped func(), err error) {
	core := f.client.CoreV1()
	status := fields.OneTermEqualSelector(metav1.ObjectNameField, contract.ConfigMapStatus)
	informers := []cache.SharedIndexInformer{
		informer(f, "nodes", &corev1.Node{}, fields.Everything(), core.Nodes().List, core.Nodes().Watch),
		informer(f, "pods", &corev1.Pod{}, fields.Everything(), core.Pods("").List, core.Pods("").Watch),
		informer(f, contract.ConfigMapStatus, &corev1.ConfigMap{}, status, core.ConfigMaps(f.system).List, core.ConfigMaps(f.system).Watch),
	}
	handlers := []cache.ResourceEventHandler{handler(f, f.node, f.nodeGone), handler(f, f.pod, f.podGone), handler(f, f.status, f.statusGone)}
	for _, place := range contract.EventPlaces(f.system) {
		events := core.Events(place.Namespace)
		informers = append(informers, informer(f, "events of "+place.Program, &corev1.Event{}, place.Selector(), events.List, events.Watch))
		handlers = append(handlers, handler(f, f.event, nil))
	}
	for i, informer := range informers {
		if _, err := informer.AddEventHandler(handlers[i]); err != nil {
			return func() {}, fmt.Errorf("preparing to watch: %w", err)
		}
	}
	var running sync.WaitGroup
	for _, informer := range informers {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Go(func() { f.guarded(func() { f.whoLeads(ctx) }) })
	return running.Wait, nil
}

// whoLeads reads the Lease now and then: it is renewed too often to be watched for a view.
func (f *Feed) whoLeads(ctx context.Context) {
	again := time.NewTicker(leaseEvery)
	defer again.Stop()
	for {
		leader, err := Lease(ctx, f.client, f.system, contract.LeaseScaler)
		if ctx.Err() != nil {
			return
		}
		f.report("lease", err)
		news := false
		f.locked(func() {
			f.leader = leader
			old := f.old()
			news = old != f.toldOld // renewals are none
			f.toldOld = old
		})
		if news {
			f.tell(func() {})
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// Lease is what that of a program says; without one it is empty.
func Lease(ctx context.Context, client kubernetes.Interface, system, name string) (*view.Leader, error) {
	lease, err := client.CoordinationV1().Leases(system).Get(ctx, name, metav1.GetOptions{})
	leader := &view.Leader{}
	switch {
	case apierrors.IsNotFound(err):
		return leader, nil
	case err != nil:
		return nil, fmt.Errorf("reading the lease: %w", err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil {
		leader.Holder = *holder
	}
	if renewed := lease.Spec.RenewTime; renewed != nil {
		leader.Renewed = renewed.UTC()
	}
	return leader, nil
}

// informer of what a selector finds. What fails is reported, and that it does not fail any more.
func informer[L runtime.Object](f *Feed, what string, object runtime.Object, selector fields.Selector, list func(context.Context, metav1.ListOptions) (L, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error)) cache.SharedIndexInformer {
	calls := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			all, err := list(ctx, o)
			if err == nil {
				f.report(what, nil)
			}
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			w, err := open(ctx, o)
			if err == nil {
				f.report(what, nil)
			}
			return w, err
		},
	}
	i := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(calls, f.client), object, 0, nil)
	err := errors.Join(i.SetTransform(func(o any) (out any, err error) {
		out = o
		f.guarded(func() { out, err = slim(o) })
		return out, err
	}), i.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) { f.failed(ctx, what, err) }))
	if err != nil {
		panic(err) // it runs already
	}
	return i
}

// failed reports why a call did. A watch that ends is begun anew, which is no failure.
func (f *Feed) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil || errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	f.report(what, err)
}

// handler calls seen with what was and what is, and gone with what was last.
func handler[T any](f *Feed, seen func(before, after *T), gone func(*T)) cache.ResourceEventHandler {
	h := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.guarded(func() { seen(nil, o.(*T)) }) },
		UpdateFunc: func(was, is any) { f.guarded(func() { seen(was.(*T), is.(*T)) }) },
	}
	if gone != nil {
		h.DeleteFunc = func(o any) {
			if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			f.guarded(func() { gone(o.(*T)) })
		}
	}
	return h
}

// slim drops what no view asks for: of a large cluster's pods it is most.
func slim(o any) (any, error) {
	object, err := meta.Accessor(o)
	if err != nil {
		return o, nil // what an informer says of a deletion that it missed
	}
	object.SetManagedFields(nil)
	switch o := o.(type) {
	case *corev1.Node:
		o.Status.Images = nil
	case *corev1.Pod:
		return slimPod(o), nil
	}
	return o, nil
}

func slimPod(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName, SchedulerName: p.Spec.SchedulerName, Overhead: p.Spec.Overhead, Resources: p.Spec.Resources},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, Conditions: p.Status.Conditions},
	}
	for _, list := range []struct{ from, to *[]corev1.Container }{{&p.Spec.Containers, &out.Spec.Containers}, {&p.Spec.InitContainers, &out.Spec.InitContainers}} {
		for _, c := range *list.from {
			*list.to = append(*list.to, corev1.Container{Resources: c.Resources, RestartPolicy: c.RestartPolicy})
		}
	}
	if p.Spec.NodeName != "" {
		out.Status.Conditions = nil
	}
	return out
}
