package happening

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// World is what is observed at a time: all of it, not what has changed.
type World struct {
	Now time.Time
	// Nodes, by name.
	Nodes map[string]Node
	// Events that Windlass wrote, and that the API server still has, in any order.
	Events []Event
	// Page is nil where there is none.
	Page *statuspage.Page
	// Waiting has, by group, the pods that would fit it were it not at its maximum. Without it all
	// pods that wait for some group count for each: with one group at its maximum that is the same.
	Waiting map[string]Waiting
}

// Waiting are pending pods, of which some have names.
type Waiting struct {
	Pods int
	For  []string
}

// WaitingFor finds the pods that wait for each group that is at its maximum.
func WaitingFor(v statuspage.Verdicts) map[string]Waiting {
	all := map[string]Waiting{}
	for _, class := range v.Pods {
		if class.Reason != podGroupsUnavailable {
			continue
		}
		for _, d := range class.Details {
			group, of := d.Params["group"].(string)
			if _, full := d.Params["max"]; of && full {
				w := all[group]
				all[group] = Waiting{w.Pods + class.Count, union(w.For, class.Names)}
			}
		}
	}
	return all
}

// SeveralAtMax reports whether the page alone does not tell for which group pods wait.
func SeveralAtMax(page statuspage.Page) bool {
	full := 0
	for _, g := range page.Groups {
		if g.Reason == groupAtMax {
			full++
		}
	}
	return full > 1
}

// Node is what of a Node matters here.
type Node struct {
	Name string
	// Request and Report are nil where there is none that can be read.
	Request *contract.Request
	Report  *contract.Report
	Notices contract.NoticedList
	// Served are the notices for which nothing is done any more.
	Served contract.ServedList
	// Terminating is the id for which the instance is being terminated.
	Terminating string
}

// NodeOf reads a Node. What cannot be read there counts as absent: its writer says so in an
// Event.
func NodeOf(n *corev1.Node) Node {
	node := Node{Name: n.Name, Terminating: n.Annotations[contract.AnnotationTerminating]}
	if value, ok := n.Annotations[contract.AnnotationDrainRequest]; ok {
		if r, err := contract.ParseRequest(value); err == nil {
			node.Request = &r
		}
	}
	if value, ok := n.Annotations[contract.AnnotationDrainReport]; ok {
		if r, err := contract.ParseReport(value); err == nil {
			node.Report = &r
		}
	}
	if list, err := contract.ParseNoticed(n.Annotations[contract.AnnotationNotices]); err == nil {
		node.Notices = list
	}
	if list, err := contract.ParseServed(n.Annotations[contract.AnnotationServed]); err == nil {
		node.Served = list
	}
	return node
}

// Event is one that Windlass wrote.
type Event struct {
	UID    string
	Writer string    // the program
	At     time.Time // when the API server took it
	Reason string
	Kind   string // of the object
	Object string // its name
	Text   string
	Facts  contract.Facts
	// Notice is what the agent's Events say of the notice.
	Notice contract.Noticed
	Source string
	// Instance is that of the node.
	Instance string
}

// ofAgents are the reasons of agents' Events. Who has the token of one may write an Event of another reason in
// its name, and be heard about groups so.
var ofAgents = []string{
	contract.EventNoticed, contract.EventDrainWaiting, contract.EventDrainStarted, contract.EventDrainBlocked, contract.EventDrained, contract.EventDrainFailed,
	contract.EventDrainUndone, contract.EventUncordoned, contract.EventPodOverdue, contract.EventEvictionForced, contract.EventBadRequest, contract.EventNotConfined,
	contract.EventMetadataUnread,
}

// EventOf reads an Event. ok is false where it is not believed to be of Windlass.
func EventOf(e *corev1.Event, namespace string) (Event, bool) {
	if !contract.Believed(e, namespace) || e.Source.Component == contract.AppAgent && !slices.Contains(ofAgents, e.Reason) {
		return Event{}, false
	}
	event := Event{
		UID: string(e.UID), Writer: e.Source.Component, At: e.CreationTimestamp.UTC(), Reason: e.Reason,
		Kind: e.InvolvedObject.Kind, Object: name(e.InvolvedObject.Name), Text: e.Message,
		Source: name(e.Annotations[contract.AnnotationEventSource]), Instance: name(e.Annotations[contract.AnnotationEventInstance]),
		Notice: contract.Noticed{ID: contract.Shorten(e.Annotations[contract.AnnotationEventID], mostID)},
	}
	if kind := e.Annotations[contract.AnnotationEventKind]; kind != "" {
		event.Notice.Kind = known(contract.Kind(kind))
	}
	if value, ok := e.Annotations[contract.AnnotationEventFacts]; ok && event.Writer != contract.AppAgent {
		if facts, err := contract.ParseFacts(value); err == nil {
			facts.Group, facts.Zone, facts.ID = name(facts.Group), name(facts.Zone), contract.Shorten(facts.ID, mostID)
			facts.For, facts.Namespaces = few(facts.For), few(facts.Namespaces)
			event.Facts = facts
		}
	}
	if at, err := time.Parse(time.RFC3339, e.Annotations[contract.AnnotationEventDeadline]); err == nil && contract.IsDate(at) {
		event.Notice.Deadline = contract.At(at)
	}
	return event, true
}
