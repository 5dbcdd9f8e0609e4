package drainable

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// GraceOf is the time that a pod asks for to end.
func GraceOf(p *fleet.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if p.Spec != nil && p.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}
