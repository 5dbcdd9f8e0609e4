package drainable_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

func tolerating(t corev1.Toleration) func(*fleet.Pod) {
	return func(p *fleet.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

// Each row says what becomes of a pod of a DaemonSet if none of them is evicted,
// those that ask for it, and all.
func TestDaemonSets(t *testing.T) {
	asks := annotated(contract.AnnotationEvictDaemonSetPod, "true")
	for _, tc := range []struct {
		name        string
		change      []func(*fleet.Pod)
		asking, all drainable.Outcome
	}{
		{"ordinary", nil, drainable.Skip, drainable.Leave},
		{"it asks", []func(*fleet.Pod){asks}, drainable.Leave, drainable.Leave},
		{"it refuses", []func(*fleet.Pod){annotated(contract.AnnotationEvictDaemonSetPod, "false")}, drainable.Skip, drainable.Skip},
		{"it says something else", []func(*fleet.Pod){annotated(contract.AnnotationEvictDaemonSetPod, "perhaps")}, drainable.Skip, drainable.Leave},
		{"a pod of its own that says it is one", []func(*fleet.Pod){naked, annotated(contract.AnnotationDaemonSetPod, "true"), asks}, drainable.Leave, drainable.Leave},
		{"not safe", []func(*fleet.Pod){asks, annotated(contract.AnnotationSafeToEvict, "false")}, drainable.Skip, drainable.Skip},
		{"on completion", []func(*fleet.Pod){asks, annotated(contract.AnnotationSafeToEvict, "on-completion")}, drainable.Skip, drainable.Skip},
		{"ended", []func(*fleet.Pod){asks, phase(fleet.PodSucceeded)}, drainable.Skip, drainable.Skip},
		{"static", []func(*fleet.Pod){asks, annotated(contract.AnnotationMirror, "x")}, drainable.Skip, drainable.Skip},
		{"tolerates everything", []func(*fleet.Pod){asks, tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})}, drainable.Skip, drainable.Skip},
		{"tolerates the taint", []func(*fleet.Pod){asks, tolerating(corev1.Toleration{Key: contract.TaintDraining, Operator: corev1.TolerationOpExists})}, drainable.Skip, drainable.Skip},
		{"tolerates one kind", []func(*fleet.Pod){asks, tolerating(corev1.Toleration{Key: contract.TaintDraining, Value: "spot"})}, drainable.Skip, drainable.Skip},
		{"tolerates all that keeps pods off", []func(*fleet.Pod){asks, tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})}, drainable.Skip, drainable.Skip},
		{"tolerates what evicts", []func(*fleet.Pod){asks, tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})}, drainable.Leave, drainable.Leave},
		{"tolerates another", []func(*fleet.Pod){asks, tolerating(corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists})}, drainable.Leave, drainable.Leave},
	} {
		pod := web(append([]func(*fleet.Pod){ownedBy("DaemonSet")}, tc.change...)...)
		for policy, want := range map[drainable.DaemonSetEviction]drainable.Outcome{
			drainable.LeaveDaemonSets: drainable.Skip, drainable.EvictAsking: tc.asking, drainable.EvictAll: tc.all,
		} {
			for _, urgency := range []drainable.Urgency{drainable.Patient, drainable.Pressing} {
				v := drainable.Judge(drainable.Question{Pod: pod, Now: now, Policy: drainable.Policy{DaemonSets: policy}, Urgency: urgency})
				if v.Outcome != want {
					t.Errorf("%s, policy %d, urgency %d: %s, want %s", tc.name, policy, urgency, v.Outcome, want)
				}
			}
		}
	}
	budgets := drainable.NewBudgets([]fleet.Budget{budget("web", 0)})
	v := drainable.Judge(drainable.Question{
		Pod: web(ownedBy("DaemonSet"), asks), Now: now, Budgets: budgets, Policy: drainable.Policy{DaemonSets: drainable.EvictAsking},
	})
	if v.Outcome != drainable.Block || v.Rule != drainable.RuleBudget {
		t.Errorf("behind a spent budget: %+v", v)
	}
}

// Refuses answers as Judge does about budgets, and about nothing else.
func TestRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		pod     *fleet.Pod
		budgets []fleet.Budget
		want    bool
	}{
		{"no budget", web(), nil, false},
		{"room", web(), []fleet.Budget{budget("web", 1)}, false},
		{"no room", web(), []fleet.Budget{budget("web", 0)}, true},
		{"no room, and its own word against it", web(naked), []fleet.Budget{budget("web", 0)}, true},
		{"unready, the others suffice", web(unready), []fleet.Budget{budget("web", 0)}, false},
		{"not started", web(phase(fleet.PodPending)), []fleet.Budget{budget("web", 0)}, false},
		{"two", web(), []fleet.Budget{budget("web", 9), budget("all", 9, everyPod)}, true},
	} {
		if got := drainable.NewBudgets(tc.budgets).Refuses(tc.pod); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if (*drainable.Budgets)(nil).Refuses(web()) {
		t.Error("budgets that nobody knows refuse")
	}
}
