package fit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// A template is used again for the same node alone, with the same taints left out, under the same
// rules; and a crew is known under these alone.
func TestTemplateAgain(t *testing.T) {
	all, none := func(corev1.Taint) bool { return true }, func(corev1.Taint) bool { return false }
	n := fleet.Node{Name: "n", Unschedulable: true}
	tainted := fleet.Node{Name: "n", Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}
	other := n
	rules := NewRules()
	c := rules.Cluster(World{Kubernetes: "1.33"})
	was, wasTainted, crew := c.TemplateFrom(&n, all), c.TemplateFrom(&tainted, all), c.NewCrew(nil)
	if c.TemplateAgain(was, &n, all) != was || c.TemplateAgain(wasTainted, &tainted, all) != wasTainted || !c.Knows(crew) {
		t.Error("what has not changed is made anew")
	}
	for name, again := range map[string]*NodeTemplate{
		"another node": c.TemplateAgain(was, &other, all), "a cordon that counts": c.TemplateAgain(was, &n, none),
	} {
		if again == was {
			t.Errorf("%s: the old one is used again", name)
		}
	}
	if c.TemplateAgain(wasTainted, &tainted, none) == wasTainted {
		t.Error("a taint that counts: the old one is used again")
	}
	c = rules.Cluster(World{Kubernetes: "1.36"})
	if c.TemplateAgain(was, &n, all) == was || c.Knows(crew) {
		t.Error("other rules: the old one is used again")
	}
}
