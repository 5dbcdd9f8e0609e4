package kube

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"windlass.dev/windlass/pkg/contract"
)

// sink is an API server that remembers Events and when they came.
type sink struct {
	mu     sync.Mutex
	events []*corev1.Event
	at     []time.Time
	err    error
}

var _ EventCreator = (*sink)(nil)

func (s *sink) CreateWithEventNamespaceWithContext(_ context.Context, event *corev1.Event) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.events = append(s.events, event)
	s.at = append(s.at, time.Now())
	return event, nil
}

func (s *sink) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.events))
	for _, event := range s.events {
		out = append(out, event.Message)
	}
	return out
}

func TestEventObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewEventWriter(&sink{}, "windlass-agent", "n1", slog.Default(), EventLimits{})
		now := metav1.Now()
		got := []*corev1.Event{
			w.object(Event{Object: PodReference("shop", "web-1", "u1"), Reason: "Evicted", Message: "spot notice", Warning: true}, now.Time),
			w.object(Event{Object: NodeReference("n1"), Reason: "Drained", Message: "done", Annotations: map[string]string{contract.AnnotationEventKind: "spot"}}, now.Time),
		}
		source := corev1.EventSource{Component: "windlass-agent", Host: "n1"}
		want := []*corev1.Event{{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: got[0].Name},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "u1"},
			Type:           "Warning", Reason: "Evicted", Message: "spot notice", Count: 1,
			Source: source, ReportingController: "windlass-agent", ReportingInstance: "n1",
			FirstTimestamp: now, LastTimestamp: now,
		}, {
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: got[1].Name, Annotations: map[string]string{contract.AnnotationEventKind: "spot"}},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"},
			Type:           "Normal", Reason: "Drained", Message: "done", Count: 1,
			Source: source, ReportingController: "windlass-agent", ReportingInstance: "n1",
			FirstTimestamp: now, LastTimestamp: now,
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// An Event bears the time at which something happened, where that is given, and the time
// at which it was written elsewhere.
func TestEventTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewEventWriter(&sink{}, "c", "", slog.Default(), EventLimits{})
		happened := time.Now().Add(-time.Hour)
		w.Write(Event{Object: NodeReference("n"), At: happened})
		w.Write(Event{Object: NodeReference("n")})
		for _, want := range []time.Time{happened, time.Now()} {
			if e := <-w.queue; !e.FirstTimestamp.Time.Equal(want) || !e.LastTimestamp.Time.Equal(want) {
				t.Errorf("dated %s and %s, want %s", e.FirstTimestamp, e.LastTimestamp, want)
			}
		}
	})
}

// Names are unique although the clock stands still, and valid however long
// the object's name is.
func TestEventNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewEventWriter(&sink{}, "c", "", slog.Default(), EventLimits{})
		seen := map[string]bool{}
		for _, object := range []string{"web", "web", strings.Repeat("a.", 126) + "a", strings.Repeat("a", 253)} {
			name := w.name(object, time.Now())
			if seen[name] {
				t.Errorf("name %s twice", name)
			}
			seen[name] = true
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				t.Errorf("name %s: %v", name, problems)
			}
		}
	})
}

func TestEventsComeInOrderAndAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		w := NewEventWriter(s, "c", "", slog.Default(), EventLimits{PerSecond: 2})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()

		start := time.Now()
		want := []string{"a", "b", "c", "d", "e", "f"}
		for _, message := range want {
			w.Write(Event{Object: NodeReference("n"), Message: message})
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(want, s.messages()); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		for i, at := range s.at {
			if want := time.Duration(i) * time.Second / 2; at.Sub(start) != want {
				t.Errorf("event %d was sent after %s, want %s", i, at.Sub(start), want)
			}
		}
		cancel()
		<-done
	})
}

// What is queued at the end is still sent, for a short while.
func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		w := NewEventWriter(s, "c", "", slog.Default(), EventLimits{PerSecond: 2})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			w.Write(Event{Object: NodeReference("n"), Message: "m"})
		}
		w.Run(ctx)
		// One at once and four in two seconds; the other five are counted.
		if sent, dropped := len(s.messages()), w.Dropped(); sent+int(dropped) != 10 || sent < 5 || sent > 6 {
			t.Errorf("%d sent, %d dropped", sent, dropped)
		}
	})
}

func TestAFullQueueDropsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		w := NewEventWriter(s, "c", "", slog.Default(), EventLimits{Queue: 2})
		var room []bool
		for _, message := range []string{"a", "b", "c"} {
			room = append(room, w.Write(Event{Object: NodeReference("n"), Message: message}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.Run(ctx)
		if diff := cmp.Diff([]string{"a", "b"}, s.messages()); diff != "" {
			t.Errorf("messages (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]bool{true, true, false}, room); diff != "" || w.Dropped() != 1 {
			t.Errorf("dropped %d, room (-want +got):\n%s", w.Dropped(), diff)
		}
	})
}

func TestARefusedEventIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	s := &sink{err: errors.New("namespace is terminating")}
	w := NewEventWriter(s, "c", "", slog.New(slog.NewTextHandler(&log, nil)), EventLimits{})
	w.Write(Event{Object: PodReference("shop", "web-1", ""), Reason: "Evicted"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "Pod/shop/web-1") || !strings.Contains(got, "namespace is terminating") {
		t.Errorf("log: %q", got)
	}
	if w.Dropped() != 1 {
		t.Errorf("dropped %d, want 1", w.Dropped())
	}
}
