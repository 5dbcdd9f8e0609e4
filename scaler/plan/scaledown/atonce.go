package scaledown

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// No drain's turn bounds nodes without pods, because removing them disturbs nothing. But
// what seems empty may not be. So the number of nodes that are scaled down at once is
// bounded, and that of unready nodes more tightly: what still runs there cannot be seen.

const (
	// scaleDownParallelism is how many nodes are scaled down at once by default, as in
	// Cluster Autoscaler.
	scaleDownParallelism = 10
	// unreadyPart of them may be unready.
	unreadyPart = 10
	// leavesFor is how long a node counts after Auto Scaling has begun to terminate its instance, or
	// has put it into a warm pool instead, unless that is terminated sooner. Without it the next batch
	// would go at the next evaluation; without an end a hook of others could hold up all scale-down.
	leavesFor = time.Minute
)

// atOnce counts the nodes that are being scaled down, and how many may be.
type atOnce struct {
	nodes, unready         int
	mostNodes, mostUnready int
	// frees is when the first of those that Auto Scaling is ending does not count any more.
	frees time.Time
}

func scaleDownLimit(p policy.Policy, drains int) int {
	if p.MaxScaleDownParallelism > 0 {
		return p.MaxScaleDownParallelism
	}
	return max(scaleDownParallelism, 2*drains)
}

// beingScaledDown counts the nodes that are being removed for scale-down. Drains that stand
// still hold no other node back.
func (d *ScaleDown) beingScaledDown() atOnce {
	most := scaleDownLimit(d.Policy, d.DrainLimit())
	count := atOnce{mostNodes: most, mostUnready: max(1, most/unreadyPart)}
	for n := range d.In(cluster.ScalingDown, cluster.Terminating) {
		if n.Cancelled || n.Instance == nil || n.Instance.Live() && d.Contested(n.Instance, n) != nil || n.Stage == cluster.Terminating && !contract.IsScaleDown(n.Mark) {
			continue
		}
		if !n.Instance.Live() {
			until := cluster.FirstKnown(n.Instance.TerminatingSince, d.State.Outlived[n.Instance.ID]).Add(leavesFor)
			if !d.Now.Before(until) {
				continue
			}
			count.frees = cluster.FirstKnown(count.frees, until)
		}
		_, occupied := n.Occupied(d.Now)
		count.add(n, occupied && d.Stuck(n))
	}
	return count
}

// add counts one more node.
func (a *atOnce) add(n *cluster.Node, standsStill bool) {
	if !standsStill {
		a.nodes++
	}
	if !n.Ready {
		a.unready++
	}
}

// full says what a further node waits for; nil where it may go.
func (a *atOnce) full(n *cluster.Node, standsStill bool) verdict.Details {
	switch {
	case !standsStill && a.nodes >= a.mostNodes && a.mostNodes == 1:
		return verdict.Say("no other node is being scaled down")
	case !standsStill && a.nodes >= a.mostNodes:
		return verdict.Say("fewer than {max} nodes are being scaled down", verdict.Max(a.mostNodes))
	case !n.Ready && a.unready >= a.mostUnready && a.mostUnready == 1:
		return verdict.Say("no other node that is not Ready is being scaled down")
	case !n.Ready && a.unready >= a.mostUnready:
		return verdict.Say("fewer than {max} nodes that are not Ready are being scaled down", verdict.Max(a.mostUnready))
	}
	return nil
}
