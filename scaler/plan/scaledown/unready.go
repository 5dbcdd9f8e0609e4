package scaledown

import (
	"fmt"
	"time"

	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// whyRetired is what the node's clock, that began at since, has counted.
func whyRetired(n *cluster.Node, since time.Time) string {
	if n.Stage == cluster.Unready {
		return n.WhyUnready() + ", and nobody needs it"
	}
	return "nobody has needed it since " + verdict.ClockTime(since)
}

func unreadyTime(g *cluster.Group, p policy.Policy) time.Duration {
	if g.ScaleDown.UnreadyTime != nil {
		return g.ScaleDown.UnreadyTime.Duration
	}
	return p.UnreadyTime
}

// say settles the verdict of a candidate that stays. Of one that is not Ready this is what
// matters first.
func (c *candidate) say(reason verdict.Reason, message string) {
	if c.Stage == cluster.Unready {
		reason, message = verdict.NodeUnready, fmt.Sprintf("%s; %s", c.WhyUnready(), message)
	}
	c.Node.Say(reason, message)
}
