package plan_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// A buffer whose pods have more terms than are considered says so, and keeps no room.
func TestBufferOfTooManyTerms(t *testing.T) {
	for terms, refused := range map[int]bool{7: false, 8: true} {
		w := scenario.NewWorld()
		if err := w.Apply("group web desired=1\nnode web-1 group=web\nbuffer spare replicas=2 cpu=100m\n"); err != nil {
			t.Fatal(err)
		}
		apart := make([]corev1.PodAffinityTerm, terms)
		for i := range apart {
			apart[i] = corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("a", i)}}}
		}
		w.Buffers[0].Pods.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart}}
		told := fmt.Sprint(plan.NewPlanner().Decide(w.Snapshot, policy.DefaultPolicy()).Actions)
		if got := strings.Contains(told, "TooManyTerms"); got != refused {
			t.Errorf("%d terms: %s", terms, told)
		}
	}
}
