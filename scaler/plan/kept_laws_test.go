package plan_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestKeptPlanner: a planner that goes on from evaluation to evaluation, as the loop's does,
// decides each time what one decides that knows nothing. Its pods come as those of a watch do:
// what has not changed is the same pod as before, in the same row or, after a new list, in another.
func TestKeptPlanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, randomWorld(t, rapid.Bool().Draw(t, "wild")))
		p := randomPolicy(t)
		kept, rows := plan.NewPlanner(), watched{}
		var before []*verdict.Verdict // of the last plan, which others may still hold
		said := fmt.Sprintf("%q", before)
		for range rapid.IntRange(2, 12).Draw(t, "events") {
			rows.take(t, w.Pods)
			s := w.Snapshot
			s.Pods = slices.Clone(rows.list)
			if oneIn(t, 10, "another list of nodes") {
				w.Nodes = rapid.Permutation(slices.Clone(w.Nodes)).Draw(t, "node rows")
			}
			if oneIn(t, 10, "another policy") {
				p = randomPolicy(t)
				p.ExpendableBelow = rapid.SampledFrom([]int32{-10, 1, 101}).Draw(t, "expendable")
			}
			if oneIn(t, 10, "another version") {
				w.Kubernetes = rapid.SampledFrom([]string{"1.33", "1.36"}).Draw(t, "version")
			}
			urgent, rest := kept.Begin(s, p)
			wantUrgent, wantRest := plan.NewPlanner().Begin(s, p)
			if diff := cmp.Diff(wantUrgent, urgent); diff != "" {
				t.Fatalf("the kept planner's urgent part (-alone +kept):\n%s\n%s", diff, scenario.Format(s))
			}
			got, want := rest(), wantRest()
			if still := fmt.Sprintf("%q", before); still != said {
				t.Fatalf("a plan that was handed out says %s, and not %s any more", still, said)
			}
			before, said = got.Verdicts, fmt.Sprintf("%q", got.Verdicts)
			if difference := plan.Difference(got, want); difference != "" {
				t.Fatalf("the kept planner decides %s\n%s", difference, scenario.Format(s))
			}
			// As Decide puts them together.
			want.Actions = action.Ordered(slices.Concat(wantUrgent.Actions, want.Actions))
			for _, broken := range slices.Concat(law3Bounds(s, p, want), lawOpposed(s, p, want)) {
				t.Errorf("%s\n%s\n%s", broken, render(want, nil), scenario.Format(s))
			}
			catchUp(w, p) // an answer that the world was given, and does not show, is no fault of the plan
			if err := carryOut(w, want); err != nil {
				t.Fatalf("%v\n%s\n%s", err, render(want, []string{"group", "node"}), scenario.Format(s))
			}
			randomEvent(t, w)
			if len(w.Nodes) > 0 && oneIn(t, 3, "another row") {
				otherRow(t, &w.Nodes[rapid.IntRange(0, len(w.Nodes)-1).Draw(t, "of node")])
			}
			schedule(w)
		}
	})
}

// TestVerdictsRepeat: the verdicts of the last plan stand in the next one where they say the same.
func TestVerdictsRepeat(t *testing.T) {
	const nodes = 100
	w := busy(nodes)
	planner := plan.NewPlanner()
	before := planner.Decide(w.Snapshot, byThreshold())
	w.Nodes[7].Annotations = map[string]string{contract.AnnotationScaleDownDisabled: "true"}
	others := 0
	for i, v := range planner.Decide(w.Snapshot, byThreshold()).Verdicts {
		if v.Of == verdict.OfNode && v != before.Verdicts[i] {
			others++
		}
	}
	if others != 1 {
		t.Errorf("%d of %d verdicts are others, and one node has changed", others, nodes)
	}
}

