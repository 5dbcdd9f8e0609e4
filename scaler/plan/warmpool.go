package plan

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// An instance that is warmed up boots once, and is then stopped or left running
// until its group grows. Many join the cluster at that first boot; their nodes
// turn NotReady when they are stopped, and may be old when they start again. Such
// a node is neither coming nor broken while it stands in the pool, and its time to
// become Ready begins when it leaves the pool.
//
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html

// inPool says that the node's instance stands in a warm pool.
func (n *node) inPool() bool { return n.instance != nil && n.instance.Warmed() }

// watchPools notes which instances stand in warm pools: their time has not begun.
func (d *decision) watchPools(unjoined map[string]time.Time) {
	for _, g := range d.groups {
		for _, i := range g.Instances {
			if i.Warmed() {
				unjoined[i.ID] = time.Time{}
			}
		}
		for _, n := range g.nodes {
			if n.inPool() {
				n.say(NodePooled, fmt.Sprintf("its instance stands in the warm pool of group %s: %s", g.Name, n.instance.State))
			}
		}
	}
}

// resting says that the instance has come to rest in its pool.
func (n *node) resting() bool {
	return n.inPool() && (n.instance.State == "Warmed:Stopped" || n.instance.State == "Warmed:Hibernated" || n.instance.State == "Warmed:Running")
}

// launchedAt is when a live instance was first seen in its group while it had no
// node that was up, as far as that is known.
func (d *decision) launchedAt(i *fleet.Instance) (at time.Time, known bool) {
	switch at, known = d.given.Unjoined[i.ID]; {
	case known && !at.IsZero():
		return at, true
	case known: // it comes out of the pool
		return d.now, true
	}
	// One that nobody has seen before has not served while it is pending.
	return d.now, i.Live() && i.State != fleet.InService
}

// dueUp is when a node should be up: its time begins when it registers, or, if it
// has registered in a warm pool, when it leaves that.
func (d *decision) dueUp(n *node) time.Time {
	from := n.Created
	if n.instance != nil && n.instance.Live() {
		if at, known := d.launchedAt(n.instance); known && at.After(from) {
			from = at
		}
	}
	return d.after(from, d.policy.MaxNodeStartupTime)
}
