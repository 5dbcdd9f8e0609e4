package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow"
	"windlass.dev/windlass/scaler/shadow/record"
)

const (
	// shadowEvery is the least time between two writes of a shadow: what it has not written is lost
	// with its process.
	shadowEvery = 10 * time.Second
	// shadowTime is how long one write may take.
	shadowTime = 10 * time.Second
	// assumedKey is where the ConfigMap holds what is assumed.
	assumedKey = "assumed.json.gz"
)

// ShadowBook is what a shadow keeps over a restart, beside its state: what it assumes, and its log. It
// is for one goroutine.
type ShadowBook struct {
	maps corev1client.ConfigMapInterface
	log  *record.Log
	// revision is that of what is written, at when it was.
	revision uint64
	at       time.Time
}

// OpenShadowBook reads what a shadow has kept. What cannot be read is left out, and among the faults.
func OpenShadowBook(ctx context.Context, maps corev1client.ConfigMapInterface) (b *ShadowBook, m shadow.Memory, faults []error, err error) {
	b = &ShadowBook{maps: maps}
	object, err := b.get(ctx, contract.ConfigMapShadow)
	if err != nil {
		return nil, shadow.Memory{}, nil, err
	}
	if object != nil && len(object.BinaryData[assumedKey]) > 0 {
		if m, err = shadow.Decode(object.BinaryData[assumedKey]); err != nil {
			faults = append(faults, fmt.Errorf("config map %s: %w", contract.ConfigMapShadow, err))
		}
	}
	var chunks []record.Chunk
	for _, name := range contract.ConfigMapsShadowLog(record.Chunks) {
		object, err := b.get(ctx, name)
		if err != nil {
			return nil, shadow.Memory{}, nil, err
		}
		if object == nil {
			continue
		}
		if c, is := record.ChunkOf(object); is {
			chunks = append(chunks, c)
		}
	}
	log, unread := record.Resume(chunks)
	b.log = log
	return b, m, append(faults, unread...), nil
}

// get reads a ConfigMap; nil where there is none.
func (b *ShadowBook) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, shadowTime)
	defer cancel()
	object, err := b.maps.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading config map %s: %w", name, err)
	}
	return object, nil
}

// Append adds to the log.
func (b *ShadowBook) Append(records []record.Record) error {
	var failed []error
	now := time.Now()
	for _, r := range records {
		failed = append(failed, b.log.Append(r, now))
	}
	return errors.Join(failed...)
}

// Write writes what has changed, unless that was done a moment ago. What could not be written is
// tried again by the next call after that.
func (b *ShadowBook) Write(ctx context.Context, s *shadow.Shadow) error {
	if time.Since(b.at) < shadowEvery {
		return nil
	}
	return b.Flush(ctx, s)
}

// Flush writes what has changed.
func (b *ShadowBook) Flush(ctx context.Context, s *shadow.Shadow) error {
	b.at = time.Now()
	chunks, err := b.log.Unwritten()
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := b.put(ctx, c.ConfigMap()); err != nil {
			return err
		}
	}
	b.log.Written(chunks)
	revision := s.Revision()
	if revision == b.revision {
		return nil
	}
	text, err := s.Memory().Encode()
	if err != nil {
		return err
	}
	err = b.put(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: contract.ConfigMapShadow, Labels: map[string]string{contract.LabelAppName: contract.AppScaler}},
		BinaryData: map[string][]byte{assumedKey: text},
	})
	if err == nil {
		b.revision = revision
	}
	return err
}

func (b *ShadowBook) put(ctx context.Context, object *corev1.ConfigMap) error {
	ctx, cancel := context.WithTimeout(ctx, shadowTime)
	defer cancel()
	_, err := b.maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = b.maps.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing config map %s: %w", object.Name, err)
	}
	return nil
}
