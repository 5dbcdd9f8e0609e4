package fleet_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// Which pods count for a quota is what the API server's quota evaluator says.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes
func TestQuotaCovers(t *testing.T) {
	asks := corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}
	nothing := corev1.PodSpec{Containers: []corev1.Container{{}}}
	inInit := corev1.PodSpec{Containers: nothing.Containers, InitContainers: asks.Containers}
	inAll := corev1.PodSpec{Containers: nothing.Containers, Resources: &asks.Containers[0].Resources}
	urgent := corev1.PodSpec{PriorityClassName: "urgent"}
	ends := corev1.PodSpec{ActiveDeadlineSeconds: ptr.To(int64(60))}
	near := func(namespaces ...string) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: namespaces}}},
		}}}
	}
	scope := func(name corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: operator, Values: values}
	}
	const class = corev1.ResourceQuotaScopePriorityClass
	for _, c := range []struct {
		reason string
		scope  corev1.ScopedResourceSelectorRequirement
		spec   corev1.PodSpec
		want   bool
	}{
		{"it asks for nothing", scope(corev1.ResourceQuotaScopeBestEffort, corev1.ScopeSelectorOpExists), nothing, true},
		{"it asks for cpu", scope(corev1.ResourceQuotaScopeBestEffort, corev1.ScopeSelectorOpExists), asks, false},
		{"an init container asks", scope(corev1.ResourceQuotaScopeNotBestEffort, corev1.ScopeSelectorOpExists), inInit, true},
		{"the pod itself asks", scope(corev1.ResourceQuotaScopeNotBestEffort, corev1.ScopeSelectorOpExists), inAll, true},
		{"it has an end", scope(corev1.ResourceQuotaScopeTerminating, corev1.ScopeSelectorOpExists), ends, true},
		{"it has none", scope(corev1.ResourceQuotaScopeNotTerminating, corev1.ScopeSelectorOpExists), nothing, true},
		{"it has an end, and none is wanted", scope(corev1.ResourceQuotaScopeNotTerminating, corev1.ScopeSelectorOpExists), ends, false},
		{"it has a class", scope(class, corev1.ScopeSelectorOpExists), urgent, true},
		{"it has no class", scope(class, corev1.ScopeSelectorOpDoesNotExist), nothing, true},
		{"its class is named", scope(class, corev1.ScopeSelectorOpIn, "low", "urgent"), urgent, true},
		{"another class is named", scope(class, corev1.ScopeSelectorOpIn, "low"), urgent, false},
		{"its class is ruled out", scope(class, corev1.ScopeSelectorOpNotIn, "urgent"), urgent, false},
		{"it speaks of its own namespace", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ScopeSelectorOpExists), near(), false},
		{"it speaks of others", scope(corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ScopeSelectorOpExists), near("shop"), true},
		{"a scope that nobody knows", scope("Lunar", corev1.ScopeSelectorOpExists), asks, false},
	} {
		quota := fleet.Quota{Scopes: []corev1.ScopedResourceSelectorRequirement{c.scope}}
		if got := quota.Covers(&fleet.Pod{Spec: &c.spec}); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
		if !(fleet.Quota{}).Covers(&fleet.Pod{Spec: &c.spec}) {
			t.Errorf("%s: a quota without scopes does not cover it", c.reason)
		}
	}
}

func TestQuotaRequests(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{
		"cpu": true, "memory": true, "ephemeral-storage": true, "requests.cpu": true, "requests.nvidia.com/gpu": true, "hugepages-2Mi": true,
		"requests.storage": false, "limits.cpu": false, "pods": false, "count/deployments.apps": false, "services": false,
	} {
		if got := fleet.Requests(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
