package status

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
)

// stateKey is where the ConfigMap holds the state, as JSON.
const stateKey = "state"

var (
	// ErrUnreadable means that the ConfigMap holds something that is no state. It is not
	// overwritten before somebody has read this.
	ErrUnreadable = errors.New("the memory does not parse")
	// ErrOthers means that another process wrote the state: whoever thinks to lead should
	// load it again.
	ErrOthers = errors.New("somebody else wrote the memory")
)

// Memory is the scaler's persisted state in a ConfigMap. One leader uses it at a time; if
// there are two by mistake, the second write fails.
type Memory struct {
	maps   corev1client.ConfigMapInterface
	name   string            // the ConfigMap's
	object *corev1.ConfigMap // as last read or written; nil before
	// written is what the ConfigMap holds, state what this process goes by: the same,
	// unless it could not be written.
	written, state fleet.State
	// unanswered are sums of what was written without an answer since one was heard: it may stand there.
	unanswered map[[sha256.Size]byte]bool
}

// mostState is the most bytes of a state that are written. A ConfigMap may hold twice as
// many, and every write carries all of them.
// https://kubernetes.io/docs/concepts/configuration/configmap/#motivation
const mostState = 512 << 10

// rememberTime is how long one write may take: a webhook may hang, and what is urgent at
// the next evaluation waits for it.
const rememberTime = 10 * time.Second

// NewMemory returns a Memory of the namespace that maps belong to. It is empty before Load.
func NewMemory(maps corev1client.ConfigMapInterface) *Memory {
	return &Memory{maps: maps, name: contract.ConfigMapState}
}

// NewShadowMemory is that of a shadow.
func NewShadowMemory(maps corev1client.ConfigMapInterface) *Memory {
	return &Memory{maps: maps, name: contract.ConfigMapShadowState}
}

// Load reads the state. Where there is none yet it is empty. After ErrUnreadable it is empty
// too, and the next Remember overwrites what stands there.
func (m *Memory) Load(ctx context.Context) error {
	m.written, m.state, m.unanswered = fleet.State{}, fleet.State{}, nil
	object, err := m.maps.Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		m.object = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading config map %s: %w", m.name, err)
	}
	m.object = object
	text := object.Data[stateKey]
	if text == "" {
		return nil
	}
	var state fleet.State
	err = fleet.CheckQuantities[fleet.State]([]byte(text))
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	if err != nil {
		return fmt.Errorf("config map %s: %w: %w", m.name, ErrUnreadable, err)
	}
	m.written, m.state = state, state
	return nil
}

// State is the persisted state.
func (m *Memory) State() fleet.State { return m.state }

// Keep has this process alone go by a state that could not be written.
func (m *Memory) Keep(state fleet.State) { m.state = state }

// UID is that of the ConfigMap; empty before it was read or written.
func (m *Memory) UID() types.UID {
	if m.object == nil {
		return ""
	}
	return m.object.UID
}

// Remembered is what became of a state.
type Remembered struct {
	// Bytes is how many it takes; zero where it is what was written before.
	Bytes int
	// Shed counts the entries that were dropped from it, as it was too large.
	Shed fleet.Shed
}

// UnwrittenError means that a state could not be written. Of what differs from the one
// that is written, whatever it guards must not be done.
type UnwrittenError struct {
	// Parts differ, as fleet.State spells them.
	Parts []string
	Err   error
	name  string
}

func (e *UnwrittenError) Error() string {
	return fmt.Sprintf("writing config map %s: %v", e.name, e.Err)
}

func (e *UnwrittenError) Unwrap() error { return e.Err }

// Remember writes a state, if it differs from what is written. One that is too large is
// made smaller first, see fleet.State.ShedTo. If it fails, with ErrOthers or as an
// UnwrittenError, the persisted state stays as it was.
func (m *Memory) Remember(ctx context.Context, state fleet.State) (Remembered, error) {
	if len(m.unanswered) == 0 && fleet.Equal(m.written, state) {
		m.state = m.written
		return Remembered{}, nil
	}
	state, text, shed, err := state.ShedTo(mostState)
	if err != nil {
		return Remembered{}, fmt.Errorf("encoding the memory: %w", err)
	}
	done := Remembered{Bytes: len(text), Shed: shed}
	if len(shed) > 0 && len(m.unanswered) == 0 && fleet.Equal(m.written, state) {
		m.state = m.written
		return done, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rememberTime)
	defer cancel()
	written, err := m.write(ctx, string(text))
	if m.isOthers(err) {
		if written, err = m.adopt(ctx, err); err == nil {
			written, err = m.write(ctx, string(text))
		}
	}
	if m.isOthers(err) {
		return done, fmt.Errorf("writing config map %s: %w: %w", m.name, ErrOthers, err)
	}
	if err != nil {
		if m.unanswered == nil {
			m.unanswered = map[[sha256.Size]byte]bool{}
		}
		m.unanswered[sha256.Sum256(text)] = true
		return done, &UnwrittenError{Parts: fleet.Differing(m.written, state), Err: err, name: m.name}
	}
	m.object, m.written, m.state, m.unanswered = written, state, state, nil
	return done, nil
}

// isOthers reports whether a write failed as somebody else has written. A webhook denies with whatever
// code, and what a quota has no room for conflicts, too.
func (m *Memory) isOthers(err error) bool {
	if kube.Denied(err) {
		return false
	}
	if m.object == nil {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// adopt takes what stands there for our own, if it was ourselves who wrote last: the answer was lost, or
// somebody has labelled the object since. Otherwise others have written.
func (m *Memory) adopt(ctx context.Context, others error) (*corev1.ConfigMap, error) {
	object, err := m.maps.Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, others
	}
	if err != nil {
		return nil, fmt.Errorf("reading whether it was written: %w", err)
	}
	text := object.Data[stateKey]
	labelled := m.object != nil && object.UID == m.object.UID && text == m.object.Data[stateKey]
	if !labelled && !m.unanswered[sha256.Sum256([]byte(text))] {
		return nil, others
	}
	m.object = object
	return object, nil
}

func (m *Memory) write(ctx context.Context, text string) (*corev1.ConfigMap, error) {
	if m.object == nil {
		return m.maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{contract.LabelAppName: contract.AppScaler}},
			Data:       map[string]string{stateKey: text},
		}, metav1.CreateOptions{})
	}
	object := m.object.DeepCopy()
	object.Data = map[string]string{stateKey: text}
	return m.maps.Update(ctx, object, metav1.UpdateOptions{})
}
