package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// Story is what happened, the oldest first.
type Story struct {
	AsOf    AsOf    `json:"asOf,omitzero"`
	Entries []Entry `json:"entries"`
	// Omitted counts Events that are older than these, and for which there was no room.
	Omitted int `json:"omitted,omitempty"`
}

// Entry is one thing that happened.
type Entry struct {
	At time.Time `json:"at"`
	// Event is its reason, and Object what it is of, such as node/a.
	Event   string `json:"event"`
	Object  string `json:"object"`
	Warning bool   `json:"warning,omitempty"`
	// By is who asked for it, as far as that is written anywhere.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
	// Facts are those of Events about groups and scale-downs.
	Facts *contract.Facts `json:"facts,omitempty"`
}

// NewStory puts the Events of Windlass since a moment in order, with drains of which an Event
// does not exist any more. Without all it has what was done, and not why something was not.
func NewStory(w World, since time.Time, all bool) Story { return newStory(w, drains(w), since, all) }

func newStory(w World, drains []Drain, since time.Time, all bool) Story {
	requests := map[string]contract.Request{}
	for i := range w.Nodes {
		if r, err := contract.ParseRequest(w.Nodes[i].Annotations[contract.AnnotationDrainRequest]); err == nil {
			requests[w.Nodes[i].Name] = r
		}
	}
	s := Story{AsOf: w.AsOf(), Entries: []Entry{}, Omitted: w.EventsOmitted}
	told := map[string]bool{}
	for i := range w.Events {
		e := &w.Events[i]
		if e.InvolvedObject.Kind == "Node" && e.Reason == contract.EventDrainStarted {
			told[e.InvolvedObject.Name] = true
		}
		if Tells(e, since, all) {
			s.Entries = append(s.Entries, entryOf(e, requests[e.InvolvedObject.Name]))
		}
	}
	for _, d := range drains {
		if told[d.Node] || d.Since.IsZero() || d.Since.Before(since) {
			continue
		}
		s.Entries = append(s.Entries, Entry{At: d.Since, Event: string(d.Phase), Object: ref(KindNode, d.Node), By: d.By, Text: drainText(d)})
	}
	slices.SortStableFunc(s.Entries, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Object, b.Object), slices.Index(did, a.Event)-slices.Index(did, b.Event), cmp.Compare(a.Event, b.Event))
	})
	return s
}

// Tells reports whether an Event belongs into a story: without all only where something was done,
// and not only found.
func Tells(e *corev1.Event, since time.Time, all bool) bool {
	return !timeOf(e).Before(since) && (all || slices.Contains(did, e.Reason))
}

// EntryOf is one Event, told by itself. Annotations are those of its Node.
func EntryOf(e *corev1.Event, annotations map[string]string) Entry {
	request, err := contract.ParseRequest(annotations[contract.AnnotationDrainRequest])
	if err != nil {
		request = contract.Request{} // of which the agent speaks in an Event of its own
	}
	return entryOf(e, request)
}

// Asks reports whether the Node of an Event says who asked for what it tells.
func Asks(e *corev1.Event) bool {
	return e.InvolvedObject.Kind == "Node" && e.Annotations[contract.AnnotationEventID] != ""
}

func entryOf(e *corev1.Event, request contract.Request) Entry {
	entry := Entry{At: timeOf(e), Event: e.Reason, Object: objectOf(e), Warning: e.Type == corev1.EventTypeWarning, Text: strings.TrimSpace(e.Message)}
	if value, has := e.Annotations[contract.AnnotationEventFacts]; has {
		if facts, err := contract.ParseFacts(value); err == nil {
			entry.Facts = &facts
			if e.InvolvedObject.Kind == "ConfigMap" && facts.Group != "" {
				entry.Object = ref(KindGroup, facts.Group)
			}
		}
	}
	entry.By = askedBy(e, entry.Facts, request)
	return entry
}

// timeOf is when an Event happened last. Its writers use different fields.
func timeOf(e *corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return t.UTC()
		}
	}
	return e.CreationTimestamp.UTC()
}

func objectOf(e *corev1.Event) string {
	kind := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Kind == "Pod" {
		return ref(kind, e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name)
	}
	return ref(kind, e.InvolvedObject.Name)
}

// askedBy is who caused it: pending pods, a notice by its kind, or who wrote the request.
func askedBy(e *corev1.Event, facts *contract.Facts, request contract.Request) string {
	id, kind := e.Annotations[contract.AnnotationEventID], contract.Kind(e.Annotations[contract.AnnotationEventKind])
	switch {
	case facts != nil && facts.Pods == 1:
		return "pod " + strings.Join(facts.For, ", ")
	case facts != nil && facts.Pods > 1:
		return fmt.Sprintf("%d pods, such as %s", facts.Pods, strings.Join(facts.For[:min(1, len(facts.For))], ""))
	case id != "" && id == request.ID:
		return cmp.Or(request.By, string(request.Kind))
	case kind != "":
		return string(kind)
	}
	return ""
}

func drainText(d Drain) string {
	text := cmp.Or(d.Reason, "drain")
	if !d.Uncounted {
		text += fmt.Sprintf(", %d left", d.Left)
	}
	if len(d.BlockedBy) > 0 {
		text += ", blocked by " + strings.Join(d.BlockedBy, ", ")
	}
	return text
}

// did are Events of something that was done, and not only seen or found, in the order in which they
// follow each other within a second: Events have no finer time.
var did = []string{
	contract.EventScaledUpGroup, contract.EventFailedToScaleUpGroup, contract.EventScaleUpFailed, contract.EventScaleUpTimedOut, contract.EventDeleteUnregistered,
	contract.EventLoweredGroup, contract.EventNoticed, contract.EventScaleDown, contract.EventDrainStarted, contract.EventDrainBlocked, contract.EventDrained, contract.EventDrainFailed,
	contract.EventScaleDownCancelled, contract.EventDrainUndone, contract.EventUncordoned, contract.EventTerminated, contract.EventHookDone, contract.EventActionFailed,
	contract.EventOutOfService, contract.EventInService, contract.EventSuspendedProcess,
}

// Names are the objects, each once.
func (s Story) Names() []string {
	var names []string
	named := map[string]bool{}
	for _, e := range s.Entries {
		if !named[e.Object] {
			named[e.Object] = true
			names = append(names, e.Object)
		}
	}
	return names
}
