package asg_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/scaler/simulate/world"
)

// The default world of simulations has what node templates have of its instance types, at the
// prices that are part of the program.
func TestDefaultWorldIsAsTemplatesSay(t *testing.T) {
	var spec fakeaws.Spec
	var nodes []string
	for _, g := range world.Default().Groups {
		spec.Groups = append(spec.Groups, fakeaws.Group{Name: g.Name, Max: g.Max, Type: g.Type})
		nodes = append(nodes, fmt.Sprintf("0:%d:%s", g.Max, g.Name))
	}
	groups := read(t, start(t, spec).reader(t, nodes, nil))
	for _, g := range world.Default().Groups {
		if len(groups[g.Name].NodeTemplates) == 0 {
			t.Fatalf("group %s has no node template: %q", g.Name, groups[g.Name].Faults)
		}
		shape := groups[g.Name].NodeTemplates[0]
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			got, want := g.Allocatable[name], shape.Allocatable[name]
			if got.Cmp(want) != 0 {
				t.Errorf("%s has %s of %s, its template %s", g.Type, got.String(), name, want.String())
			}
		}
		if want := assume.Prices.Of("us-east-1", g.Type); g.Price != want {
			t.Errorf("%s costs $%v, in the list $%v", g.Type, g.Price, want)
		}
	}
}
