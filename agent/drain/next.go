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
	// Events are recorded once Node is written: they report that something changed.
	Events []Event
	// Steps are the evictions to ask for now.
	Steps []Evict
	// WatchPods means that the pods of the node must be known.
	WatchPods bool
	// WatchBudgets are the namespaces whose budgets must be watched, sorted: those
	// in which one has refused. A watch may stay open until the drain ends.
	WatchBudgets []string
	// Report is how the drain stands; nil where there is none. The report on the
	// Node follows it, once a second at most, and at once where it turns drained.
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
	// Notice holds the fields of the notice that it is about, by the annotations that the
	// Event gets; nil for none.
	Notice map[string]string
}

// Evict is a step: ask the API server to evict this pod, and none other of the
// same name.
type Evict struct {
	Namespace, Name string
	UID             types.UID
	// Maker makes the pod; see drainable.MakerOf.
	Maker string
	// Delete asks for its deletion instead, past its budgets: the last chance to
	// let it hear of its end.
	Delete bool
	// Grace in seconds, where the pod's own would outlast the deadline; nil for
	// the pod's own.
	Grace *int64
	// Overrides is the rule that would have kept the pod, had there been time.
	Overrides drainable.Rule
	// Past is what kept the pod that is deleted, in words; with Delete only.
	Past string
	// Why the pod leaves, for the Event that an override deserves.
	Why string
}

// Override is the message of the Event on the pod that its own word, or a
// budget's, deserves once it was overruled; empty where nothing was.
func (e Evict) Override() string {
	switch {
	case e.Delete:
		return fmt.Sprintf("deleted shortly before the deadline (blocked by %s): %s", e.Past, e.Why)
	case e.Overrides != "":
		return fmt.Sprintf("evicted despite %s: %s", e.Overrides, e.Why)
	}
	return ""
}

// String prints the step.
func (e Evict) String() string {
	text := "evict " + e.Namespace + "/" + e.Name
	if e.Delete {
		text = "delete " + e.Namespace + "/" + e.Name
	}
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

func taintChanges(was, want []corev1.Taint) (out []string) {
	kind, had := contract.Draining(was)
	wanted, has := contract.Draining(want)
	switch {
	case has && (!had || kind != wanted):
		out = append(out, "taint "+string(wanted))
	case had && !has:
		out = append(out, "untaint "+string(kind))
	}
	told, tells := slices.ContainsFunc(was, contract.IsKubeProxyTaint), slices.ContainsFunc(want, contract.IsKubeProxyTaint)
	if told != tells {
		out = append(out, map[bool]string{true: "tell kube-proxy", false: "take it back from kube-proxy"}[tells])
	}
	return out
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
