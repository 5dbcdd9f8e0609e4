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

// BenchmarkScaleDownIdle: the cost of an evaluation at 5,000 nodes with 150,000 pods that request
// two fifths of them, where nothing has changed; see BenchmarkIdleEvaluation. By the threshold at least
// half of the nodes are unneeded, and their clocks run; the usual policy has chosen which nodes are filled last.
func BenchmarkScaleDownIdle(b *testing.B) {
	const nodes, podsPerNode = 5_000, 30
	for _, c := range []struct {
		consolidate string
		kind        string // of the actions before it is idle, of which there are atLeast so many
		atLeast     int
	}{
		{policy.ConsolidateUnneeded, "mark", nodes / 2},
		{policy.ConsolidateBalance, "steer", 1},
	} {
		b.Run(c.consolidate, func(b *testing.B) {
			snapshot, version := halfEmpty(nodes, podsPerNode), uint64(1)
			decided, done, state := 0, map[string]int{}, fleet.State{}
			planner, goesBy := plan.NewPlanner(), policy.DefaultPolicy()
			goesBy.Consolidate, goesBy.UnneededTime = c.consolidate, 24*time.Hour
			l := &loop{
				observe: func(now time.Time) (fleet.Snapshot, uint64, error) {
					s := snapshot
					s.Now, s.State = now, state
					return s, version, nil
				},
				decide: func(s fleet.Snapshot) (plan.Urgent, func() plan.Plan) {
					decided++
					return planner.Begin(s, goesBy)
				},
				remember: func(_ context.Context, s fleet.State) error { state = s; return nil },
				awaits:   func(bool) {},
				paused:   func(action.Action) (act.Result, bool) { return act.Result{}, false },
				act: func(_ context.Context, actions []action.Action) []act.Result {
					todo := map[string]action.Action{}
					for _, a := range actions {
						t := action.TraitsOf(a)
						todo[t.Node.Name] = a
						done[t.Kind]++
					}
					for i := range snapshot.Nodes {
						n := &snapshot.Nodes[i]
						switch a := todo[n.Name].(type) {
						case nil:
						case action.Mark:
							n.Taints = contract.WithTaint(n.Taints, contract.UnneededTaint(a.Since))
						case action.Steer:
							n.Taints = contract.WithFillTurn(n.Taints, a.Fill)
						default:
							b.Fatalf("%s: want nothing but taints", a)
						}
					}
					version += uint64(len(actions))
					return nil
				},
				reread: func(context.Context, []act.Result) {},
				tell:   func(evaluation) {},
				policy: goesBy,
			}
			for looks := 0; l.last == nil || !fleet.Equal(l.last.state, state); looks++ {
				if looks == 10 {
					b.Fatal("the cluster does not come to rest")
				}
				if _, err := l.turn(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			if done[c.kind] < c.atLeast {
				b.Errorf("%d times %s, want at least %d", done[c.kind], c.kind, c.atLeast)
			}
			measureIdle(b.Context(), b, l, &decided)
		})
	}
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
