package drainable_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// A budget guards the pods that the API's own selector selects.
func TestGuardsAsSelectorsSelect(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
	key := rapid.SampledFrom([]string{"app", "tier", "zone"})
	operator := rapid.SampledFrom([]metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
	})
	rapid.Check(t, func(t *rapid.T) {
		selector := &metav1.LabelSelector{MatchLabels: rapid.MapOfN(key, word, 0, 2).Draw(t, "labels")}
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			e := metav1.LabelSelectorRequirement{Key: key.Draw(t, "key"), Operator: operator.Draw(t, "operator")}
			if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn || rapid.IntRange(0, 9).Draw(t, "malformed") == 0 {
				e.Values = rapid.SliceOfN(word, 0, 4).Draw(t, "values")
			}
			selector.MatchExpressions = append(selector.MatchExpressions, e)
		}
		budget := fleet.Budget{Namespace: "shop", Name: "web", Selector: selector}
		pod := fleet.Pod{Namespace: "shop", Name: "web-1", Labels: rapid.MapOfN(key, word, 0, 3).Draw(t, "pod")}
		if got, want := drainable.NewBudgets([]fleet.Budget{budget}).Guard(&pod), budget.Matches(pod); got != want {
			t.Errorf("%v guards a pod with %v: %v, by the API's selector %v", selector, pod.Labels, got, want)
		}
	})
}
