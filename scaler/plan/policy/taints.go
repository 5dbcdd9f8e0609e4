package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// starting reports whether a taint stands until something has come up on its node.
func (p Policy) starting(t corev1.Taint) bool {
	return contract.Startup(t) || slices.Contains(p.StartupTaints, t.Key) || contract.HasPrefix(t, p.StartupTaintPrefixes)
}

// Transient reports whether a taint is removed by itself, so that no node template has it.
func (p Policy) Transient(t corev1.Taint) bool {
	return contract.Transient(t) || p.starting(t) || slices.Contains(p.StatusTaints, t.Key)
}

// StartupTaint is the key of the first taint for which something has yet to come up;
// empty without one.
func (p Policy) StartupTaint(taints []corev1.Taint) string {
	for _, t := range taints {
		if p.starting(t) {
			return t.Key
		}
	}
	return ""
}

// Lasting are those of some taints that do not go by themselves.
func (p Policy) Lasting(taints []corev1.Taint) []corev1.Taint {
	var list []corev1.Taint
	for _, t := range taints {
		if !p.Transient(t) {
			list = append(list, t)
		}
	}
	return list
}
