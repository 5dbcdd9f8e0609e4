package observe

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

const (
	// prioritiesEvery is how often the ConfigMap is read: people change it by hand,
	// and a watch of one object needs a right to list that cannot be given by name.
	prioritiesEvery = 10 * time.Second
	// prioritiesAgain is how soon after a try that failed the next one is, before
	// anything was read.
	prioritiesAgain = 500 * time.Millisecond
)

// prioritiesWatch reads which groups people prefer. It is nil where they are not used.
type prioritiesWatch struct {
	maps    corev1client.ConfigMapInterface
	refused *refusal
	changed func()
	report  func(error)

	mu    sync.Mutex
	asked bool
	text  *string // nil without a ConfigMap, or without its key
}

func (w *prioritiesWatch) run(ctx context.Context) {
	if w == nil {
		return
	}
	for {
		w.look(ctx)
		pause := prioritiesEvery
		if _, seen := w.latest(); !seen {
			pause = prioritiesAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look reads it once. What was read before stands where that fails.
func (w *prioritiesWatch) look(ctx context.Context) {
	object, err := w.maps.Get(ctx, contract.ConfigMapPriorities, metav1.GetOptions{})
	if ctx.Err() != nil {
		return
	}
	var text *string
	switch {
	case err == nil:
		if value, ok := object.Data[contract.PrioritiesKey]; ok {
			text = &value
		}
	case apierrors.IsNotFound(err):
		err = nil
	case apierrors.IsForbidden(err):
		w.refused.heard(err)
		return
	default:
		w.report(err)
		return
	}
	w.refused.heard(nil)
	w.mu.Lock()
	moved := !w.asked || (text == nil) != (w.text == nil) || text != nil && *text != *w.text
	w.asked, w.text = true, text
	w.mu.Unlock()
	if moved {
		w.changed()
	}
}

// latest is the text, nil where there is none, and whether that is known: a refusal
// that lasts is an answer too.
func (w *prioritiesWatch) latest() (text *string, known bool) {
	if w == nil {
		return nil, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text, w.asked || w.refused.lasts()
}

// fault returns what cannot be read; empty where nothing is refused.
func (w *prioritiesWatch) fault() string {
	if w == nil {
		return ""
	}
	return w.refused.fault()
}
