package main

import (
	"fmt"
	"maps"
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
# HELP windlass_drains_failed_total Drains that were seen to fail: their deadline passed with pods left, by kind.
# TYPE windlass_drains_failed_total counter
windlass_drains_failed_total{kind="asg"} 0
windlass_drains_failed_total{kind="maintenance"} 0
windlass_drains_failed_total{kind="rebalance"} 0
windlass_drains_failed_total{kind="request"} 0
windlass_drains_failed_total{kind="scale-down"} 0
windlass_drains_failed_total{kind="spot"} 0
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
windlass_drains_failed_total{kind="maintenance"} 0
windlass_drains_failed_total{kind="rebalance"} 0
windlass_drains_failed_total{kind="request"} 0
windlass_drains_failed_total{kind="scale-down"} 0
windlass_drains_failed_total{kind="spot"} 0
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// An interruption counts once for each kind that it has, and neither what people or the scaler asked
// for nor what had begun when nobody looked. A drain's time is that until its node was empty.
func TestInterruptionsCount(t *testing.T) {
	m := newMetrics()
	now := time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)
	see := func(name, request string, r contract.Report) {
		r.Answers, r.Since = []string{name}, contract.At(now)
		m.record(evaluation{snapshot: fleet.Snapshot{Now: now, Nodes: []fleet.Node{{Name: name, Annotations: map[string]string{
			contract.AnnotationDrainReport: r.String(), contract.AnnotationDrainRequest: request}}}}})
	}
	see("before", "", contract.Report{Kind: contract.KindSpot, Phase: contract.PhaseDraining})
	for range 3 {
		see("spot", "", contract.Report{Kind: contract.KindRebalance, Phase: contract.PhaseDraining})
	}
	see("spot", "", contract.Report{Kind: contract.KindSpot, Phase: contract.PhaseDraining})
	for range 2 {
		see("spot", "", contract.Report{Kind: contract.KindSpot, Phase: contract.PhaseDrained, Emptied: contract.At(now.Add(20 * time.Second))})
	}
	see("asked", "upgrade", contract.Report{Kind: contract.KindRequest, Phase: contract.PhaseDraining})
	see("asked", "upgrade", contract.Report{Kind: contract.KindASG, Phase: contract.PhaseDrained, Emptied: contract.At(now.Add(200 * time.Second))})
	see("taken", "", contract.Report{Kind: contract.KindASG, Phase: contract.PhaseDraining})
	see("told", contract.Request{ID: "i-1", Kind: contract.KindASG}.String(), contract.Report{Kind: contract.KindASG, Phase: contract.PhaseDraining})
	see("unneeded", contract.Request{ID: "i-2", Kind: contract.KindScaleDown}.String(), contract.Report{Kind: contract.KindASG, Phase: contract.PhaseDraining})
	want := `
# HELP windlass_interruptions_total Nodes that EC2 or Auto Scaling were seen to take away, or to say that they may, by kind: spot, asg, maintenance or rebalance.
# TYPE windlass_interruptions_total counter
windlass_interruptions_total{kind="asg"} 2
windlass_interruptions_total{kind="maintenance"} 0
windlass_interruptions_total{kind="rebalance"} 1
windlass_interruptions_total{kind="spot"} 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), "windlass_interruptions_total"); err != nil {
		t.Error(err)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	took := map[string]string{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			if f.GetName() == "windlass_drain_seconds" && x.GetHistogram().GetSampleCount() > 0 {
				took[x.GetLabel()[0].GetValue()] = fmt.Sprintf("%d of %g s", x.GetHistogram().GetSampleCount(), x.GetHistogram().GetSampleSum())
			}
		}
	}
	if want := map[string]string{"spot": "1 of 20 s", "asg": "1 of 200 s"}; !maps.Equal(took, want) {
		t.Errorf("drains that ended: %v, want %v", took, want)
	}
}
