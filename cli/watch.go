package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

const (
	// calm is how long changes of windlass-status are awaited after the first, to show them together.
	calm = time.Second
	// lookAgain is when it is shown again without a change: what is old says so.
	lookAgain = time.Minute
)

// onChange calls show now, after changes of windlass-status, and from time to time, until ctx ends.
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- r.watch(ctx, object.ResourceVersion, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return maps.Watch(ctx, options)
		}, func(event watch.Event) error {
			if event.Type == watch.Deleted {
				return nil
			}
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(lookAgain):
		case <-changed:
			select {
			case err := <-ended:
				return err
			case <-time.After(calm):
			}
			select { // what came meanwhile is shown now
			case <-changed:
			default:
			}
		}
		if err := show(ctx); err != nil {
			return unlessEnded(ctx, err)
		}
	}
}

// unlessEnded is no error where a person has ended what it stopped.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// follow calls tell with each Event from these versions on, one after the other, until ctx ends.
func (r reader) follow(ctx context.Context, versions map[contract.EventPlace]string, tell func(*corev1.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, ended := make(chan *corev1.Event), make(chan error, len(versions))
	for place, version := range versions {
		go func() {
			ended <- r.watch(ctx, version, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = place.Selector().String()
				return r.client.CoreV1().Events(place.Namespace).Watch(ctx, options)
			}, func(event watch.Event) error {
				e, is := event.Object.(*corev1.Event)
				if !is || event.Type == watch.Deleted || !place.Has(e) {
					return nil
				}
				select {
				case events <- e:
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
		case e := <-events:
			if err := tell(e); err != nil {
				return err
			}
		}
	}
}

// entry tells of an Event, and who asked, while its Node still says so.
func (r reader) entry(ctx context.Context, e *corev1.Event) view.Entry {
	if !view.Asks(e) {
		return view.EntryOf(e, nil)
	}
	node, err := r.client.CoreV1().Nodes().Get(ctx, e.InvolvedObject.Name, metav1.GetOptions{})
	if err != nil {
		entry := view.EntryOf(e, nil)
		if !apierrors.IsNotFound(err) {
			entry.By = strings.TrimSpace(entry.By + " (who asked is not known: " + err.Error() + ")")
		}
		return entry
	}
	return view.EntryOf(e, node.Annotations)
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
				return fmt.Errorf("watching: %w", apierrors.FromObject(event.Object))
			}
			if err := heed(event); err != nil {
				return err
			}
		}
	}
}
