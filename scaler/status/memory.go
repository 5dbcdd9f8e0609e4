package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// stateKey is where the ConfigMap holds the state, as JSON.
const stateKey = "state"

var (
	// ErrUnreadable means that the memory holds something that is no state. It
	// is not overwritten before somebody has read this.
	ErrUnreadable = errors.New("the memory does not parse")
	// ErrOthers means that somebody else wrote to the memory: whoever thinks
	// to lead should load it again.
	ErrOthers = errors.New("somebody else wrote the memory")
)

// Memory is the scaler's memory in a ConfigMap. One leader uses it at a time;
// if there are two by mistake, the second write fails.
type Memory struct {
	maps   corev1client.ConfigMapInterface
	object *corev1.ConfigMap // as last read or written; nil before
	state  fleet.State
}

// NewMemory returns a memory of the namespace that maps belong to. It is empty
// before Load.
func NewMemory(maps corev1client.ConfigMapInterface) *Memory { return &Memory{maps: maps} }

// Load reads the memory. Where there is none yet it is empty. After
// ErrUnreadable it is empty too, and the next Remember overwrites what stands
// there.
func (m *Memory) Load(ctx context.Context) error {
	m.state = fleet.State{}
	object, err := m.maps.Get(ctx, contract.ConfigMapState, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		m.object = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading config map %s: %w", contract.ConfigMapState, err)
	}
	m.object = object
	text := object.Data[stateKey]
	if text == "" {
		return nil
	}
	var state fleet.State
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return fmt.Errorf("config map %s: %w: %w", contract.ConfigMapState, ErrUnreadable, err)
	}
	m.state = state
	return nil
}

// State is what is remembered.
func (m *Memory) State() fleet.State { return m.state }

// Remember writes a state, if it differs from what is remembered. If it fails
// nothing is remembered anew; whatever the state guards must not be done then.
func (m *Memory) Remember(ctx context.Context, state fleet.State) error {
	if fleet.Equal(m.state, state) {
		return nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encoding the memory: %w", err)
	}
	written, err := m.write(ctx, string(text))
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || (apierrors.IsNotFound(err) && m.object != nil) {
		return fmt.Errorf("writing config map %s: %w: %w", contract.ConfigMapState, ErrOthers, err)
	}
	if err != nil {
		return fmt.Errorf("writing config map %s: %w", contract.ConfigMapState, err)
	}
	m.object, m.state = written, state
	return nil
}

func (m *Memory) write(ctx context.Context, text string) (*corev1.ConfigMap, error) {
	if m.object == nil {
		return m.maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: contract.ConfigMapState, Labels: map[string]string{contract.LabelAppName: contract.AppScaler}},
			Data:       map[string]string{stateKey: text},
		}, metav1.CreateOptions{})
	}
	object := m.object.DeepCopy()
	object.Data = map[string]string{stateKey: text}
	return m.maps.Update(ctx, object, metav1.UpdateOptions{})
}
