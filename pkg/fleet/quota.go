package fleet

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Quota is a ResourceQuota, as far as CapacityBuffers go by it.
// https://kubernetes.io/docs/concepts/policy/resource-quotas/
type Quota struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Hard and Used are those of its status.
	Hard corev1.ResourceList `json:"hard,omitempty"`
	Used corev1.ResourceList `json:"used,omitempty"`
	// Scopes are spec.scopes and those of spec.scopeSelector; a pod must be in all.
	Scopes []corev1.ScopedResourceSelectorRequirement `json:"scopes,omitempty"`
}

// Key is namespace/name.
func (q Quota) Key() string { return q.Namespace + "/" + q.Name }

// Requests reports whether a quota bounds by that name what pods request: cpu, memory and the like,
// or any resource with the prefix requests.
func Requests(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) && name != corev1.ResourceRequestsStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Covers reports whether a pod of the quota's namespace counts for it. Pods of buffers have no
// active deadline, and their priority class is their template's.
func (q Quota) Covers(p *Pod) bool {
	return !slices.ContainsFunc(q.Scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return !within(s, p) })
}

func within(s corev1.ScopedResourceSelectorRequirement, p *Pod) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeNotTerminating:
		return p.Spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeTerminating:
		return p.Spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(p.Spec)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(p.Spec)
	case corev1.ResourceQuotaScopePriorityClass:
		return inPriorityClass(s, p.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(p.Spec.Affinity)
	}
	return false
}

// bestEffort reports whether no container requests cpu or memory. What is limited is requested.
func bestEffort(spec *corev1.PodSpec) bool {
	asks := func(r corev1.ResourceRequirements) bool {
		return !r.Requests.Cpu().IsZero() || !r.Requests.Memory().IsZero()
	}
	if spec.Resources != nil && asks(*spec.Resources) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool { return asks(c.Resources) })
}

func inPriorityClass(s corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch s.Operator {
	case corev1.ScopeSelectorOpExists, "":
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(s.Values, class)
	}
	return !slices.Contains(s.Values, class) // NotIn
}

func crossesNamespaces(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	weighted := func(list []corev1.WeightedPodAffinityTerm) {
		for _, t := range list {
			terms = append(terms, t.PodAffinityTerm)
		}
	}
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
