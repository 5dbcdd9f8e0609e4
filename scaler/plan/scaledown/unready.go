package scaledown

import (
	"time"

	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// whyScaledDown is what the node's clock, that began at since, has counted.
func whyScaledDown(n *cluster.Node, since time.Time) verdict.Details {
	if n.Stage == cluster.Unready {
		return n.WhyUnready().And(", and unneeded")
	}
	return verdict.Say("it is unneeded since {since}", verdict.Since(since))
}

func unreadyTime(g *cluster.Group, p policy.Policy) time.Duration {
	if g.ScaleDown.UnreadyTime != nil {
		return g.ScaleDown.UnreadyTime.Duration
	}
	return p.UnreadyTime
}

// say settles the verdict of a candidate that stays. Of one that is not Ready this is what
// matters first.
func (c *candidate) say(reason verdict.Reason, details verdict.Details) {
	sayCandidate(c.Node, reason, details)
}

func sayCandidate(n *cluster.Node, reason verdict.Reason, details verdict.Details) {
	if n.Stage == cluster.Unready {
		reason, details = verdict.NodeUnready, n.WhyUnready().Then(details)
	}
	n.Say(reason, details)
}
