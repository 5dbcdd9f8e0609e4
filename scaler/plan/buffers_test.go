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

// A buffer whose pods have more terms than are considered, or longer ones, says so, and keeps no room.
func TestBufferOfTooManyTerms(t *testing.T) {
	for _, c := range []struct {
		terms, values int // of each term, beside its key
		refused       string
	}{{7, 13, ""}, {8, 1, "TooManyTerms"}, {1, 99, ""}, {1, 100, "TooManyValues"}, {7, 14, "TooManyValues"}} {
		w := scenario.NewWorld()
		if err := w.Apply("group web desired=1\nnode web-1 group=web\nbuffer spare replicas=2 cpu=100m\n"); err != nil {
			t.Fatal(err)
		}
		apart := make([]corev1.PodAffinityTerm, c.terms)
		for i := range apart {
			values := make([]string, c.values)
			for j := range values {
				values[j] = fmt.Sprint("a", i, "-", j)
			}
			apart[i] = corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}},
			}}
		}
		w.Buffers[0].Pods.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart}}
		told := fmt.Sprint(plan.NewPlanner().Decide(w.Snapshot, policy.DefaultPolicy()).Actions)
		if refused := strings.Contains(told, "TooMany"); refused != (c.refused != "") || !strings.Contains(told, c.refused) {
			t.Errorf("%d terms of %d values, want %q: %s", c.terms, c.values, c.refused, told)
		}
	}
}
