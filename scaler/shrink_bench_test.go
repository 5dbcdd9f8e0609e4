package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// BenchmarkScaleDownIdle: the cost of an evaluation at 5,000 nodes with 150,000 pods of which
// at least half of the nodes are unneeded by the threshold, whose clocks run, where nothing has
// changed; see BenchmarkIdleEvaluation.
func BenchmarkScaleDownIdle(b *testing.B) {
	const nodes, podsPerNode = 5_000, 30
	snapshot, version := halfEmpty(nodes, podsPerNode), uint64(1)
	decided, marked, state := 0, 0, fleet.State{}
	planner, byThreshold := plan.NewPlanner(), policy.DefaultPolicy()
	byThreshold.Consolidate, byThreshold.UnneededTime = policy.ConsolidateUnneeded, 24*time.Hour
	l := &loop{
		observe: func(now time.Time) (fleet.Snapshot, uint64, error) {
			s := snapshot
			s.Now, s.State = now, state
			return s, version, nil
		},
		decide: func(s fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
			decided++
			return planner.Begin(s, byThreshold)
		},
		remember: func(_ context.Context, s fleet.State) error { state = s; return nil },
		awaits:   func(bool) {},
		paused:   func(action.Action) (act.Result, bool) { return act.Result{}, false },
		act: func(_ context.Context, actions []action.Action) []act.Result {
			marks := map[string]time.Time{}
			for _, a := range actions {
				mark, ok := a.(action.Mark)
				if !ok {
					b.Fatalf("%s: want nothing but marks", a)
				}
				marks[mark.Node.Name] = mark.Since
			}
			for i := range snapshot.Nodes {
				if since, ok := marks[snapshot.Nodes[i].Name]; ok {
					snapshot.Nodes[i].Taints = []corev1.Taint{contract.UnneededTaint(since)}
				}
			}
			marked, version = marked+len(marks), version+uint64(len(marks))
			return nil
		},
		reread: func(context.Context, []act.Result) {},
		tell:   func(evaluation) {},
		policy: byThreshold,
	}
	for looks := 0; l.last == nil || !fleet.Equal(l.last.state, state); looks++ {
		if looks == 10 {
			b.Fatal("the cluster does not come to rest")
		}
		if _, err := l.turn(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	before := decided
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.turn(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if decided != before {
		b.Errorf("decided %d times although nothing changed", decided-before)
	}
	if marked < nodes/2 {
		b.Errorf("%d nodes are marked, want at least %d", marked, nodes/2)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Millisecond), "ms")
	b.ReportMetric(1, "target-ms")
}

// halfEmpty is a group of equal nodes whose pods request two fifths of each.
func halfEmpty(nodes, podsPerNode int) fleet.Snapshot {
	born := time.Now().Add(-time.Hour)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("15"), corev1.ResourceMemory: resource.MustParse("60Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
	}}}}}
	owner := &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app", UID: "app"}
	g := fleet.Group{
		Name: "web", Max: nodes, Desired: nodes, Zones: []string{"a"},
		NodeTemplates: []fleet.NodeTemplate{{Zone: "a", InstanceType: "m5.4xlarge", Capacity: room, Allocatable: room}},
	}
	s := fleet.Snapshot{Namespaces: map[string]map[string]string{metav1.NamespaceDefault: nil}}
	for i := range nodes {
		name, id := fmt.Sprintf("node-%04d", i), fmt.Sprintf("i-%017d", i)
		g.Instances = append(g.Instances, fleet.Instance{ID: id, Zone: "a", Type: "m5.4xlarge", State: fleet.InService})
		s.Nodes = append(s.Nodes, fleet.Node{
			Name: name, UID: types.UID(name), ProviderID: "aws:///a/" + id, Created: born, Ready: true, ReadySince: born,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}, Capacity: room, Allocatable: room,
		})
		for j := range podsPerNode {
			pod := fmt.Sprintf("app-%04d-%02d", i, j)
			s.Pods = append(s.Pods, &fleet.Pod{
				Namespace: metav1.NamespaceDefault, Name: pod, UID: types.UID(pod), Created: fleet.SecondOf(born), Owner: owner, Spec: spec,
				Node: name, Phase: fleet.PodRunning, Ready: true,
			})
		}
	}
	s.Groups = []fleet.Group{g}
	return s
}
