package status

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/status/cas"
)

const (
	// casEvery is the least time between two writes: Cluster Autoscaler's own
	// --scan-interval.
	casEvery = 10 * time.Second
	// casRenewal is how old a status may become that nothing has changed in: programs
	// go by its age.
	casRenewal = time.Minute
	// casSilence is how long a status that we did not write is somebody's who is alive.
	// A Cluster Autoscaler writes in each of its loops.
	casSilence = 2 * time.Minute
	// casRemoval is how long the end may be delayed to take the status away.
	casRemoval = 2 * time.Second
)

// CASBoard keeps the ConfigMap in which a Cluster Autoscaler reports its status, as long as
// none does. Whoever posts never waits. All that it knows of what was written before
// stands in the ConfigMap.
type CASBoard struct {
	maps   corev1client.ConfigMapInterface
	name   string
	logger *slog.Logger

	mu        sync.Mutex
	draw      func(last cas.Status) cas.Status // nil while there is nothing to report
	evaluated time.Time
	fresh     chan struct{}
}

// NewCASBoard returns a board for the ConfigMap of that name in the namespace that maps
// belong to.
func NewCASBoard(maps corev1client.ConfigMapInterface, name string, logger *slog.Logger) *CASBoard {
	return &CASBoard{maps: maps, name: name, logger: logger, fresh: make(chan struct{}, 1)}
}

// Post puts a status up, drawn by what stood there last. Without any, such as beside a
// live Cluster Autoscaler, nothing is written from now on.
func (b *CASBoard) Post(draw func(last cas.Status) cas.Status) {
	b.mu.Lock()
	b.draw, b.evaluated = draw, time.Now()
	b.mu.Unlock()
	b.nudge()
}

// Evaluated records that what was posted last was still so then.
func (b *CASBoard) Evaluated(at time.Time) {
	b.mu.Lock()
	b.evaluated = at
	b.mu.Unlock()
	b.nudge()
}

func (b *CASBoard) nudge() {
	select {
	case b.fresh <- struct{}{}:
	default:
	}
}

// Run writes what is posted until ctx ends: on change, or once a minute while evaluations go
// on, and at most every ten seconds. What could not be written is tried again then.
func (b *CASBoard) Run(ctx context.Context) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.fresh:
		}
		err := b.sync(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			if text := err.Error(); text != said {
				said = text
				b.logger.Warn("Cluster Autoscaler's status not written", "err", err)
			}
			b.nudge()
		}
		if err == nil {
			said = ""
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(casEvery):
		}
	}
}

func (b *CASBoard) latest() (func(cas.Status) cas.Status, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draw, b.evaluated
}

// sync writes what was posted, if that is news.
func (b *CASBoard) sync(ctx context.Context, now time.Time) error {
	draw, evaluated := b.latest()
	if draw == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	object, err := b.maps.Get(ctx, b.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object, err = b.bear(draw(cas.Status{}).Probed(evaluated), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: b.name}}, now)
		if err == nil {
			_, err = b.maps.Create(ctx, object, metav1.CreateOptions{})
		}
		return b.failed("creating", err)
	}
	if err != nil {
		return b.failed("reading", err)
	}
	age := now.Sub(writtenAt(object))
	if !contract.IsOwnStatus(object.Annotations) && age < casSilence {
		return nil // it is somebody's who is alive
	}
	// An unreadable status counts as none: it is written anew.
	last, _ := cas.Parse(object.Data[contract.ClusterAutoscalerStatusKey])
	next := draw(last).Probed(evaluated)
	if contract.IsOwnStatus(object.Annotations) && age.Abs() < casRenewal && sameStatus(last, next) {
		return nil
	}
	object, err = b.bear(next, object, now)
	if err == nil {
		// Not if somebody has written meanwhile: the object is of one version.
		_, err = b.maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	return b.failed("writing", err)
}

// bear is a copy of an object that has a status, and our mark.
func (b *CASBoard) bear(status cas.Status, object *corev1.ConfigMap, now time.Time) (*corev1.ConfigMap, error) {
	status.Time = now.UTC().Format(cas.TimeFormat)
	text, err := status.Encode()
	if err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	object.Labels = with(object.Labels, contract.LabelAppName, contract.AppScaler)
	object.Annotations = with(object.Annotations, contract.AnnotationLastUpdated, status.Time)
	object.Annotations[contract.AnnotationStatusWritten] = status.Time
	object.Data = with(object.Data, contract.ClusterAutoscalerStatusKey, text)
	return object, nil
}

// failed returns what failed, if anything did.
func (b *CASBoard) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s config map %s: %w", what, b.name, err)
}

// Remove deletes the status, if it is ours: from now on nothing updates it.
func (b *CASBoard) Remove() {
	ctx, cancel := context.WithTimeout(context.Background(), casRemoval)
	defer cancel()
	if err := b.remove(ctx); err != nil {
		b.logger.Warn("Cluster Autoscaler's status not removed", "err", err)
	}
}

func (b *CASBoard) remove(ctx context.Context) error {
	object, err := b.maps.Get(ctx, b.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return b.failed("reading", err)
	}
	if !contract.IsOwnStatus(object.Annotations) {
		return nil
	}
	unchanged := metav1.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion}
	err = b.maps.Delete(ctx, b.name, metav1.DeleteOptions{Preconditions: &unchanged})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return b.failed("deleting", err)
}

// writtenAt is when a status was written; long ago where it does not state it.
func writtenAt(object *corev1.ConfigMap) time.Time {
	at, err := time.Parse(cas.TimeFormat, object.Annotations[contract.AnnotationLastUpdated])
	if err != nil {
		return time.Time{}
	}
	return at
}

// sameStatus reports whether two statuses are the same but for when that was seen.
func sameStatus(a, b cas.Status) bool {
	a.Time, b.Time = "", ""
	return equality.Semantic.DeepEqual(a.Probed(time.Time{}), b.Probed(time.Time{}))
}

// with is a copy of a map with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}
