package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
)

// A DaemonSet is known as its pods will be: a template is not completed by the API server, and a
// pod is. What is beyond counting is cut in what was completed, too.
func TestTemplatesAreCompleted(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, q := range map[corev1.ResourceName]string{"cpu": cpu, "memory": memory} {
			if q != "" {
				l[name] = resource.MustParse(q)
			}
		}
		return l
	}
	asks := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	ports := func(container, host int32) corev1.Container {
		return corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: container, HostPort: host}}}
	}
	of := func(c ...corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: c} }
	podLevel := func(requests, limits corev1.ResourceList, c ...corev1.Container) corev1.PodSpec {
		return corev1.PodSpec{Containers: c, Resources: &corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	for name, x := range map[string]struct{ has, want corev1.PodSpec }{
		"limits alone":                {of(asks(nil, list("1", "2Gi"))), of(asks(list("1", "2Gi"), list("1", "2Gi")))},
		"one request is said":         {of(asks(list("100m", ""), list("1", "2Gi"))), of(asks(list("100m", "2Gi"), list("1", "2Gi")))},
		"nothing is limited":          {of(asks(list("100m", ""), nil)), of(asks(list("100m", ""), nil))},
		"beyond counting":             {of(asks(nil, list("1e99", ""))), of(asks(list("9223372036854775807", ""), list("9223372036854775807", "")))},
		"an init container":           {corev1.PodSpec{InitContainers: []corev1.Container{asks(nil, list("1", ""))}}, corev1.PodSpec{InitContainers: []corev1.Container{asks(list("1", ""), list("1", ""))}}},
		"ports in the pod's network":  {of(ports(80, 0)), of(ports(80, 0))},
		"ports in the host's network": {corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{ports(80, 0)}}, corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{ports(80, 80)}}},
		"the pod's limits": {
			podLevel(nil, list("4", "4Gi"), asks(list("1", ""), nil), asks(list("500m", ""), nil)),
			podLevel(list("1500m", "4Gi"), list("4", "4Gi"), asks(list("1", ""), nil), asks(list("500m", ""), nil)),
		},
		"a sum beyond counting": {
			podLevel(nil, list("4", ""), asks(list("1e9999999", ""), nil), asks(list("1", ""), nil)),
			podLevel(list("9223372036854775808", ""), list("4", ""), asks(list("9223372036854775807", ""), nil), asks(list("1", ""), nil)),
		},
		"the pod's requests": {podLevel(list("2", ""), nil, asks(list("1", "1Gi"), nil)), podLevel(list("2", ""), nil, asks(list("1", "1Gi"), nil))},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.DaemonSet{}
			d.Spec.Template.Spec = x.has
			if got := newDaemonSet(d).Template.Spec; !fleet.Equal(got, x.want) {
				t.Error(cmp.Diff(x.want, got))
			}
		})
	}
}
