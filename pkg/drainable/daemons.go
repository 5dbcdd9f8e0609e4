package drainable

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// DaemonSetEviction says which pods of DaemonSets a drain evicts.
type DaemonSetEviction int

const (
	// LeaveDaemonSets: none; they leave with their node.
	LeaveDaemonSets DaemonSetEviction = iota
	// EvictAsking: those whose annotation asks for it.
	EvictAsking
	// EvictAll: all but those whose annotation forbids it.
	EvictAll
)

// daemonSet pods leave with their node: those that tolerate its draining taint
// would come straight back. The others are evicted where that is asked for, and
// then without a fight: one that its owner would keep stays.
func daemonSet(q *Question) (Outcome, string) {
	if !IsDaemonSet(q.Pod) {
		return "", ""
	}
	if q.Policy.DaemonSets.evicts(q.Pod) {
		return Leave, "it belongs to a DaemonSet, and its eviction is asked for"
	}
	return Skip, "it belongs to a DaemonSet"
}

func (e DaemonSetEviction) evicts(p *fleet.Pod) bool {
	if e == LeaveDaemonSets || p.Ended() || toleratesDraining(p) {
		return false
	}
	switch contract.SafeToEvictOf(p.Annotations) {
	case contract.SafeNo, contract.SafeOnCompletion:
		return false
	}
	switch p.Annotations[contract.AnnotationEvictDaemonSetPod] {
	case "true":
		return true
	case "false":
		return false
	}
	return e == EvictAll
}

// toleratesDraining reports whether the pod may come back to a node that drains, for
// one kind of drain at least. The DaemonSet's controller has its pods tolerate cordons.
func toleratesDraining(p *fleet.Pod) bool {
	_, tolerates := tolerationOf(p, contract.TaintDraining)
	return tolerates
}

// tolerationOf finds by what a pod tolerates the taint of a key, of one value at least, that
// keeps new pods away.
func tolerationOf(p *fleet.Pod, key string) (corev1.Toleration, bool) {
	if p.Spec == nil {
		return corev1.Toleration{}, false
	}
	i := slices.IndexFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return toleratesKey(t, key) })
	if i < 0 {
		return corev1.Toleration{}, false
	}
	return p.Spec.Tolerations[i], true
}

func toleratesKey(t corev1.Toleration, key string) bool {
	if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	return t.Key == key || t.Key == "" && t.Operator == corev1.TolerationOpExists
}

// TolerationsAsked are those of a pod that make a difference to a drain: there are two at most, and a
// pod may have tens of thousands.
func TolerationsAsked(all []corev1.Toleration) []corev1.Toleration {
	var asked []corev1.Toleration
	for _, key := range []string{contract.TaintDraining, corev1.TaintNodeUnschedulable} {
		of := func(t corev1.Toleration) bool { return toleratesKey(t, key) }
		if i := slices.IndexFunc(all, of); i >= 0 && !slices.ContainsFunc(asked, of) {
			asked = append(asked, all[i])
		}
	}
	return asked
}
