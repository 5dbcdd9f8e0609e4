package plan_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Law 16: what is decided for hooks, heartbeats and drains that others began does not
// depend on how many pods are pending, nor on what they ask for. All of it is in the first
// part of the plan, and the second part repeats nothing of that.
func law16Pending(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	urgent, rest := plan.NewPlanner().Begin(s, p)
	among, _ := plan.NewPlanner().Begin(crowded(s, 2_000), p)
	var broken []string
	if diff := cmp.Diff(urgent, among); diff != "" {
		broken = append(broken, fmt.Sprintf("law 16: with 2,000 more pending pods (-without +with):\n%s", diff))
	}
	others := rest().Actions
	for _, a := range got.Actions {
		first, second := contains(urgent.Actions, a), contains(others, a)
		if first == second {
			broken = append(broken, fmt.Sprintf("law 16: %s is in both parts of the plan, or in none", a))
		}
		if ofOthers(s, a) && !first {
			broken = append(broken, fmt.Sprintf("law 16: %s waits for growth to be worked out", a))
		}
	}
	if n := len(urgent.Actions) + len(others); n != len(got.Actions) {
		broken = append(broken, fmt.Sprintf("law 16: the plan has %d actions, its parts %d", len(got.Actions), n))
	}
	return broken
}

func contains(list []action.Action, a action.Action) bool {
	return slices.ContainsFunc(list, func(b action.Action) bool { return cmp.Equal(a, b) })
}

// ofOthers reports whether an action is about a hook, or about a drain that others began.
func ofOthers(s fleet.Snapshot, a action.Action) bool {
	switch a := a.(type) {
	case action.Heartbeat, action.Complete, action.ClearTerminationMark:
		return true
	case action.RequestDrain:
		return a.Kind == contract.KindASG
	case action.Cordon:
		return !retires(s, a.Node.Name)
	case action.Evict:
		return !retires(s, a.Node.Name)
	}
	return false
}

// retires reports whether the drain of a node may be our own scale-down.
func retires(s fleet.Snapshot, name string) bool {
	r, err := contract.ParseRequest(nodeNamed(s, name).Annotations[contract.AnnotationDrainRequest])
	return err == nil && r.By == contract.AppScaler && r.Kind == contract.KindScaleDown
}

// crowded is a snapshot with so many more pending pods, each with rules of its own.
func crowded(s fleet.Snapshot, n int) fleet.Snapshot {
	s.Pods = slices.Clip(s.Pods)
	for i := range n {
		name := fmt.Sprintf("crowd-%04d", i)
		labels := map[string]string{"crowd": name}
		s.Pods = append(s.Pods, &fleet.Pod{
			Namespace: "tenant", Name: name, UID: types.UID(name), Created: fleet.SecondOf(s.Now), Judged: fleet.SecondOf(s.Now), Labels: labels, Phase: fleet.PodPending, Scheduling: fleet.Unschedulable,
			Spec: &corev1.PodSpec{
				NodeSelector: map[string]string{"example.com/crowd": name},
				Containers:   []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}}},
				Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
				}}}},
			},
		})
	}
	return s
}

// What is foreseen comes: a heartbeat that is due later is decided then and not before, if nothing
// but the time is another one and nothing else is due meanwhile, or the hook is completed instead.
func lawForeseen(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	urgent, _ := plan.NewPlanner().Begin(s, p)
	var broken []string
	for _, f := range urgent.Foreseen {
		if !f.Due.After(s.Now) || !f.Due.Before(f.Until) || f.Every <= 0 {
			broken = append(broken, fmt.Sprintf("foreseen: %s at %s, before %s, every %s; it is %s", f.Heartbeat, f.Due, f.Until, f.Every, s.Now))
		}
		unknown := f.Due.Add(-f.Every).Equal(s.Now) && !contains(urgent.Actions, f.Heartbeat) // since when it waits
		if unknown || got.Wake.Before(f.Due) {
			continue
		}
		for _, early := range []time.Duration{0, time.Second} {
			later := s
			later.Now, later.State = f.Due.Add(-early), got.State
			then, _ := plan.NewPlanner().Begin(later, p)
			beats := contains(then.Actions, f.Heartbeat)
			completes := slices.ContainsFunc(then.Actions, func(a action.Action) bool {
				c, is := a.(action.Complete)
				return is && c.Instance == f.Instance && c.Hook == f.Hook
			})
			if early > 0 && beats && later.Now.After(s.Now) {
				broken = append(broken, fmt.Sprintf("foreseen: %s is due before %s", f.Heartbeat, f.Due))
			}
			if early == 0 && !beats && !completes {
				broken = append(broken, fmt.Sprintf("foreseen: %s is not decided at %s: %v", f.Heartbeat, f.Due, then.Actions))
			}
		}
	}
	return broken
}
