package fit

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

// Pods that come and go for weeks, none like another, do not fill the memory: about
// as much is known as a few looks could use.
func TestRulesForget(t *testing.T) {
	const pods, looks = 500, 40
	rules := NewRules()
	for look := range looks {
		world := World{}
		for i := range pods {
			world.Pods = append(world.Pods, &fleet.Pod{
				Namespace: "default", Name: fmt.Sprintf("p-%d-%d", look, i),
				Spec: &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(look*pods+i+1), resource.DecimalSI)},
				}}}},
			})
		}
		rules.Cluster(world)
		for _, known := range []struct {
			what        string
			count, most int
		}{
			{"pods", len(rules.byPod), 3*pods + slack},
			{"specs", len(rules.traits.bySpec), 3*pods + slack},
			{"classes", len(rules.classes), turnover*(pods+slack) + pods},
			{"kinds of specs", len(rules.traits.byKey), turnover*(pods+slack) + pods},
		} {
			if known.count > known.most {
				t.Fatalf("look %d: %d %s are known, want at most %d", look, known.count, known.what, known.most)
			}
		}
	}
	if all := looks * pods; len(rules.classes) >= all {
		t.Errorf("all %d classes are still known", all)
	}
}
