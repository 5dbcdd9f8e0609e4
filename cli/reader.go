package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/resource"

	"windlass.dev/windlass/cli/top/feed"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

const (
	// page is how many objects one call reads.
	page = 500
	// mostEvents is how many Events are kept, the latest.
	mostEvents = 20_000
)

// reader reads the parts of a World.
type reader struct {
	client kubernetes.Interface
	system string
	now    func() time.Time
}

func (c *cli) reader() (reader, error) {
	client, err := c.connect()
	return reader{client, c.system, c.now}, err
}

// status reads the page and the verdicts, and whether a scaler leads. Where one of the two cannot
// be read, the other stands in, as far as it goes.
func (r reader) status(ctx context.Context, w *view.World) error {
	pageErr, verdictsErr, err := r.both(ctx, w)
	switch {
	case err != nil:
		return err
	case pageErr != nil && verdictsErr != nil:
		return errors.Join(pageErr, verdictsErr)
	case pageErr != nil:
		w.Missing = append(w.Missing, "faults, other programs and failed actions: "+pageErr.Error())
	case verdictsErr != nil:
		w.Missing = append(w.Missing, "back-offs, upcoming nodes, capacity types, nodes' prices, and all but the first nodes and pods of each reason: "+verdictsErr.Error())
		w.Verdicts = view.VerdictsOf(w.Page)
	}
	return nil
}

// verdicts reads what status does, where the page cannot stand in.
func (r reader) verdicts(ctx context.Context, w *view.World) error {
	_, verdictsErr, err := r.both(ctx, w)
	return cmp.Or(err, verdictsErr)
}

// both reads the page and the verdicts, and says which of them cannot be read.
func (r reader) both(ctx context.Context, w *view.World) (pageErr, verdictsErr, err error) {
	object, err := r.client.CoreV1().ConfigMaps(r.system).Get(ctx, contract.ConfigMapStatus, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("namespace %s has no ConfigMap %s: windlass-scaler is not installed there, or has not led yet; --windlass-namespace names another", r.system, contract.ConfigMapStatus)
	case apierrors.IsForbidden(err):
		return nil, nil, fmt.Errorf("%w; manifests/components/viewers has the rights that this needs", err)
	case err != nil:
		return nil, nil, fmt.Errorf("reading config map %s: %w", contract.ConfigMapStatus, err)
	}
	w.Page, pageErr = statuspage.Read(object)
	w.Verdicts, verdictsErr = statuspage.ReadVerdicts(object)
	r.leader(ctx, w)
	return pageErr, verdictsErr, nil
}

// leader reads whether a scaler leads. An answer without that is as good, and says so.
func (r reader) leader(ctx context.Context, w *view.World) {
	if err := r.lease(ctx, w); err != nil {
		w.Missing = append(w.Missing, "whether a scaler leads: "+err.Error())
	}
}

// lease reads who leads, and what time it is: how old a renewal is, only the API server's clock says.
func (r reader) lease(ctx context.Context, w *view.World) (err error) {
	w.Leader, err = feed.Lease(ctx, r.client, r.system, contract.LeaseScaler)
	w.Now = r.now()
	return err
}

// pages calls read for each page of a list, until that has no more.
func pages(read func(metav1.ListOptions) (metav1.ListInterface, error), options metav1.ListOptions) error {
	options.Limit = page
	for {
		list, err := read(options)
		if err != nil {
			return err
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (r reader) nodes(ctx context.Context, w *view.World) error {
	err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.client.CoreV1().Nodes().List(ctx, options)
		if err == nil {
			w.Nodes = append(w.Nodes, list.Items...)
		}
		return list, err
	}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading nodes: %w", err)
	}
	return nil
}

// requests adds up what pods request, page by page: of a large cluster they are many.
func (r reader) requests(ctx context.Context, w *view.World) error {
	w.Requested = map[string]corev1.ResourceList{}
	err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
		list, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return list, err
		}
		for i := range list.Items {
			add(w.Requested, &list.Items[i])
		}
		return list, nil
	}, metav1.ListOptions{FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"})
	if err != nil {
		return fmt.Errorf("reading pods: %w", err)
	}
	return nil
}

func add(requested map[string]corev1.ResourceList, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	sum := requested[pod.Spec.NodeName]
	if sum == nil {
		sum = corev1.ResourceList{}
		requested[pod.Spec.NodeName] = sum
	}
	asked := resource.PodRequests(pod, resource.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		total := sum[name]
		total.Add(asked[name])
		sum[name] = total
	}
}

// subject reads the object of one, if there is such an object.
func (r reader) subject(ctx context.Context, w *view.World, s view.Subject, namespace, name string) error {
	switch s.Kind {
	case view.KindPod:
		pod, err := r.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			w.Pods = append(w.Pods, *pod)
		}
		return unlessAway(err, s)
	case view.KindNode:
		return r.node(ctx, w, s.Name)
	}
	return nil
}

func (r reader) node(ctx context.Context, w *view.World, name string) error {
	node, err := r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		w.Nodes = append(w.Nodes, *node)
	}
	return unlessAway(err, view.Subject{Kind: view.KindNode, Name: name})
}

// unlessAway passes an error on, but that there is no such object, or no object could have the
// name.
func unlessAway(err error, s view.Subject) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("reading %s: %w", s, err)
}

// events reads those of Windlass that are wanted, the latest of many. It returns the versions from
// which each list goes on.
func (r reader) events(ctx context.Context, w *view.World, wanted func(*corev1.Event) bool) (versions map[contract.EventPlace]string, err error) {
	versions = map[contract.EventPlace]string{}
	for _, place := range contract.EventPlaces(r.system) {
		err := pages(func(options metav1.ListOptions) (metav1.ListInterface, error) {
			list, err := r.client.CoreV1().Events(place.Namespace).List(ctx, options)
			if err != nil {
				return list, err
			}
			versions[place] = list.ResourceVersion
			for i := range list.Items {
				if e := &list.Items[i]; place.Has(e) && wanted(e) {
					w.Events = append(w.Events, *e)
				}
			}
			if len(w.Events) > 2*mostEvents {
				w.LatestEvents(mostEvents)
			}
			return list, nil
		}, metav1.ListOptions{FieldSelector: place.Selector().String()})
		if err != nil {
			return nil, fmt.Errorf("reading events of %s: %w", place.Program, err)
		}
	}
	w.LatestEvents(mostEvents)
	return versions, nil
}
