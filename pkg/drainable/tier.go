package drainable

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"windlass.dev/windlass/pkg/fleet"
)

// Tier orders the pods of a drain: those of a lower tier have gone before one
// of a higher tier is evicted, because they may need it to end in good order.
type Tier int

const (
	// TierOrdinary leaves first.
	TierOrdinary Tier = iota
	// TierDaemonSet is for DaemonSet pods, where they are evicted at all.
	TierDaemonSet
	// TierCritical leaves last: system-node-critical, system-cluster-critical.
	TierCritical
)

// systemCritical is the least priority of Kubernetes' own critical classes.
// https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
const systemCritical = 2_000_000_000

var criticalClasses = sets.New("system-node-critical", "system-cluster-critical")

// TierOf a pod.
func TierOf(p *fleet.Pod) Tier {
	if p.Priority() >= systemCritical {
		return TierCritical
	}
	if p.Spec != nil && criticalClasses.Has(p.Spec.PriorityClassName) {
		return TierCritical
	}
	if IsDaemonSet(p) {
		return TierDaemonSet
	}
	return TierOrdinary
}
