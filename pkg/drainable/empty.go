package drainable

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// MustBePlacedAgain reports whether the pod needs a place elsewhere if its node goes.
// Static pods and those of DaemonSets leave with the node, ended ones need
// none, and one that is being deleted runs nowhere else: its successor does, which its
// owner has created already, or will when it has ended.
func MustBePlacedAgain(p *fleet.Pod) bool {
	return !BelongsToNode(p) && !p.Ended() && p.Deleted.IsZero()
}

// BelongsToNode reports whether the pod is there because the node is: a static pod or one
// of a DaemonSet.
func BelongsToNode(p *fleet.Pod) bool { return IsMirror(p) || IsDaemonSet(p) }

// Occupies reports whether the node is not empty while this pod is there: it must be
// placed again, or it is being deleted and its time to go still runs.
// Neither Drained nor a termination comes before the last such pod has gone.
//
// One that has ended and is being deleted is waited for, too: its kubelet has volumes to
// unmount and the object to take away. If the machine goes before, the object stays until
// the garbage collector finds it, a minute later, and a StatefulSet makes no new pod of
// that name so long.
func Occupies(p *fleet.Pod, now time.Time) bool {
	if BelongsToNode(p) || p.Ended() && p.Deleted.IsZero() {
		return false
	}
	return !IsLongTerminating(p, now)
}

// IsDaemonSet reports whether the pod belongs to a DaemonSet, or says of itself that
// it shall be treated as if.
func IsDaemonSet(p *fleet.Pod) bool {
	if p.Annotations[contract.AnnotationDaemonSetPod] == "true" {
		return true
	}
	return p.Owner != nil && p.Owner.Kind == "DaemonSet"
}

// IsMirror reports whether the pod is static: its kubelet runs it from a file, and it shows in
// the API only.
func IsMirror(p *fleet.Pod) bool {
	_, ok := p.Annotations[contract.AnnotationMirror]
	return ok
}

// Overtime is how long after its grace period a pod may still be there before
// nobody waits for it any more. A deletionTimestamp is the moment at which the
// grace period ends: the API server adds the pod's grace to the time of the
// request.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
const Overtime = 30 * time.Second

// IsLongTerminating reports whether the pod should have gone some time ago.
func IsLongTerminating(p *fleet.Pod, now time.Time) bool {
	return !p.Deleted.IsZero() && now.Sub(p.Deleted.Time()) >= Overtime
}
