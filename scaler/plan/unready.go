package plan

import (
	"fmt"
	"time"
)

// A node that was up and is not Ready any more counts its own time, from when it was Ready
// last: nobody has to remember that. If nobody needs it by the rules that hold for others,
// it is retired like them. Nobody answers the request where the kubelet is gone, and the
// scaler drains it alone: its pods are asked to leave, so that their owners create others,
// and are waited for no longer than their grace period and a bit. Where its group may not
// have fewer nodes, its instance is ended all the same, and Auto Scaling replaces it; but
// not while launches of the group fail.

// unreadySince is since when the node is not Ready.
func (n *node) unreadySince() time.Time {
	if n.ReadySince.IsZero() {
		return n.Created // its kubelet has never reported
	}
	return n.ReadySince
}

func (n *node) whyUnready() string { return "it is not Ready since " + clockTime(n.unreadySince()) }

// recovered says that a node that is being retired has become Ready since that began, and
// that its other clock, that of nodes that nobody needs, has not run out.
func (d *decision) recovered(n *node) bool {
	if !n.Ready || !n.ReadySince.After(n.request.At.Time) {
		return false
	}
	since, ok := d.marked(n)
	return !ok || d.now.Before(since.Add(n.group.unneededTime(d.policy)))
}

// whyRetired is what the node's clock, that began at since, has counted.
func (n *node) whyRetired(since time.Time) string {
	if n.stage == unready {
		return n.whyUnready() + ", and nobody needs it"
	}
	return "nobody has needed it since " + clockTime(since)
}

func (g *group) unreadyTime(p Policy) time.Duration {
	if g.ScaleDown.UnreadyTime != nil {
		return g.ScaleDown.UnreadyTime.Duration
	}
	return p.UnreadyTime
}

// say settles the verdict of a candidate that stays. Of one that is not Ready this is what
// matters first.
func (c *candidate) say(reason Reason, message string) {
	if c.stage == unready {
		reason, message = NodeUnready, fmt.Sprintf("%s; %s", c.whyUnready(), message)
	}
	c.node.say(reason, message)
}
