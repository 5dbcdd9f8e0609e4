package observe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Delays after a watch broke, each twice the last one: an API server that restarts is missed
// for seconds, and drains wait meanwhile. Nothing waits for what is not vital.
const (
	firstBackOff    = 200 * time.Millisecond
	mostBackOff     = 2 * time.Second
	mostBackOffElse = 30 * time.Second
)

// lister is the part of a typed client that a watch needs; L is the list type.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// follow keeps a table up to date until ctx ends. client is the clientset that api comes
// from; report takes the outcome of every call that the watch consists of.
func follow[O object, T any, L runtime.Object](ctx context.Context, client any, api lister[L], fields string, into *table[O, T], most time.Duration, report func(error)) {
	example := exampleOf[O]()
	what := fmt.Sprintf("%T", example)
	calls := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = fields
			into.asked()
			list, err := api.List(ctx, options)
			report(watchError(what, err))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields
			if options.SendInitialEvents != nil { // the whole comes first
				into.asked()
			}
			w, err := api.Watch(ctx, options)
			report(watchError(what, err))
			return w, err
		},
	}
	logger := klog.FromContext(ctx)
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(calls, client), example, into, cache.ReflectorOptions{
		Name: what, Logger: &logger,
		Backoff: &wait.Backoff{Duration: firstBackOff, Cap: most, Factor: 2, Jitter: 0.5, Steps: math.MaxInt32},
	}).RunWithContext(ctx)
}

// exampleOf is an object that shows a reflector what to expect. It asks those without a
// type of their own what they are.
func exampleOf[O object]() any {
	var none O
	if _, untyped := any(none).(*unstructured.Unstructured); untyped {
		return &unstructured.Unstructured{}
	}
	return none
}

func watchError(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("watching %s: %w", what, err)
}
