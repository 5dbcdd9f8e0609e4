package main

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
)

// What agents report of their drains is shown by kind, whatever stands on the Nodes, and so
// is what the scaler drains in an agent's place. A drain counts as failed once.
func TestDrainMetrics(t *testing.T) {
	m := newMetrics()
	now := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	node := func(name string, r contract.Report) fleet.Node {
		r.Answers = []string{name}
		return fleet.Node{Name: name, ProviderID: "aws:///a/i-" + name, Annotations: map[string]string{contract.AnnotationDrainReport: r.String()}}
	}
	in := func(d time.Duration) contract.Time { return contract.At(now.Add(d)) }
	failing := contract.Report{Kind: contract.KindASG, Phase: contract.PhaseBlocked, Left: 2, Deadline: in(time.Second)}
	failed := failing
	failed.Phase = contract.PhaseFailed
	snapshot := fleet.Snapshot{
		Now: now,
		Nodes: []fleet.Node{
			node("a", contract.Report{Kind: contract.KindSpot, Phase: contract.PhaseDraining, Left: 3, Deadline: in(90 * time.Second)}),
			node("b", contract.Report{Kind: contract.KindSpot, Phase: contract.PhaseDraining, Left: 4, Deadline: in(30 * time.Second)}),
			node("c", contract.Report{Kind: contract.KindSpot, Phase: contract.PhaseDrained, Deadline: in(-time.Minute)}),
			node("d", contract.Report{Kind: "what is this", Phase: contract.PhaseDraining, Left: -7}),
			node("e", failing),
			node("long ago", contract.Report{Kind: contract.KindMaintenance, Phase: contract.PhaseFailed, Left: 1}),
			{Name: "alone", Taints: []corev1.Taint{contract.DrainingTaint(contract.KindASG)}},
			{Name: "serves"},
			{Name: "garbled", Annotations: map[string]string{contract.AnnotationDrainReport: "{"}},
		},
		Pods: []*fleet.Pod{{Node: "alone"}, {Node: "alone"}, {Node: "serves"}},
	}
	lone := []action.Drain{{Node: action.NodeRef{Name: "alone"}, Phase: contract.PhaseDraining}}
	m.record(evaluation{snapshot: snapshot, plan: plan.Plan{Drains: lone}})
	want := `
# HELP windlass_drain_deadline_seconds Time to the earliest deadline of a drain that has not ended, by kind; below 0 once it has passed.
# TYPE windlass_drain_deadline_seconds gauge
windlass_drain_deadline_seconds{kind="asg"} 1
windlass_drain_deadline_seconds{kind="spot"} 30
# HELP windlass_drain_pods_left Pods that have still to leave nodes that drain, by kind.
# TYPE windlass_drain_pods_left gauge
windlass_drain_pods_left{kind="asg"} 4
windlass_drain_pods_left{kind="maintenance"} 1
windlass_drain_pods_left{kind="spot"} 7
windlass_drain_pods_left{kind="unknown"} 0
# HELP windlass_draining_nodes Nodes with a drain, by kind and phase: Waiting, Draining, Blocked, Drained or Failed.
# TYPE windlass_draining_nodes gauge
windlass_draining_nodes{kind="asg",phase="Blocked"} 1
windlass_draining_nodes{kind="asg",phase="Draining"} 1
windlass_draining_nodes{kind="maintenance",phase="Failed"} 1
windlass_draining_nodes{kind="spot",phase="Drained"} 1
windlass_draining_nodes{kind="spot",phase="Draining"} 2
windlass_draining_nodes{kind="unknown",phase="Draining"} 1
`
	names := []string{"windlass_draining_nodes", "windlass_drain_pods_left", "windlass_drain_deadline_seconds", "windlass_drains_failed_total"}
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	snapshot.Nodes = []fleet.Node{node("e", failed)}
	for range 3 {
		snapshot.Now = snapshot.Now.Add(2 * time.Second)
		m.record(evaluation{snapshot: snapshot})
	}
	want = `
# HELP windlass_drain_deadline_seconds Time to the earliest deadline of a drain that has not ended, by kind; below 0 once it has passed.
# TYPE windlass_drain_deadline_seconds gauge
windlass_drain_deadline_seconds{kind="asg"} -5
# HELP windlass_drain_pods_left Pods that have still to leave nodes that drain, by kind.
# TYPE windlass_drain_pods_left gauge
windlass_drain_pods_left{kind="asg"} 2
# HELP windlass_draining_nodes Nodes with a drain, by kind and phase: Waiting, Draining, Blocked, Drained or Failed.
# TYPE windlass_draining_nodes gauge
windlass_draining_nodes{kind="asg",phase="Failed"} 1
# HELP windlass_drains_failed_total Drains that were seen to fail: their deadline passed with pods left, by kind.
# TYPE windlass_drains_failed_total counter
windlass_drains_failed_total{kind="asg"} 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}
