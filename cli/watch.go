package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// onChange calls show now and after each change of windlass-status, until ctx ends.
func (r reader) onChange(ctx context.Context, show func(context.Context) error) error {
	maps := r.client.CoreV1().ConfigMaps(r.system)
	object, err := maps.Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
	if err := show(ctx); err != nil { // which says more, where there is none
		return err
	}
	if err != nil {
		return fmt.Errorf("reading config map %s: %w", contract.ConfigMapStatus, err)
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, contract.ConfigMapStatus).String()
	return r.watch(ctx, object.ResourceVersion, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = only
		return maps.Watch(ctx, options)
	}, func(event watch.Event) error {
		if event.Type == watch.Deleted {
			return nil
		}
		return show(ctx)
	})
}

// follow calls tell with each Event of both programs from these versions on, one after the
// other, until ctx ends.
func (r reader) follow(ctx context.Context, versions map[string]string, tell func(view.Entry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, ended := make(chan view.Entry), make(chan error, len(programs))
	for _, program := range programs {
		go func() {
			ended <- r.watch(ctx, versions[program], func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = eventsOf(program)
				return r.client.CoreV1().Events(metav1.NamespaceAll).Watch(ctx, options)
			}, func(event watch.Event) error {
				e, is := event.Object.(*corev1.Event)
				if !is || event.Type == watch.Deleted || !written(e) {
					return nil
				}
				select {
				case entries <- view.EntryOf(e):
				case <-ctx.Done():
				}
				return nil
			})
		}()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case e := <-entries:
			if err := tell(e); err != nil {
				return err
			}
		}
	}
}

// watch calls heed with each change from a version on, until ctx ends, over interruptions.
func (r reader) watch(ctx context.Context, version string, begin cache.WatchFuncWithContext, heed func(watch.Event) error) error {
	w, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: begin})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if event.Type == watch.Error {
				return fmt.Errorf("watching: %v; begin anew", event.Object)
			}
			if err := heed(event); err != nil {
				return err
			}
		}
	}
}
