package contract

import (
	"encoding/json"
	"slices"
)

// Facts is the value of AnnotationEventFacts: what the message of an Event about a group or a
// scale-down says in words.
type Facts struct {
	Group string `json:"group"`
	Zone  string `json:"zone,omitempty"`
	// From and To are the group's sizes before and after, where it changes.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`
	// Pods counts the pending pods that new nodes are for. For names the first of them as
	// namespace/name, and Namespaces those of all.
	Pods       int      `json:"pods,omitempty"`
	For        []string `json:"for,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// ID is that of the scale-down, Instance the one that goes.
	ID       string `json:"id,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Cause is why a launch has failed, Failures how often in a row, Until when it is tried again.
	Cause    string `json:"cause,omitempty"`
	Failures int    `json:"failures,omitempty"`
	Until    Time   `json:"until,omitzero"`
}

// mostFor is how many pods Facts name, and mostNamespaces how many namespaces.
const mostFor, mostNamespaces = 5, 20

// ParseFacts reads the annotation's value. What is longer than any that we write is an error.
func ParseFacts(value string) (Facts, error) {
	if err := tooLong(AnnotationEventFacts, len(value), mostReport, "bytes"); err != nil {
		return Facts{}, err
	}
	var f Facts
	if err := json.Unmarshal([]byte(value), &f); err != nil {
		return Facts{}, notJSON(AnnotationEventFacts, value, err)
	}
	return f, nil
}

// String prints the annotation's value.
func (f Facts) String() string {
	f.Cause = Shorten(f.Cause, MostText)
	return encode(f)
}

// Waiting adds pending pods, given as namespace and name.
func (f Facts) Waiting(namespace, name string) Facts {
	f.Pods++
	if len(f.For) < mostFor {
		f.For = append(slices.Clip(f.For), namespace+"/"+name)
	}
	if len(f.Namespaces) < mostNamespaces && !slices.Contains(f.Namespaces, namespace) {
		f.Namespaces = append(slices.Clip(f.Namespaces), namespace)
	}
	return f
}
