package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// scaled is what a scalable object was when it was read last.
type scaled struct {
	// made identifies one state of what it makes pods from.
	made  string
	pods  *fleet.BufferPods // nil where it is not there
	fault string
	at    time.Time // when it was read last
}

// Bounds of what tenants can make us read in one go, of one namespace and of all. What is over comes
// with the next rounds. scalablesRest is how long what was read is not read again, however often a
// buffer changes.
const (
	mostScalablesOfNamespace, mostScalables = 10, 200
	scalablesRest                           = time.Second
)

// due are those to read: of each namespace the ones that were not read for longest.
func due(list []scalable, before map[scalable]scaled, now time.Time) (some []scalable) {
	slices.SortFunc(list, func(a, b scalable) int {
		return cmp.Or(before[a].at.Compare(before[b].at), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	of := map[string]int{}
	for _, s := range list {
		if now.Sub(before[s].at) < scalablesRest {
			continue
		}
		if of[s.namespace]++; of[s.namespace] <= mostScalablesOfNamespace && len(some) < mostScalables {
			some = append(some, s)
		}
	}
	return some
}

// readScalables reads those of these objects that are due, and forgets what no buffer refers to any more. What
// was read before stands where that fails.
func (w *bufferWatch) readScalables(ctx context.Context, list []scalable) {
	w.mu.Lock()
	before, first := maps.Clone(w.scalables), !w.followed
	w.mu.Unlock()
	after := map[scalable]scaled{}
	for _, s := range list {
		if was, known := before[s]; known {
			after[s] = was
		}
	}
	moved := len(before) != len(after)
	for _, s := range due(list, before, time.Now()) {
		was, known := before[s]
		is := w.read(ctx, s, was)
		if ctx.Err() != nil {
			return
		}
		moved = moved || !known || is.fault != was.fault || !sameScaled(is, was)
		is.at = time.Now()
		after[s] = is
	}
	synced := w.buffers.hasSynced()
	w.mu.Lock()
	w.scalables = after
	w.followed = w.followed || synced
	w.mu.Unlock()
	if moved || first && synced {
		w.changed()
	}
}

func sameScaled(a, b scaled) bool {
	return a.made == b.made && (a.pods == nil) == (b.pods == nil) && (a.pods == nil || ptr.Equal(a.pods.Replicas, b.pods.Replicas))
}

func (w *bufferWatch) read(ctx context.Context, s scalable, was scaled) scaled {
	object, err := w.get(ctx, s)
	switch {
	case apierrors.IsNotFound(err):
		return scaled{}
	case err != nil && was.pods != nil && !apierrors.IsForbidden(err):
		return was
	case err != nil:
		return scaled{fault: fmt.Sprintf("reading %s %s/%s: %v", s.Kind, s.namespace, s.Name, err)}
	}
	is := scaled{made: fmt.Sprintf("%s/%d", object.meta.GetUID(), object.meta.GetGeneration())}
	template := was.template(is.made)
	if template == nil {
		template = slimTemplate(object.template)
	}
	is.pods = &fleet.BufferPods{Template: template, Replicas: object.replicas()}
	return is
}

// template is that of the same state, nil of another one: who has seen it need not see
// another one that means the same.
func (s scaled) template(made string) *corev1.PodTemplateSpec {
	if s.pods == nil || s.made != made {
		return nil
	}
	return s.pods.Template
}

// scalableObject is what scalable objects have in common.
type scalableObject struct {
	meta     metav1.Object
	template *corev1.PodTemplateSpec
	// wanted and there are how many pods it shall have, and has.
	wanted *int32
	there  int32
}

// replicas is how many pods there are or, before the first, how many there shall be.
func (o scalableObject) replicas() *int32 {
	if o.there > 0 {
		return &o.there
	}
	return o.wanted
}

func (w *bufferWatch) get(ctx context.Context, s scalable) (scalableObject, error) {
	options := metav1.GetOptions{}
	switch s.KindOf() {
	case fleet.Deployments:
		o, err := w.client.AppsV1().Deployments(s.namespace).Get(ctx, s.Name, options)
		if err != nil {
			return scalableObject{}, err
		}
		return scalableObject{o, &o.Spec.Template, o.Spec.Replicas, o.Status.Replicas}, nil
	case fleet.ReplicaSets:
		o, err := w.client.AppsV1().ReplicaSets(s.namespace).Get(ctx, s.Name, options)
		if err != nil {
			return scalableObject{}, err
		}
		return scalableObject{o, &o.Spec.Template, o.Spec.Replicas, o.Status.Replicas}, nil
	case fleet.StatefulSets:
		o, err := w.client.AppsV1().StatefulSets(s.namespace).Get(ctx, s.Name, options)
		if err != nil {
			return scalableObject{}, err
		}
		return scalableObject{o, &o.Spec.Template, o.Spec.Replicas, o.Status.Replicas}, nil
	case fleet.ReplicationControllers:
		o, err := w.client.CoreV1().ReplicationControllers(s.namespace).Get(ctx, s.Name, options)
		if err != nil {
			return scalableObject{}, err
		}
		if o.Spec.Template == nil {
			return scalableObject{}, fmt.Errorf("it has no template")
		}
		return scalableObject{o, o.Spec.Template, o.Spec.Replicas, o.Status.Replicas}, nil
	case fleet.Jobs:
		o, err := w.client.BatchV1().Jobs(s.namespace).Get(ctx, s.Name, options)
		if err != nil {
			return scalableObject{}, err
		}
		return scalableObject{o, &o.Spec.Template, o.Spec.Parallelism, 0}, nil
	}
	return scalableObject{}, fmt.Errorf("the pods of kind %s of API group %q are not known", s.Kind, s.Group)
}
