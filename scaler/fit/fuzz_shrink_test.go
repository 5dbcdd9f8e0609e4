package fit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// mismatch is what fit and kube-scheduler disagree about in a random world.
type mismatch struct {
	what    string
	steps   []string
	world   world
	omitted []string
}

func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// omit leaves pods and nodes out, and with a node the pods on it.
func (w *world) omit(names []string) {
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n *corev1.Node) bool { return slices.Contains(names, n.Name) })
	w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool {
		return slices.Contains(names, p.Name) || slices.Contains(names, p.Spec.NodeName)
	})
}

// shrink leaves out of a world whatever can be left out so that there still is a mismatch,
// perhaps another one, and describes that. What fit keeps of other worlds is left out first,
// if it has no part in it.
func (c *comparison) shrink(t *testing.T, seed uint64, found *mismatch) string {
	fresh := newComparison(c.minor, c.oracle)
	again := fresh.run(t, seed, found.omitted)
	if again == nil {
		return found.describe(c.minor, seed) + "\n  not seen by rules that remember no other world: begin some seeds earlier"
	}
	for smaller := true; smaller; {
		smaller = false
		for _, name := range again.world.names() {
			fresh.forget()
			if less := fresh.run(t, seed, append(slices.Clone(again.omitted), name)); less != nil {
				again, smaller = less, true
				break
			}
		}
	}
	return again.describe(c.minor, seed)
}

func (w world) names() []string {
	var names []string
	for _, n := range w.Nodes {
		names = append(names, n.Name)
	}
	for _, p := range w.Pods {
		names = append(names, p.Name)
	}
	return names
}

func (m *mismatch) describe(minor int, seed uint64) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n  after: %s\n", m.what, strings.Join(m.steps, "; "))
	for _, n := range m.world.Nodes {
		fmt.Fprintf(&text, "  %s: labels %v, taints %v, unschedulable %t, allocatable %s\n", n.Name, n.Labels, n.Spec.Taints, n.Spec.Unschedulable, short(n.Status.Allocatable))
	}
	for _, p := range m.world.Pods {
		fmt.Fprintf(&text, "  %s/%s: labels %v, leaving %t, %s\n", p.Namespace, p.Name, p.Labels, p.DeletionTimestamp != nil, short(p.Spec))
	}
	for _, shape := range m.world.shapes {
		fmt.Fprintf(&text, "  shape: zone %s, labels %v, taints %v, allocatable %s\n", shape.Zone, shape.Labels, shape.Taints, short(shape.Allocatable))
	}
	fmt.Fprintf(&text, "  again: go test ./scaler/fit -run TestAgainstScheduler -args -minor %d -seed %d -features %d -pairs 1 -omit %s",
		minor, seed, *features, strings.Join(m.omitted, ","))
	return text.String()
}

// short prints a value as JSON.
func short(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
