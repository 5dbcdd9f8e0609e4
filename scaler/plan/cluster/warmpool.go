package cluster

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// An instance that is warmed up boots once, and is then stopped or left running until its group
// grows. Many join the cluster at that first boot; their nodes turn NotReady when they are stopped,
// and may be old when they start again. Such a node is neither upcoming nor broken while it stands
// in the warm pool, and its time to become Ready begins when it leaves the warm pool.
//
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html

// InWarmPool reports whether the node's instance stands in a warm pool.
func (n *Node) InWarmPool() bool { return n.Instance != nil && n.Instance.Warmed() }

// WatchPools notes which instances stand in warm pools: their time has not begun.
func (d *Cluster) WatchPools(unjoined map[string]time.Time) {
	for _, g := range d.Groups {
		for _, i := range g.Instances {
			if i.Warmed() {
				unjoined[i.ID] = time.Time{}
			}
		}
		for _, n := range g.Nodes {
			if n.InWarmPool() {
				n.Say(verdict.NodeInWarmPool, verdict.Say("its instance is in the warm pool of group {group}: {state}", verdict.Group(g.Name), verdict.State(n.Instance.State)))
			}
		}
	}
}

// resting reports whether the instance is a warmed one in its warm pool.
func (n *Node) resting() bool {
	return n.InWarmPool() && (n.Instance.State == "Warmed:Stopped" || n.Instance.State == "Warmed:Hibernated" || n.Instance.State == "Warmed:Running")
}

// LaunchedAt is when a live instance was first seen in its group while it had no
// node that was up, as far as that is known.
func (d *Cluster) LaunchedAt(i *fleet.Instance) (at time.Time, known bool) {
	switch at, known = d.Given.Unjoined[i.ID]; {
	case known && !at.IsZero():
		return at, true
	case known: // it comes out of the warm pool
		return d.Now, true
	}
	// One that was not seen before has not served while it is pending.
	return d.Now, i.Live() && i.State != fleet.InService
}

// DueUp is when a node should be up: its time begins when it registers, or, if it
// has registered in a warm pool, when it leaves that.
func (d *Cluster) DueUp(n *Node) time.Time {
	from := n.Created
	if n.Instance != nil && n.Instance.Live() {
		if at, known := d.LaunchedAt(n.Instance); known && at.After(from) {
			from = at
		}
	}
	return d.After(from, d.Policy.MaxNodeStartupTime)
}
