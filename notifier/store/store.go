// Package store keeps what the notifier has seen and sent in the ConfigMap windlass-notifier, so
// that a restart loses nothing.
package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
)

const (
	// key is where the ConfigMap holds the state; one that is too large for it is below packedKey,
	// gzipped.
	key, packedKey = "state", "state.json.gz"
	// mostBytes is the most that is written: an object of the API holds 1 MiB.
	mostBytes = 600 << 10
	// mostPlain is the most that it has before it is gzipped: what is read is unpacked no further.
	mostPlain = 8 << 20
	// callTime is how long one call may take.
	callTime = 5 * time.Second
)

// ErrOthers means that somebody else has written meanwhile: another replica sends, too.
var ErrOthers = errors.New("somebody else has written the state meanwhile")

// ErrUnreadable means that what stands in the ConfigMap is not ours. It is replaced at the next
// Save.
var ErrUnreadable = errors.New("the state is unreadable")

// Saved is what outlives a restart.
type Saved struct {
	State happening.State `json:"state"`
	Sent  delivery.Sent   `json:"sent"`
}

// Store is the ConfigMap, as this process knows it.
type Store struct {
	maps    corev1client.ConfigMapInterface
	there   bool              // the ConfigMap is
	object  *corev1.ConfigMap // as it stood last; what others have put there stays
	written string
}

// New returns the store of a namespace.
func New(maps corev1client.ConfigMapInterface) *Store { return &Store{maps: maps} }

// Load reads what was saved last.
func (s *Store) Load(ctx context.Context) (Saved, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	empty := Saved{Sent: delivery.Sent{}}
	object, err := s.maps.Get(ctx, contract.ConfigMapNotifier, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.there, s.object, s.written = false, nil, ""
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("reading config map %s: %w", contract.ConfigMapNotifier, err)
	}
	text, err := decode(object)
	s.there, s.object, s.written = true, object, text
	if err != nil {
		return empty, fmt.Errorf("%w: config map %s: %w", ErrUnreadable, contract.ConfigMapNotifier, err)
	}
	if s.written == "" {
		return empty, nil
	}
	saved := empty
	if err := json.Unmarshal([]byte(s.written), &saved); err != nil {
		return empty, fmt.Errorf("%w: config map %s: %w", ErrUnreadable, contract.ConfigMapNotifier, err)
	}
	return sound(saved), nil
}

// sound drops what no notifier writes, so that nobody has to ask whether it is there.
func sound(s Saved) Saved {
	for name, service := range s.Sent {
		if service == nil {
			delete(s.Sent, name)
		}
	}
	if s.Sent == nil {
		s.Sent = delivery.Sent{}
	}
	ids := map[string]bool{}
	s.State.Happenings = slices.DeleteFunc(s.State.Happenings, func(h happening.Happening) bool {
		odd := h.ID == "" || ids[h.ID] || !slices.Contains(happening.Kinds, h.Kind) || h.Began.IsZero()
		ids[h.ID] = true
		return odd
	})
	return s
}

// Save writes the state, if it is another than the last. It returns what of it was written: of
// one that is too large the oldest happenings are shed.
func (s *Store) Save(ctx context.Context, saved Saved) (Saved, error) {
	text, packed, err := encode(ctx, &saved)
	if err != nil || text == s.written {
		return saved, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: contract.ConfigMapNotifier}}
	if s.object != nil {
		object = s.object.DeepCopy()
	}
	object.Labels = with(object.Labels, contract.LabelAppName, contract.AppNotifier)
	if packed == nil {
		object.Data = with(object.Data, key, text)
		delete(object.BinaryData, packedKey)
	} else {
		object.BinaryData = with(object.BinaryData, packedKey, packed)
		delete(object.Data, key)
	}
	write := s.maps.Update
	if !s.there {
		write = func(ctx context.Context, m *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
			return s.maps.Create(ctx, m, metav1.CreateOptions{})
		}
	}
	now, err := write(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return saved, fmt.Errorf("%w: %w", ErrOthers, err)
	}
	if err != nil {
		return saved, fmt.Errorf("writing config map %s: %w", contract.ConfigMapNotifier, err)
	}
	s.there, s.object, s.written = true, now, text
	return saved, nil
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = value
	return m
}

// errNoRoom means that there is nothing left that could be shed.
var errNoRoom = errors.New("the state is too large without any happening, too")

// decode is the text of a state.
func decode(object *corev1.ConfigMap) (string, error) {
	packed, is := object.BinaryData[packedKey]
	if !is {
		return object.Data[key], nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("%s: %w", packedKey, err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, mostPlain+1))
	if err == nil && len(text) > mostPlain {
		err = fmt.Errorf("it has more than %d bytes unpacked, which no notifier writes", mostPlain)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", packedKey, err)
	}
	return string(text), nil
}

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write(text)
	err = errors.Join(err, zip.Close())
	return packed.Bytes(), err
}

// encode packs a state that is large, and sheds of one that is too large. What is not packed is
// nil.
func encode(ctx context.Context, saved *Saved) (string, []byte, error) {
	for ctx.Err() == nil {
		text, err := json.Marshal(saved)
		if err != nil {
			return "", nil, fmt.Errorf("encoding the state: %w", err)
		}
		if len(text) <= mostBytes {
			return string(text), nil, nil
		}
		if len(text) <= mostPlain {
			packed, err := pack(text)
			if err != nil {
				return "", nil, fmt.Errorf("packing the state: %w", err)
			}
			if len(packed) <= mostBytes {
				return string(text), packed, nil
			}
		}
		state, some := saved.State.Shed(max(1, len(saved.State.Happenings)/10), saved.Sent.Told)
		if !some {
			return "", nil, fmt.Errorf("%w: it has %d bytes, and a config map has room for %d; delete config map %s to begin anew", errNoRoom, len(text), mostBytes, contract.ConfigMapNotifier)
		}
		saved.State, saved.Sent = state, saved.Sent.Clone()
		saved.Sent.Forget(state, slices.Collect(maps.Keys(saved.Sent)))
	}
	return "", nil, context.Cause(ctx)
}
