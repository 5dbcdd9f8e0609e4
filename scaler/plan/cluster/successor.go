package cluster

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// A pod that has been evicted was promised a place, and its successor comes for it: in the
// next moment where a ReplicaSet has it created, and only when the pod has ended where its
// name must be free (StatefulSet) or its Job says podReplacementPolicy: Failed, which may
// be after hours of grace. Until the successor is seen the ending pod holds the place, or
// another node would be scaled down into it and a new one launched.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-replacement-policy

// succeededWithin is how long after endAsked a pod's ReplicaSet may take to create another.
// One that has not done so by then wants fewer.
const succeededWithin = 11 * time.Second

// Unsucceeded are the pods that end while their successors are still to come.
func (d *Cluster) Unsucceeded() map[*fleet.Pod]bool {
	if d.holding != nil {
		return d.holding
	}
	d.holding = map[*fleet.Pod]bool{}
	ending := map[types.UID][]*fleet.Pod{}
	for _, p := range d.Ending.Pods {
		switch {
		case p.Node == "" || p.Owner == nil || drainable.BelongsToNode(p) || d.Expendable(p):
		case p.Owner.Kind == "StatefulSet":
			d.holding[p] = true // its successor has its name
		case !p.Ended():
			ending[p.Owner.UID] = append(ending[p.Owner.UID], p)
		}
	}
	if len(ending) == 0 {
		return d.holding
	}
	running := d.runningOf(ending)
	for owner, list := range ending {
		slices.SortStableFunc(list, func(a, b *fleet.Pod) int { return endAsked(a).Compare(endAsked(b)) })
		for _, p := range d.withoutHeir(owner, list, running[owner]) {
			d.holding[p] = true
		}
	}
	return d.holding
}

// runningOf are the pods of some owners that are not being deleted, the oldest first.
func (d *Cluster) runningOf(owners map[types.UID][]*fleet.Pod) map[types.UID][]*fleet.Pod {
	running := map[types.UID][]*fleet.Pod{}
	for _, p := range d.Pods {
		if p.Owner == nil || !p.Deleted.IsZero() || p.Ended() || owners[p.Owner.UID] == nil {
			continue
		}
		running[p.Owner.UID] = append(running[p.Owner.UID], p)
	}
	for _, list := range running {
		slices.SortStableFunc(list, func(a, b *fleet.Pod) int { return cmp.Compare(a.Created, b.Created) })
	}
	return running
}

// withoutHeir finds those of an owner's ending pods, the first to end first, whose
// successors are not there. Each pod that is younger than the wish for an end answers for
// one end. Where it is known how many the owner wants, no more are to come than it lacks.
func (d *Cluster) withoutHeir(owner types.UID, ending, running []*fleet.Pod) []*fleet.Pod {
	waiting := slices.Clone(ending)
	for _, heir := range running {
		if len(waiting) > 0 && !heir.Created.Time().Before(endAsked(waiting[0])) {
			waiting = waiting[1:]
		}
	}
	if o, known := d.Owners[owner]; known {
		lacks := max(0, int(o.Replicas)-len(running))
		waiting = waiting[max(0, len(waiting)-lacks):]
	}
	return slices.DeleteFunc(waiting, d.succeedsNoMore)
}

// succeedsNoMore reports whether the pod's successor would be there by now, if one was wanted.
func (d *Cluster) succeedsNoMore(p *fleet.Pod) bool {
	if p.Owner.Kind != "ReplicaSet" && p.Owner.Kind != "ReplicationController" {
		return false // a Job may wait for the end, and who knows of others
	}
	due := endAsked(p).Add(succeededWithin)
	d.Clock.At(due)
	return !d.Now.Before(due)
}

// endAsked is when the end of a pod was requested that is being deleted, or up to a second before:
// API servers write whole seconds, each by its own clock. Where the grace period was cut short it
// was later.
func endAsked(p *fleet.Pod) time.Time {
	return p.Deleted.Time().Add(-drainable.GraceOf(p) - time.Second)
}
