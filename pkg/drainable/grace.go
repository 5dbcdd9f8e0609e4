package drainable

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// heardWithin is what passes between an eviction and the kubelet's hearing of it.
const heardWithin = 2 * time.Second

// Grace is what a pod is given in seconds where so much is left before the deadline of
// its drain: nil where its own period ends before. Otherwise it is what is left, so
// that the pod itself hears of its end, but never nothing: a grace of 0 would take the
// pod away without a word to it. The pods of one step leave a part of the time, half of
// it at most, to those of the steps after it; last is the greatest step of a pod that
// is still there.
func (s Steps) Grace(p *fleet.Pod, last int, left time.Duration) *int64 {
	later := s.Reserve(s.Of(p)+1) - s.Reserve(last+1)
	left -= min(later, left/2)
	seconds := max(1, int64((left-heardWithin)/time.Second))
	if GraceOf(p) <= time.Duration(seconds)*time.Second {
		return nil
	}
	return &seconds
}

// mostGrace is the longest that a pod is taken to ask for: an API server accepts what no time.Duration
// holds, of anybody who may make a pod.
const mostGrace = 365 * 24 * time.Hour

// GraceOf is the time that a pod asks for to end.
func GraceOf(p *fleet.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if p.Spec != nil && p.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(min(seconds, int64(mostGrace/time.Second))) * time.Second
}
