package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
)

// Event tells people what happened to an object, on the object.
type Event struct {
	// Object is what it happened to; see PodReference, NodeReference and
	// ConfigMapReference.
	Object corev1.ObjectReference
	// Warning marks what somebody should look at.
	Warning bool
	// Reason is one CamelCase word out of package contract.
	Reason string
	// Message is a sentence. What is longer than 1024 bytes, the most that
	// the API takes, is cut.
	Message string
	// Annotations are for programs that read Events; nil for none.
	Annotations map[string]string
	// At is when it happened; zero for when it is written.
	At time.Time
}

// PodReference says which pod an Event is about.
func PodReference(namespace, name, uid string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(uid)}
}

// NodeReference says which Node an Event is about. It has the name in the
// place of the UID, as the kubelet's Events have it: kubectl describe looks
// for both, and a name can be written without having read the Node.
func NodeReference(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// ConfigMapReference says which ConfigMap an Event is about.
func ConfigMapReference(namespace, name string, uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name, UID: uid}
}

// EventCreator sends Events. A typed core/v1 EventInterface of all namespaces
// is one.
type EventCreator interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
}

// EventLimits bound what an EventWriter asks of the API server.
type EventLimits struct {
	// PerSecond is how many Events are sent a second at the most, evenly; 20 if 0.
	PerSecond float64
	// Queue is how many wait at most; 1000 if 0. What comes when the queue is
	// full is dropped and counted, newest first: the caller asks in the order
	// of importance.
	Queue int
}

const (
	defaultEventsPerSecond = 20
	defaultEventQueue      = 1000
	// eventFlush is how long Run goes on sending after it was told to stop, so
	// that the last words of a program are heard.
	eventFlush = 2 * time.Second
	// eventTimeout is how long one call may take.
	eventTimeout = 3 * time.Second
	// The most that the API takes of a message and of a name.
	eventMessageLimit = 1024
	eventNameLimit    = 253
)

// EventWriter writes Events in order and at a bounded rate, without ever
// making the caller wait. It does not merge what is alike: its callers write
// an Event when something changed, and only then.
type EventWriter struct {
	events  EventCreator
	source  corev1.EventSource
	logger  *slog.Logger
	limiter *rate.Limiter
	queue   chan *corev1.Event
	dropped atomic.Int64

	mu   sync.Mutex
	last int64 // the number in the last Event's name
}

// NewEventWriter returns a writer for a program (the component) on a host
// (the node; may be empty). Nothing is sent until Run.
func NewEventWriter(events EventCreator, component, host string, logger *slog.Logger, limits EventLimits) *EventWriter {
	perSecond := cmp.Or(limits.PerSecond, defaultEventsPerSecond)
	return &EventWriter{
		events:  events,
		source:  corev1.EventSource{Component: component, Host: host},
		logger:  logger,
		limiter: rate.NewLimiter(rate.Limit(perSecond), 1),
		queue:   make(chan *corev1.Event, cmp.Or(limits.Queue, defaultEventQueue)),
	}
}

// Write queues an Event. It reports whether there was room.
func (w *EventWriter) Write(event Event) bool {
	select {
	case w.queue <- w.object(event, cmp.Or(event.At, time.Now())):
		return true
	default:
		w.dropped.Add(1)
		return false
	}
}

// Dropped counts the Events that found no room, or that the server refused.
func (w *EventWriter) Dropped() int64 { return w.dropped.Load() }

// Run sends what is queued until ctx ends, and for about two seconds more
// what is queued then. A refused Event is logged and dropped: an Event is
// news, and not worth a second try.
func (w *EventWriter) Run(ctx context.Context) {
	var left *corev1.Event // taken from the queue, but not sent
	for left == nil {
		select {
		case <-ctx.Done():
			w.flush(ctx, nil)
			return
		case event := <-w.queue:
			if !w.send(ctx, event) {
				left = event
			}
		}
	}
	w.flush(ctx, left)
}

// flush sends first, if there is one, and what is still queued.
func (w *EventWriter) flush(ctx context.Context, first *corev1.Event) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventFlush)
	defer cancel()
	if first != nil && !w.send(ctx, first) {
		w.dropped.Add(1)
		return
	}
	for {
		select {
		default:
			return
		case event := <-w.queue:
			if !w.send(ctx, event) {
				w.dropped.Add(1 + int64(len(w.queue)))
				return
			}
		}
	}
}

// send sends an Event when its turn comes. It returns false if ctx ended
// before that. A call once begun is not cut short by the end of ctx, because
// nobody could tell whether it was heard.
func (w *EventWriter) send(ctx context.Context, event *corev1.Event) bool {
	if err := w.limiter.Wait(ctx); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	if _, err := w.events.CreateWithEventNamespaceWithContext(ctx, event); err != nil {
		w.dropped.Add(1)
		w.logger.Warn("event not written", "object", describe(event.InvolvedObject), "reason", event.Reason, "err", err)
	}
	return true
}

// object makes the API object of an Event. Events of objects without a
// namespace live in "default", where kubectl looks for them.
func (w *EventWriter) object(event Event, now time.Time) *corev1.Event {
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	namespace := cmp.Or(event.Object.Namespace, metav1.NamespaceDefault)
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: w.name(event.Object.Name, now), Annotations: event.Annotations},
		InvolvedObject:      event.Object,
		Type:                kind,
		Reason:              event.Reason,
		Message:             contract.Shorten(event.Message, eventMessageLimit),
		Source:              w.source,
		ReportingController: w.source.Component,
		ReportingInstance:   w.source.Host,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Count:               1,
	}
}

// name is unique among the Events of this process: the object's name and a
// number that grows with the time, and by one where the time stands still.
func (w *EventWriter) name(object string, now time.Time) string {
	w.mu.Lock()
	w.last = max(w.last+1, now.UnixNano())
	suffix := fmt.Sprintf(".%x", w.last)
	w.mu.Unlock()
	if room := eventNameLimit - len(suffix); len(object) > room {
		object = strings.TrimRight(object[:room], ".-")
	}
	return object + suffix
}

func describe(object corev1.ObjectReference) string {
	if object.Namespace == "" {
		return object.Kind + "/" + object.Name
	}
	return object.Kind + "/" + object.Namespace + "/" + object.Name
}
