package status

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// aServer has one ConfigMap, and answers as an API server does.
type aServer struct {
	corev1client.ConfigMapInterface
	object *corev1.ConfigMap
	// lost: what is written is not answered; away: nothing arrives. denied is the answer of a webhook.
	lost         bool
	away, denied error
}

func (s *aServer) Get(context.Context, string, metav1.GetOptions) (*corev1.ConfigMap, error) {
	if s.object == nil && s.away == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), "")
	}
	return s.object.DeepCopy(), s.away
}

func (s *aServer) Create(_ context.Context, object *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	if s.object != nil && s.away == nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("configmaps"), object.Name)
	}
	return s.commit(object)
}

func (s *aServer) Update(_ context.Context, object *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if s.denied == nil && s.away == nil && object.ResourceVersion != s.object.ResourceVersion {
		return nil, apierrors.NewConflict(corev1.Resource("configmaps"), object.Name, nil)
	}
	return s.commit(object)
}

func (s *aServer) commit(object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if err := cmp.Or(s.away, s.denied); err != nil {
		return nil, err
	}
	version := 0
	if s.object != nil {
		version, _ = strconv.Atoi(s.object.ResourceVersion)
	}
	s.object = object.DeepCopy()
	s.object.ResourceVersion = strconv.Itoa(version + 1)
	if s.lost {
		return nil, errors.New("connection reset by peer")
	}
	return s.object.DeepCopy(), nil
}

// A write whose answer was lost is our own, and nobody else's, until somebody else has written.
func TestMemoryKnowsItsOwnWrite(t *testing.T) {
	server := &aServer{}
	m := NewMemory(server)
	for _, group := range []string{"made", "changed"} {
		server.lost = true
		if _, err := m.Remember(t.Context(), state(group)); err == nil || errors.Is(err, ErrOthers) {
			t.Fatalf("%s: a write without an answer: %v", group, err)
		}
		server.away = errors.New("connection refused")
		for _, s := range []fleet.State{state(group + " refused"), {}} {
			if _, err := m.Remember(t.Context(), s); err == nil || errors.Is(err, ErrOthers) {
				t.Fatalf("%s: a write that does not arrive: %v", group, err)
			}
		}
		server.lost, server.away = false, nil
		if _, err := m.Remember(t.Context(), state(group+" again")); err != nil {
			t.Fatalf("%s: the next one: %v", group, err)
		}
	}
	server.lost = true
	if _, err := m.Remember(t.Context(), state("last")); err == nil {
		t.Fatal("a write without an answer has none")
	}
	server.lost = false
	other := NewMemory(server)
	if err := errors.Join(other.Load(t.Context()), func() error { _, err := other.Remember(t.Context(), state("other")); return err }()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Remember(t.Context(), state("mine")); !errors.Is(err, ErrOthers) {
		t.Errorf("after somebody else has written: %v", err)
	}
}

// Whoever labels the object has not written the state.
func TestMemoryIsLabelled(t *testing.T) {
	server := &aServer{}
	m := NewMemory(server)
	if _, err := m.Remember(t.Context(), state("web")); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"a", "b"} {
		server.object.ResourceVersion += "0"
		server.object.Labels = map[string]string{"team": value}
		if _, err := m.Remember(t.Context(), state(value)); err != nil {
			t.Fatalf("the state is as it was: %v", err)
		}
		if server.object.Labels["team"] != value {
			t.Errorf("the label was taken off: %v", server.object.Labels)
		}
	}
	server.object.ResourceVersion += "0"
	server.object.Data = map[string]string{stateKey: `{"heartbeats":{}}`}
	if _, err := m.Remember(t.Context(), state("mine")); !errors.Is(err, ErrOthers) {
		t.Errorf("after somebody else has written: %v", err)
	}
}

// What a webhook denies is not written, with whatever code it does so: nobody else leads.
func TestMemoryIsDenied(t *testing.T) {
	for _, answer := range []*apierrors.StatusError{
		apierrors.NewConflict(corev1.Resource("configmaps"), "windlass-state", nil), apierrors.NewNotFound(corev1.Resource("configmaps"), "windlass-state"),
	} {
		answer.ErrStatus.Message = `admission webhook "policy.example.com" denied the request: no`
		server := &aServer{}
		m := NewMemory(server)
		if _, err := m.Remember(t.Context(), state("web")); err != nil {
			t.Fatal(err)
		}
		server.denied = answer
		var unwritten *UnwrittenError
		if _, err := m.Remember(t.Context(), state("batch")); errors.Is(err, ErrOthers) || !errors.As(err, &unwritten) {
			t.Errorf("%v", err)
		}
	}
}
