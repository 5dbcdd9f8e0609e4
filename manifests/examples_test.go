package manifests

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"windlass.dev/windlass/scaler/plan/policy"
)

// e2e/testdata/balloons.txtar proves what balloons do; here are the values that it stands
// and falls with.
func TestBalloons(t *testing.T) {
	o := render(t, filesys.MakeFsOnDisk(), "examples/balloons")
	if len(o.priorities) != 1 || len(o.deployments) != 1 {
		t.Fatalf("%d priority classes and %d deployments, want one of each", len(o.priorities), len(o.deployments))
	}
	class, spec := o.priorities[0], o.deployments[0].Spec.Template.Spec
	if spec.PriorityClassName != class.Name {
		t.Errorf("balloons are of class %q, want %q", spec.PriorityClassName, class.Name)
	}
	if cutOff := policy.DefaultPolicy().ExpendableBelow; class.Value < cutOff || class.Value >= 0 {
		t.Errorf("priority %d, want %d, from which on a pod brings a node, to -1, which other pods displace", class.Value, cutOff)
	}
	if class.GlobalDefault || class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("the class is everybody's, or displaces others: %v", class)
	}
	if s := spec.TerminationGracePeriodSeconds; s == nil || *s != 0 {
		t.Errorf("whoever displaces a balloon waits for its grace period: %v", s)
	}
	if len(o.budgets) != 0 {
		t.Errorf("a budget keeps balloons: %v", o.budgets)
	}
	for _, c := range spec.Containers {
		checkContainer(t, c)
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || len(c.Resources.Limits) != 0 {
			t.Errorf("container %s holds no room, or has limits: %v", c.Name, c.Resources)
		}
		if _, tag, _ := strings.Cut(c.Image, ":"); tag == "" || tag == "latest" || strings.Contains(tag, "@") {
			t.Errorf("container %s has the image %q, want one with a tag", c.Name, c.Image)
		}
	}
}
