package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Next is what to do now. Everything in it may be done in any order, and twice.
type Next struct {
	// Node is what the Node shall be, written in one patch on condition that it
	// is still the one of the View; nil where nothing is to be written.
	Node *fleet.Node
	// Events are told once Node is written: they say that something changed.
	Events []Event
	// Steps are the evictions to ask for now.
	Steps []Evict
	// WatchPods says that the pods of the node must be known.
	WatchPods bool
	// WatchBudgets lists the namespaces whose budgets must be watched.
	WatchBudgets []string
	// Report is how the drain stands; nil where there is none. The report on the
	// Node follows it, at most once a second.
	Report *contract.Report
	// Wake is when to decide again if nothing happens; zero for never.
	Wake time.Time
}

// Event is one that is written about the Node.
type Event struct {
	Warning bool
	// Reason is one of package contract.
	Reason  string
	Message string
}

// Evict is a step: ask the API server to evict this pod, and none other of the
// same name.
type Evict struct {
	Namespace, Name string
	UID             types.UID
	// Grace in seconds, where the pod's own would outlast the deadline; nil for
	// the pod's own.
	Grace *int64
	// Delete it past its budget, with that grace.
	Delete bool
	// Overrides is the rule that would have kept the pod, had there been time.
	Overrides drainable.Rule
	// Why the pod leaves, for the Event that an override deserves.
	Why string
}

// String prints the step.
func (e Evict) String() string {
	text := "evict " + e.Namespace + "/" + e.Name
	if e.Grace != nil {
		text += fmt.Sprintf(" grace=%d", *e.Grace)
	}
	if e.Overrides != "" {
		text += " overrides=" + string(e.Overrides)
	}
	return text
}

// Changes says in words what leads from one state of a Node to another: what a
// write is about, in logs and golden files.
func Changes(was, want fleet.Node) []string {
	var out []string
	if was.Unschedulable != want.Unschedulable {
		out = append(out, map[bool]string{true: "cordon", false: "uncordon"}[want.Unschedulable])
	}
	out = append(out, taintChanges(was.Taints, want.Taints)...)
	out = append(out, keyChanges("label", was.Labels, want.Labels)...)
	return append(out, keyChanges("annotation", was.Annotations, want.Annotations)...)
}

func taintChanges(was, want []corev1.Taint) []string {
	kind, had := contract.Draining(was)
	wanted, has := contract.Draining(want)
	switch {
	case has && (!had || kind != wanted):
		return []string{"taint " + string(wanted)}
	case had && !has:
		return []string{"untaint " + string(kind)}
	}
	return nil
}

func keyChanges(what string, was, want map[string]string) []string {
	var out []string
	for key, value := range want {
		if old, ok := was[key]; !ok || old != value {
			out = append(out, fmt.Sprintf("%s %s=%s", what, short(key), value))
		}
	}
	for key := range was {
		if _, ok := want[key]; !ok {
			out = append(out, fmt.Sprintf("no %s %s", what, short(key)))
		}
	}
	slices.Sort(out)
	return out
}

// short leaves out the prefix of a key.
func short(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }
