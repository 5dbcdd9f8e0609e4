package drainable

import (
	"fmt"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// Owners of pods are asked about where people want a least number of replicas. That a
// ReplicaSet or ReplicationController is gone, and its pod is not, lasts seconds: the
// garbage collector deletes the pod, and where it shall not, it takes the owner's name off,
// so that the pod has no controller. Other kinds of owners are therefore not watched.
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/

// ownerShows is the age from which a pod's owner is known if it is there: pods and owners
// are watched apart.
const ownerShows = time.Minute

func controllerNotFound(q *Question) (Outcome, string) {
	if !q.Policy.SkipCustomControllers || !q.ownerMissing() || q.Now.Before(OwnerDue(q.Pod)) {
		return "", ""
	}
	return Block, fmt.Sprintf("its %s %s is gone and would not create it again", q.Pod.Owner.Kind, q.Pod.Owner.Name)
}

func minReplicas(q *Question) (Outcome, string) {
	if q.Policy.MinReplicas == 0 || !hasReplicas(q.Pod) {
		return "", ""
	}
	owner, known := q.Owners[q.Pod.Owner.UID]
	if !known || int(owner.Replicas) >= q.Policy.MinReplicas {
		return "", ""
	}
	return Block, fmt.Sprintf("its %s %s wants %d, fewer than %d", q.Pod.Owner.Kind, q.Pod.Owner.Name, owner.Replicas, q.Policy.MinReplicas)
}

// ownerMissing reports whether the pod's owner would be known if it existed, and is not.
func (q *Question) ownerMissing() bool {
	if q.Owners == nil || !hasReplicas(q.Pod) {
		return false
	}
	_, known := q.Owners[q.Pod.Owner.UID]
	return !known
}

// OwnerDue is when the owner of a pod is known at the latest, if it exists.
func OwnerDue(p *fleet.Pod) time.Time { return p.Created.Time().Add(ownerShows) }

// hasReplicas reports whether a pod's owner is of a kind that says how many there shall be, and
// that is watched. One that has ended disturbs nobody.
func hasReplicas(p *fleet.Pod) bool {
	if p.Owner == nil || p.Ended() {
		return false
	}
	group, _, grouped := strings.Cut(p.Owner.APIVersion, "/")
	switch p.Owner.Kind {
	case "ReplicationController":
		return !grouped
	case "ReplicaSet":
		return group == "apps"
	}
	return false
}
