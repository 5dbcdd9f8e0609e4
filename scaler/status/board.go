package status

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/pkg/telemetry"
)

const (
	// postEvery is the least time between two writes.
	postEvery = 5 * time.Second
	// verdictsEvery is the least time between two writes for verdicts of which the page says nothing:
	// in a large cluster one of some node changes all the time, and everybody who watches gets all.
	verdictsEvery = time.Minute
	// refreshEvery is how often it is written though nothing has changed: somebody may have deleted it, or
	// written to it.
	refreshEvery = 10 * time.Minute
	// postTime is how long one write may take.
	postTime = 5 * time.Second
)

// Board keeps the ConfigMap windlass-status. Whoever posts never waits.
type Board struct {
	maps   corev1client.ConfigMapInterface
	leader string
	logger *slog.Logger

	mu     sync.Mutex
	latest func() statuspage.Status
	uid    types.UID // of the ConfigMap; empty before the first write
	fresh  chan struct{}
}

// NewBoard returns a board of the namespace that maps belong to.
func NewBoard(maps corev1client.ConfigMapInterface, leader string, logger *slog.Logger) *Board {
	return &Board{maps: maps, leader: leader, logger: logger, fresh: make(chan struct{}, 1)}
}

// Post puts a status up, in place of one that has not been written yet. It is
// drawn only if it comes to be written.
func (b *Board) Post(draw func() statuspage.Status) {
	b.mu.Lock()
	b.latest = draw
	b.mu.Unlock()
	select {
	case b.fresh <- struct{}{}:
	default:
	}
}

// Run writes what is posted until ctx ends: on change, and every ten minutes, but at most every
// five seconds, or every minute where the page stays as it is. Five seconds is also how often it
// is drawn: of a large cluster it takes a while. What could not be written is tried again then.
func (b *Board) Run(ctx context.Context) {
	var written content
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.fresh:
		case <-time.After(refreshEvery):
		}
		if err := b.post(ctx, &written); err != nil && ctx.Err() == nil {
			b.logger.Warn("status not written", "err", err)
			b.again()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(postEvery):
		}
	}
}

// Drop forgets what was posted and is not written. It is for who begins to lead, before anything is posted: in
// between somebody else may have led, and written the ConfigMap.
func (b *Board) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest = nil
	select {
	case <-b.fresh:
	default:
	}
}

// content is what the ConfigMap holds, but for when it was written.
type content struct {
	page     string
	verdicts []byte
	at       time.Time
}

// post writes the latest status unless that is written already.
func (b *Board) post(ctx context.Context, written *content) error {
	b.mu.Lock()
	draw := b.latest
	b.mu.Unlock()
	if draw == nil {
		return nil // nothing was posted since this replica leads
	}
	status := draw()
	page := status.Page
	page.Leader, page.Version = b.leader, telemetry.Version()
	text, err := page.Encode()
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	verdicts, err := status.Verdicts.Encode()
	age := time.Since(written.at)
	if err != nil || text == written.page && bytes.Equal(verdicts, written.verdicts) && age < refreshEvery {
		return err
	}
	if text == written.page && age < verdictsEvery {
		b.again()
		return nil
	}
	if err := b.write(ctx, page, verdicts); err != nil {
		return err
	}
	*written = content{text, verdicts, time.Now()}
	return nil
}

func (b *Board) again() {
	select {
	case b.fresh <- struct{}{}:
	default:
	}
}

// write replaces all of it: the ConfigMap belongs to whoever leads.
func (b *Board) write(ctx context.Context, page statuspage.Page, verdicts []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	page.Written = time.Now().UTC().Truncate(time.Second)
	text, err := page.Encode()
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: contract.ConfigMapStatus, Labels: map[string]string{contract.LabelAppName: contract.AppScaler}},
		Data:       map[string]string{statuspage.Key: text},
		BinaryData: map[string][]byte{statuspage.VerdictsKey: verdicts},
	}
	written, err := b.maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		written, err = b.maps.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing config map %s: %w", contract.ConfigMapStatus, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uid = written.UID
	return nil
}

// UID is that of the ConfigMap, by which kubectl describe finds its Events; empty
// before it was written.
func (b *Board) UID() types.UID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.uid
}
