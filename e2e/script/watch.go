package script

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
)

// Asker puts queries to an API server.
type Asker struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// reread makes the mapper ask again which kinds there are, kinds asks.
	reread func()
	kinds  func() ([]*metav1.APIResourceList, error)
}

// NewAsker makes an Asker with the rights of a REST config.
func NewAsker(config *rest.Config) (*Asker, error) {
	config = dynamic.ConfigFor(config) // JSON: objects of any kind have no protobuf
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a dynamic client: %w", err)
	}
	plain, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	cached := memory.NewMemCacheClient(plain)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &Asker{client: client, mapper: restmapper.NewShortcutExpander(mapper, cached, nil), reread: mapper.Reset, kinds: plain.ServerPreferredResources}, nil
}

// Wait watches until the query's answer holds. It survives an API server that
// is away for a while. When ctx ends first, the error says what was seen last.
func (a *Asker) Wait(ctx context.Context, q Query) (Answer, error) {
	informer, err := a.informer(q)
	if err != nil {
		return Answer{}, err
	}
	changed := make(chan struct{}, 1)
	nudge := func() {
		select {
		case changed <- struct{}{}:
		default: // a nudge is waiting already
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { nudge() },
		UpdateFunc: func(any, any) { nudge() },
		DeleteFunc: func(any) { nudge() },
	})
	if err != nil {
		return Answer{}, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.Run(running.Done())
	}()
	defer func() {
		stop()
		<-ended
	}()
	// "Gone" must not be true of a cache that is not filled yet.
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return Answer{}, fmt.Errorf("listing %s: %w", q.Kind, context.Cause(ctx))
	}
	for {
		answer := q.Answer(objects(informer))
		if answer.Holds {
			return answer, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return answer, fmt.Errorf("%w; seen last, %d of %d match:\n%s",
				context.Cause(ctx), len(answer.Matched), len(answer.Seen), strings.Join(answer.Seen, "\n"))
		}
	}
}

// Ask answers a query once.
func (a *Asker) Ask(ctx context.Context, q Query) (Answer, error) {
	resource, namespace, err := a.resource(q)
	if err != nil {
		return Answer{}, err
	}
	options := metav1.ListOptions{}
	tweak(q)(&options)
	list, err := a.client.Resource(resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return Answer{}, fmt.Errorf("listing %s: %w", q.Kind, err)
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return q.Answer(all), nil
}

func (a *Asker) informer(q Query) (cache.SharedIndexInformer, error) {
	resource, namespace, err := a.resource(q)
	if err != nil {
		return nil, err
	}
	return dynamicinformer.NewFilteredDynamicInformer(a.client, resource, namespace, 0, cache.Indexers{}, tweak(q)).Informer(), nil
}

// resource finds what the query's kind is called in the API, and where to look.
func (a *Asker) resource(q Query) (resource schema.GroupVersionResource, namespace string, err error) {
	partial := schema.ParseGroupResource(q.Kind).WithVersion("")
	resource, err = a.mapper.ResourceFor(partial)
	if meta.IsNoMatchError(err) { // it may have been defined since
		a.reread()
		resource, err = a.mapper.ResourceFor(partial)
	}
	if err != nil {
		return resource, "", fmt.Errorf("kind %q: %w", q.Kind, err)
	}
	kind, err := a.mapper.KindFor(resource)
	if err != nil {
		return resource, "", fmt.Errorf("kind %q: %w", q.Kind, err)
	}
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return resource, "", fmt.Errorf("kind %q: %w", q.Kind, err)
	}
	if q.AllSpaces || mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resource, metav1.NamespaceAll, nil
	}
	return resource, cmp.Or(q.Namespace, metav1.NamespaceDefault), nil
}

func tweak(q Query) dynamicinformer.TweakListOptionsFunc {
	return func(o *metav1.ListOptions) {
		o.LabelSelector = q.Selector
		if q.Name != "" {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", q.Name).String()
		}
	}
}

func objects(informer cache.SharedIndexInformer) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, o := range informer.GetStore().List() {
		if u, ok := o.(*unstructured.Unstructured); ok {
			all = append(all, u)
		}
	}
	return all
}