// otherRow changes what a node says of itself, in ways that no event of random worlds does. Maps and
// lists are replaced, as by a watch.
func otherRow(t *rapid.T, n *fleet.Node) {
	labelled := func(key, value string) {
		n.Labels = maps.Clone(n.Labels)
		if _, has := n.Labels[key]; has {
			delete(n.Labels, key)
		} else {
			n.Labels[key] = value
		}
	}
	amount := resource.MustParse(rapid.SampledFrom([]string{"100m", "1", "2", "7"}).Draw(t, "amount"))
	switch rapid.IntRange(0, 8).Draw(t, "what of it") {
	case 0:
		n.Allocatable = maps.Clone(n.Allocatable)
		n.Allocatable[corev1.ResourceCPU] = amount
	case 1:
		n.Allocatable = maps.Clone(n.Allocatable)
		n.Allocatable["nvidia.com/gpu"] = amount
	case 2:
		n.Capacity = corev1.ResourceList{corev1.ResourceCPU: amount, corev1.ResourceMemory: resource.MustParse("8Gi")}
	case 3:
		labelled(corev1.LabelTopologyZone, "b")
	case 4:
		labelled(contract.LabelAccelerator, "")
	case 5:
		labelled(contract.LabelTerminationHandlerEvent, "")
	case 6:
		n.Taints = contract.WithTaint(n.Taints, corev1.Taint{Key: "only", Value: "some", Effect: corev1.TaintEffectNoSchedule})
	case 7:
		n.Taints = contract.WithoutTaint(n.Taints, "only")
	case 8:
		n.Unschedulable = !n.Unschedulable
	}
}

// watched are pods as a watch keeps them: a row never changes, another takes its place, and the
// last fills a gap.
type watched struct{ list []*fleet.Pod }

func (r *watched) take(t *rapid.T, pods []*fleet.Pod) {
	now := map[string]*fleet.Pod{}
	for _, p := range pods {
		now[p.Key()+string(p.UID)] = p
	}
	for i := len(r.list) - 1; i >= 0; i-- {
		key := r.list[i].Key() + string(r.list[i].UID)
		p, there := now[key]
		switch {
		case !there:
			last := len(r.list) - 1
			r.list[i] = r.list[last]
			r.list = r.list[:last]
		case !reflect.DeepEqual(p, r.list[i]):
			r.list[i] = copied(p)
		}
		delete(now, key)
	}
	for _, p := range pods {
		if now[p.Key()+string(p.UID)] == p {
			r.list = append(r.list, copied(p))
		}
	}
	if oneIn(t, 10, "another list of pods") {
		r.list = rapid.Permutation(r.list).Draw(t, "rows")
	}
}

func oneIn(t *rapid.T, n int, what string) bool { return rapid.IntRange(0, n-1).Draw(t, what) == 0 }

// TestJudge: what is kept of a pod or a node that was changed in its place, as rows never are, makes
// a difference, which is found, and after which all is as if nothing had been kept.
func TestJudge(t *testing.T) {
	for name, change := range map[string]func(*scenario.World){
		"pod": func(w *scenario.World) {
			w.Pods[0].Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1900m")
		},
		"node": func(w *scenario.World) { w.Nodes[0].Allocatable["cpu"] = resource.MustParse("110m") },
	} {
		t.Run(name, func(t *testing.T) {
			w := scenario.NewWorld()
			if err := w.Apply("group web type=m5.large max=9 desired=2\nnode n-1..2 group=web\npod a on=n-1 cpu=100m\npod b on=n-2 cpu=100m"); err != nil {
				t.Fatal(err)
			}
			w.Nodes[0].Allocatable = maps.Clone(w.Nodes[0].Allocatable)
			planner := plan.NewPlanner()
			if difference := planner.Judge(w.Snapshot, byThreshold()); difference != "" {
				t.Fatalf("nothing has changed, and yet: %s", difference)
			}
			change(w)
			if difference := planner.Judge(w.Snapshot, byThreshold()); difference == "" {
				t.Error("no difference is found")
			}
			if difference := planner.Judge(w.Snapshot, byThreshold()); difference != "" {
				t.Errorf("the planner has not begun anew: %s", difference)
			}
		})
	}
}

// copied is the pod as it is now: worlds change theirs in place.
func copied(p *fleet.Pod) *fleet.Pod {
	c := *p
	return &c
}
