package drains

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Where Auto Scaling replaces instances of a group, it counts on the group's size: it launches
// before it ends, or ends and launches. A node that is removed meanwhile is one that it may have
// chosen, or has just launched. So nothing is scaled down there until it is done.

// replacementRest is how long after the last activity of a replacement the next one may follow:
// Auto Scaling pauses between two instances, and does not report for how long.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/asg-max-instance-lifetime.html
const replacementRest = 5 * time.Minute

// WhyReplacing says for what Auto Scaling replaces instances of the group; nil if it does not.
func (d *Drains) WhyReplacing(g *cluster.Group) verdict.Details {
	if r := g.Refresh; r != nil {
		return verdict.Say("an instance refresh is under way ({state})", verdict.State(r.Status))
	}
	r := g.Replacement
	if r == nil {
		return nil
	}
	if !r.Ended.IsZero() {
		end := r.Ended.Add(replacementRest)
		if !d.Now.Before(end) {
			return nil
		}
		d.Clock.At(end)
	}
	if r.Cause == fleet.MaxLifetime {
		return verdict.Say("Auto Scaling replaces instances that have reached their maximum lifetime")
	}
	return verdict.Say("Auto Scaling balances the zones of the group")
}

// refreshed reports whether an instance refresh makes a scale-down needless: it replaces all
// instances of the group, and has begun since. A node that is drained already is removed.
func (d *Drains) refreshed(n *cluster.Node) bool {
	if n.Group.Refresh == nil {
		return false
	}
	report, answered := n.Answered(n.Request.ID)
	return !(answered && report.Phase == contract.PhaseDrained) && !d.Emptied(n)
}
