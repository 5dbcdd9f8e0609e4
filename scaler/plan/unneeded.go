package plan

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// marked is since when the node is unneeded. A mark that does not parse is none, and neither
// is one dated ahead, by another clock: its own would not run before that.
func (d *decision) marked(n *node) (since time.Time, ok bool) {
	since, ok, err := contract.Unneeded(n.Taints)
	if err != nil || since.After(d.now) {
		return time.Time{}, false
	}
	return since, ok
}

// unneeded starts the node's clock, or retires it if that has run out.
func (r *retirement) unneeded(c *candidate) {
	n, since, ok := c.node, c.since, !c.since.IsZero()
	if n.stage == unready {
		since = n.unreadySince()
		r.whenDue(c, since, c.due(r.policy), n.whyUnready()+", and nobody needs it")
		return
	}
	if from := n.settled(r.policy); !ok && r.now.Before(from) {
		r.clock.at(from)
		n.say(NodeWaiting, fmt.Sprintf("it is Ready since %s; its clock starts at %s if nobody needs it then", clockTime(n.ReadySince), clockTime(from)))
		return
	}
	if ok {
		r.whenDue(c, since, c.due(r.policy), "unneeded since "+clockTime(since))
		return
	}
	since = r.now.Truncate(time.Second)
	r.do(Mark{Group: n.group.Name, Node: n.ref(), Since: since})
	r.clock.at(since.Add(n.group.unneededTime(r.policy)))
	if !r.pauses(c, "unneeded from now on") {
		n.say(NodeWaiting, fmt.Sprintf("unneeded from now on; it goes when it has been so for %s", n.group.unneededTime(r.policy)))
	}
}

// pauses says of a candidate that nothing of its group is retired now, where that is so;
// text is what its clock counts.
func (r *retirement) pauses(c *candidate, text string) bool {
	why := r.stopped(c.node)
	if why == "" {
		return false
	}
	reason := NodeStays
	switch {
	case why == r.cutOff(c.node):
		reason = NodeZoneUnready
	case c.stage == unready:
		reason = NodeUnready
	}
	c.node.say(reason, text+"; "+why)
	return true
}

// due is when the clock of a node that has one runs out.
func (c *candidate) due(p Policy) time.Time {
	if c.stage == unready {
		return c.since.Add(c.group.unreadyTime(p))
	}
	return c.since.Add(c.group.unneededTime(p))
}

// whenDue retires the node if its clock has run out and nothing else holds it up. text
// says what the clock counts.
func (r *retirement) whenDue(c *candidate, since, due time.Time, text string) {
	n, waits := c.node, NodeWaiting
	if n.stage == unready {
		waits = NodeUnready
	}
	rested, why := r.rest(n.group)
	switch {
	case r.pauses(c, text):
	case r.now.Before(due):
		r.clock.at(due)
		n.say(waits, fmt.Sprintf("%s; it goes at %s if it still is", text, clockTime(due)))
	case r.now.Before(rested):
		r.clock.at(rested)
		n.say(waits, fmt.Sprintf("%s; %s, so it goes at %s at the earliest", text, why, clockTime(rested)))
	default:
		r.depart(c, since, n.whyRetired(since), text, waits)
	}
}

// take spends what the node's drain costs: of the budgets, beside all drains that are
// under way, and of the room on nodes that are Ready. Where there is too little nothing is
// spent: the node waits for the others, or is blocked where a budget allows nothing anyway.
// A node with more pods than their budget allows goes if no other spends of that budget:
// its pods leave one after the other.
func (r *retirement) take(c *candidate) (Reason, string) {
	for _, p := range c.evicted {
		if r.budgets.Refuses(p) {
			return r.refused(p)
		}
	}
	if p, over := overspends(r.budgets, c.evicted, r.budgets.Spent); over {
		return r.refused(p)
	}
	if reason, why := r.goNow(c); reason != "" {
		return reason, why
	}
	for _, p := range c.evicted {
		r.budgets.Take(p)
	}
	return "", ""
}

// refused says what becomes of a node with a pod that a budget does not let go beside
// other drains.
func (r *retirement) refused(p *fleet.Pod) (Reason, string) {
	budget := listed(r.budgets.Guarding(p))
	if r.unspent().Refuses(p) {
		return NodeBlocked, fmt.Sprintf("pod %s may not leave: budget %s allows no further disruption", p.Key(), budget)
	}
	return NodeWaiting, fmt.Sprintf("it waits for other drains: budget %s lets pod %s leave after them", budget, p.Key())
}

// overspends finds the first of a node's pods for which those before it leave nothing of
// its budget. Only pods that count are looked at, and nothing is spent.
func overspends(budgets *drainable.Budgets, pods []*fleet.Pod, counts func(*fleet.Pod) bool) (first *fleet.Pod, over bool) {
	var counted []*fleet.Pod // asked before the first is taken, which changes what counts
	for _, p := range pods {
		if counts(p) {
			counted = append(counted, p)
		}
	}
	var back []func()
	defer func() {
		for _, undo := range slices.Backward(back) {
			undo()
		}
	}()
	for _, p := range counted {
		if budgets.Refuses(p) {
			return p, true
		}
		back = append(back, budgets.Take(p))
	}
	return nil, false
}

// settleTime is how long a node is Ready before its clock may start: the pods
// that it came for are bound in its first seconds, and not always where this
// plan would put them. To mark it at once would be two patches for nothing.
const settleTime = 10 * time.Second

// settled is when the node's clock may start at the earliest.
func (n *node) settled(p Policy) time.Time {
	return n.ReadySince.Add(min(settleTime, n.group.unneededTime(p)))
}

func (g *group) unneededTime(p Policy) time.Duration {
	if g.ScaleDown.UnneededTime != nil {
		return g.ScaleDown.UnneededTime.Duration
	}
	return p.UnneededTime
}
