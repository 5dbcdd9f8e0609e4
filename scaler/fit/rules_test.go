package fit

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Pods that come and go for weeks, none like another, do not fill the memory: about as much
// is known as a few evaluations could use.
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
		cluster := rules.Cluster(world)
		for _, p := range world.Pods {
			cluster.Tenant(p)
		}
		for _, known := range []struct {
			what        string
			count, most int
		}{
			{"pods", len(rules.byPod), pods/4 + slack + pods},
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

// What a class asks by itself is the same whoever has terms about it, in whatever order they
// were met: persisted state goes by it.
func TestBodyIsOfThePodsThemselves(t *testing.T) {
	term := func(label string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "1"}},
			}},
		}}
	}
	pod := func(name string, affinity *corev1.Affinity, labels map[string]string) *fleet.Pod {
		return &fleet.Pod{Namespace: "default", Name: name, Labels: labels, Spec: &corev1.PodSpec{Affinity: affinity}}
	}
	app := pod("app", term("x"), map[string]string{"a": "1", "b": "1"})
	first, second := pod("first", term("a"), nil), pod("second", term("b"), nil)
	bodies, keys := map[string]bool{}, map[string]bool{}
	for _, others := range [][]*fleet.Pod{{}, {first}, {first, second}, {second, first}} {
		class := NewRules().Cluster(World{Pods: append(others, app)}).Tenant(app).Class
		bodies[class.Body()], keys[class.Key] = true, true
	}
	if len(bodies) != 1 {
		t.Errorf("bodies differ: %v", bodies)
	}
	if len(keys) == 1 {
		t.Error("terms of others tell no classes apart: this test has no power")
	}
	if plain := pod("plain", nil, app.Labels); bodies[NewRules().Cluster(World{Pods: []*fleet.Pod{plain}}).Tenant(plain).Class.Body()] {
		t.Error("terms of its own are not in the body")
	}
}

// Amounts beyond counting are cut before a spec is written, compared or kept, whoever brings it:
// templates of DaemonSets come as the API server has them.
func TestTraitsAreBounded(t *testing.T) {
	rules := NewRules()
	for _, cpu := range []string{"1e99999", "1e99998"} {
		rules.Terms("", &fleet.Pod{Spec: &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}}})
	}
	if got := len(rules.traits.byBytes); got != 1 {
		t.Errorf("two specs that ask for more than can be counted are %d, want one", got)
	}
}

// TestMemoryIsUsedAgain: columns and places are those of the last evaluation, and what that did not use is let go.
func TestMemoryIsUsedAgain(t *testing.T) {
	rules := NewRules()
	evaluate := func(nodes int, resources ...corev1.ResourceName) {
		ask := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		for _, r := range resources {
			ask[r] = resource.MustParse("1")
		}
		c := rules.Cluster(World{Pods: []*fleet.Pod{{Namespace: "default", Name: "p", Spec: &corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: ask}}},
		}}}})
		for i := range nodes {
			c.Add(c.TemplateFrom(&fleet.Node{Name: fmt.Sprint("n-", i), Allocatable: ask}, nil))
		}
	}
	evaluate(3, "example.com/a", "example.com/b")
	column := &rules.free[0][0]
	few, many := len(rules.free)-2, len(rules.free)
	evaluate(1)
	if &rules.free[0][0] != column || len(rules.places) != 3 {
		t.Errorf("the memory of 3 nodes is not used again; %d places", len(rules.places))
	}
	evaluate(1)
	if spare := rules.free[few:many]; len(rules.free) != few || spare[0] != nil || spare[1] != nil {
		t.Errorf("%d columns, and beyond them %v", len(rules.free), spare)
	}
	if spare := rules.places[1:3]; len(rules.places) != 1 || spare[0] != nil || spare[1] != nil {
		t.Errorf("%d places, and beyond them %v", len(rules.places), spare)
	}
}

// What is learned of pods that come and go does not pile up, also where they are left out and never get
// a class.
func TestSpecsOfPodsThatAreGoneAreForgotten(t *testing.T) {
	rules := NewRules()
	most := 0
	for i := range 200 {
		values := make([]string, 20_000)
		for j := range values {
			values[j] = fmt.Sprint(i, "-", j)
		}
		pod := &fleet.Pod{Namespace: "tenant", Name: "p", Spec: &corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}},
			}}},
		}}}}
		rules.Terms("", pod)
		rules.Cluster(World{Pods: []*fleet.Pod{pod}, Mute: map[*fleet.Pod]bool{pod: true}})
		most = max(most, rules.traits.bytes)
	}
	if most > 2*spareBytes {
		t.Errorf("%d MiB of specs are kept", most>>20)
	}
}
