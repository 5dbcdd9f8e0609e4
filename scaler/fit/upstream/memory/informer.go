// Package memory has informers for kube-scheduler's plugins whose objects come
// from the caller instead of from a server. Nothing runs in the background:
// handlers are called before Set or Delete returns. What is listed is in the order
// of its names, so that whoever takes the first that will do always takes the same.
package memory

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Informer is a cache.SharedIndexInformer that is always in sync. Not for
// concurrent use. What no plugin calls has no implementation, and would panic.
type Informer struct {
	cache.SharedIndexInformer
	store    ordered
	handlers []cache.ResourceEventHandler
}

// NewInformer makes one without objects. Objects go by namespace and name.
func NewInformer() *Informer {
	return &Informer{store: ordered{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})}}
}

// Set adds an object or replaces the one of that name.
func (i *Informer) Set(object runtime.Object) {
	before, exists, err := i.store.Get(object)
	must(err)
	must(i.store.Update(object))
	for _, h := range i.handlers {
		if exists {
			h.OnUpdate(before, object)
		} else {
			h.OnAdd(object, false)
		}
	}
}

// Delete takes away the object of that name, if there is one.
func (i *Informer) Delete(object runtime.Object) {
	before, exists, err := i.store.Get(object)
	must(err)
	if !exists {
		return
	}
	must(i.store.Delete(object))
	for _, h := range i.handlers {
		h.OnDelete(before)
	}
}

// must refuses objects without metadata, which API objects all have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Handle calls a handler for all there is and of every change to come.
func (i *Informer) Handle(h cache.ResourceEventHandler) {
	for _, object := range i.store.List() {
		h.OnAdd(object, true)
	}
	i.handlers = append(i.handlers, h)
}

// AddEventHandler is Handle for those who expect errors and a registration.
func (i *Informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.Handle(h)
	return synced{}, nil
}

// AddEventHandlerWithOptions is AddEventHandler; there is nothing to opt for.
func (i *Informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: there is nothing to be out
// of sync with.
func (i *Informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddIndexers has the objects found by another key.
func (i *Informer) AddIndexers(more cache.Indexers) error { return i.store.AddIndexers(more) }

// GetIndexer and GetStore give what holds the objects.
func (i *Informer) GetIndexer() cache.Indexer { return i.store }

// GetStore is GetIndexer.
func (i *Informer) GetStore() cache.Store { return i.store }

// HasSynced is always true.
func (i *Informer) HasSynced() bool { return true }

// synced is a registration that is done.
type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// ordered is an indexer that lists objects by their names.
type ordered struct{ cache.Indexer }

func (o ordered) List() []any { return sorted(o.Indexer.List()) }

func (o ordered) ByIndex(name, value string) ([]any, error) {
	objects, err := o.Indexer.ByIndex(name, value)
	return sorted(objects), err
}

func (o ordered) Index(name string, object any) ([]any, error) {
	objects, err := o.Indexer.Index(name, object)
	return sorted(objects), err
}

func sorted(objects []any) []any {
	slices.SortFunc(objects, func(a, b any) int {
		x, y := a.(metav1.Object), b.(metav1.Object)
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return objects
}

// Informers are those that the filter plugins listen to.
type Informers struct {
	Claims, Volumes, Classes, Drivers, CSINodes, Capacities, Attachments *Informer
	DeviceClaims, Slices, DeviceClasses                                  *Informer
	Namespaces                                                           *Informer
	// Pods and Nodes stay empty: the plugins look them up only to bind.
	Pods, Nodes *Informer
	// Factory hands them out.
	Factory informers.SharedInformerFactory
}

// NewInformers makes them all, without objects.
func NewInformers() *Informers {
	all := &Informers{Factory: informers.NewSharedInformerFactory(nil, 0)}
	for _, of := range []struct {
		informer **Informer
		object   runtime.Object
	}{
		{&all.Claims, &corev1.PersistentVolumeClaim{}},
		{&all.Volumes, &corev1.PersistentVolume{}},
		{&all.Classes, &storagev1.StorageClass{}},
		{&all.Drivers, &storagev1.CSIDriver{}},
		{&all.CSINodes, &storagev1.CSINode{}},
		{&all.Capacities, &storagev1.CSIStorageCapacity{}},
		{&all.Attachments, &storagev1.VolumeAttachment{}},
		{&all.DeviceClaims, &resourcev1.ResourceClaim{}},
		{&all.Slices, &resourcev1.ResourceSlice{}},
		{&all.DeviceClasses, &resourcev1.DeviceClass{}},
		{&all.Namespaces, &corev1.Namespace{}},
		{&all.Pods, &corev1.Pod{}},
		{&all.Nodes, &corev1.Node{}},
	} {
		informer := NewInformer()
		*of.informer = informer
		// The factory keeps the first informer that it is given for a kind.
		all.Factory.InformerFor(of.object, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer })
	}
	return all
}
