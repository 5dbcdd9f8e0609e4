package seats

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
)

// of is a group with one node template.
func of(cpu, memory string, labels map[string]string, taints ...corev1.Taint) *cluster.Group {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return &cluster.Group{Group: &fleet.Group{NodeTemplates: []fleet.NodeTemplate{{Capacity: size, Allocatable: size, Labels: labels, Taints: taints}}}}
}

func TestAlike(t *testing.T) {
	zone := func(z string) map[string]string {
		return map[string]string{corev1.LabelTopologyZone: z, "topology.ebs.csi.aws.com/zone": z, "eks.amazonaws.com/nodegroup": "web-" + z, "tier": "web"}
	}
	taint := corev1.Taint{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}
	base := of("4", "16Gi", zone("a"))
	for name, tc := range map[string]struct {
		other   *cluster.Group
		ignored []string
		want    bool
	}{
		"another zone":               {of("4", "16Gi", zone("b")), nil, true},
		"a little less memory":       {of("4", "15.8Gi", zone("b")), nil, true},
		"less memory":                {of("4", "15.6Gi", zone("b")), nil, false},
		"less cpu":                   {of("3950m", "16Gi", zone("b")), nil, false},
		"another label":              {of("4", "16Gi", map[string]string{"tier": "db"}), nil, false},
		"another label, but ignored": {of("4", "16Gi", map[string]string{"tier": "db"}), []string{"tier"}, true},
		"a taint":                    {of("4", "16Gi", zone("b"), taint), nil, false},
		"no shape":                   {&cluster.Group{Group: &fleet.Group{}}, nil, false},
	} {
		p := policy.Policy{BalancingIgnoredLabels: tc.ignored}
		if got := similar(p, base, tc.other); got != tc.want {
			t.Errorf("%s: alike is %t, want %t", name, got, tc.want)
		}
		if similar(p, base, tc.other) != similar(p, tc.other, base) {
			t.Errorf("%s: who is asked first decides", name)
		}
	}
}
