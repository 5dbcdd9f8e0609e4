package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/statuspage"
)

// World is what a command has read of the cluster. What it did not need is empty.
type World struct {
	Now      time.Time           `json:"now"`
	Page     statuspage.Page     `json:"page"`
	Verdicts statuspage.Verdicts `json:"verdicts"`
	Nodes    []corev1.Node       `json:"nodes"`
	Pods     []corev1.Pod        `json:"pods"`
	Events   []corev1.Event      `json:"events"`
	// EventsOmitted are older than those, of which there were too many.
	EventsOmitted int `json:"eventsOmitted,omitempty"`
	// Leader is nil where the Lease was not read.
	Leader *Leader `json:"leader,omitempty"`
	// Missing says what could not be read, and why.
	Missing []string `json:"missing,omitempty"`
	// Requested is what the pods on each node request, by its name.
	Requested map[string]corev1.ResourceList `json:"requested"`
}

// Kinds of subjects.
const (
	KindPod   = "pod"
	KindNode  = "node"
	KindGroup = "group"
)

// LatestEvents leaves out the oldest Events beyond so many.
func (w *World) LatestEvents(most int) {
	if more := len(w.Events) - most; more > 0 {
		slices.SortStableFunc(w.Events, func(a, b corev1.Event) int { return timeOf(&b).Compare(timeOf(&a)) })
		w.Events = slices.Clip(w.Events[:most])
		w.EventsOmitted += more
	}
}

// node finds a Node; nil where there is none of that name.
func (w *World) node(name string) *corev1.Node {
	for i := range w.Nodes {
		if w.Nodes[i].Name == name {
			return &w.Nodes[i]
		}
	}
	return nil
}

func (w *World) nodeVerdict(name string) *statuspage.Node {
	for i := range w.Verdicts.Nodes {
		if w.Verdicts.Nodes[i].Name == name {
			return &w.Verdicts.Nodes[i]
		}
	}
	return nil
}

func (w *World) groupVerdict(name string) *statuspage.Group {
	for i := range w.Verdicts.Groups {
		if w.Verdicts.Groups[i].Name == name {
			return &w.Verdicts.Groups[i]
		}
	}
	return nil
}

// podVerdict finds the class that names a pod.
func (w *World) podVerdict(key string) *statuspage.Pods {
	for i := range w.Verdicts.Pods {
		for _, name := range w.Verdicts.Pods[i].Names {
			if name == key {
				return &w.Verdicts.Pods[i]
			}
		}
	}
	return nil
}

// ref is a subject as -o name prints it.
func ref(kind, name string) string { return kind + "/" + name }

// known are parameters that name what people act on, in the order in which they are shown.
var known = []string{"pod", "other", "budgets", "blockers", "annotation", "headroom", "hook", "instance", "node", "until"}

// path is what a detail speaks of, such as "budgets=shop/api".
func path(d statuspage.Detail) (list []string) {
	for _, name := range known {
		switch value := d.Params[name].(type) {
		case string:
			list = append(list, name+"="+value)
		case []any:
			var texts []string
			for _, one := range value {
				if text, is := one.(string); is {
					texts = append(texts, text)
				}
			}
			list = append(list, name+"="+strings.Join(texts, ","))
		}
	}
	return list
}
