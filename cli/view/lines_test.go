package view

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// TestStages: of what stands on a node, what people have to see wins; every stage is reached.
func TestStages(t *testing.T) {
	report := func(phase contract.Phase) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations[contract.AnnotationDrainReport] = contract.Report{Phase: phase, Kind: contract.KindSpot, Left: 2}.String()
		}
	}
	with := func(key string) func(*corev1.Node) { return func(n *corev1.Node) { n.Annotations[key] = "upgrade" } }
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	lost := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	unneeded := func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, contract.UnneededTaint(noon)) }
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, contract.DrainingTaint(contract.KindSpot))
	}
	reached := map[Stage]bool{}
	for _, c := range []struct {
		want Stage
		are  []func(*corev1.Node)
	}{
		{Ready, nil},
		{Unneeded, []func(*corev1.Node){unneeded}},
		{Held, []func(*corev1.Node){unneeded, with(contract.AnnotationHold)}},
		{Held, []func(*corev1.Node){func(n *corev1.Node) { n.Annotations[contract.AnnotationScaleDownDisabled] = "true" }}},
		{Ready, []func(*corev1.Node){func(n *corev1.Node) { n.Annotations[contract.AnnotationHold] = "false" }}},
		{Cordoned, []func(*corev1.Node){cordon, with(contract.AnnotationHold)}},
		{NotReady, []func(*corev1.Node){cordon, lost}},
		{Asked, []func(*corev1.Node){with(contract.AnnotationDrainRequest), lost}},
		{Asked, []func(*corev1.Node){tainted, cordon}},
		{Waiting, []func(*corev1.Node){with(contract.AnnotationDrainRequest), report(contract.PhaseWaiting)}},
		{Draining, []func(*corev1.Node){cordon, report(contract.PhaseDraining)}},
		{Blocked, []func(*corev1.Node){cordon, report(contract.PhaseBlocked)}},
		{Drained, []func(*corev1.Node){cordon, report(contract.PhaseDrained)}},
		{Failed, []func(*corev1.Node){cordon, report(contract.PhaseFailed)}},
		{Terminating, []func(*corev1.Node){with(contract.AnnotationTerminating)}},
		{Terminating, []func(*corev1.Node){lost, report(contract.PhaseDrained), with(contract.AnnotationTerminating)}},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{}}, Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}}
		for _, is := range c.are {
			is(n)
		}
		line := NewNodeLine(n, nil, Load{CPU: 500, Memory: 1, Pods: 3})
		if line.Stage != c.want || line.CPU != 0.25 || line.Memory != 0 || line.Pods != 3 {
			t.Errorf("want %s, got %+v", c.want, line)
		}
		if _, draining := drainOf(n, ""); draining != (line.Drain.Node != "") {
			t.Errorf("a drain: %v, and the line of a node that is %s has %+v", draining, c.want, line.Drain)
		}
		reached[line.Stage] = true
	}
	for _, s := range Stages {
		if !reached[s] {
			t.Errorf("no node is %s", s)
		}
	}
}

// TestPendingLines: every pod that waits is counted once, and none that does not wait is named.
func TestPendingLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v statuspage.Verdicts
		var pods []string
		for class := range rapid.IntRange(0, 4).Draw(t, "classes") {
			var names []string
			for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
				name := fmt.Sprintf("shop/%d-%d", class, i)
				if rapid.Bool().Draw(t, "named") {
					names = append(names, name)
				}
				if rapid.Bool().Draw(t, "waits") {
					pods = append(pods, name)
				}
			}
			v.Pods = append(v.Pods, statuspage.Pods{Count: len(names), Names: names, Verdict: statuspage.Verdict{Reason: statuspage.Reason(fmt.Sprint(class))}})
		}
		sum := 0
		for _, line := range NewPendingLines(v, pods) {
			sum += line.Count
			if line.Count < 1 || !slices.Contains(pods, line.Example) {
				t.Fatalf("%d pods such as %q, and those wait: %q", line.Count, line.Example, pods)
			}
		}
		if sum != len(pods) {
			t.Fatalf("%d of %d pods are counted", sum, len(pods))
		}
	})

	// Verdicts that name but the first of many count the others.
	many := statuspage.Verdicts{Pods: statuspage.List[statuspage.Pods]{{Count: 12, Names: []string{"a/1", "a/2"}}}}
	pods := []string{}
	for i := range 12 {
		pods = append(pods, fmt.Sprintf("a/%d", i+1))
	}
	if lines := NewPendingLines(many, pods); len(lines) != 1 || lines[0].Count != 12 || lines[0].Example != "a/1" {
		t.Errorf("%+v", lines)
	}
}
