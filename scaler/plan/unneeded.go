package plan

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// marked is since when the node is unneeded. A mark that does not parse is none.
func marked(n *node) (since time.Time, ok bool) {
	since, ok, err := contract.Unneeded(n.Taints)
	return since, ok && err == nil
}

// unneeded starts the node's clock, or retires it if that has run out.
func (r *retirement) unneeded(c *candidate) {
	n, since, ok := c.node, c.since, !c.since.IsZero()
	if n.stage == unready {
		since = n.unreadySince()
		r.whenDue(c, since, since.Add(n.group.unreadyTime(r.policy)), n.whyUnready()+", and nobody needs it")
		return
	}
	if from := n.settled(r.policy); !ok && r.now.Before(from) {
		r.clock.at(from)
		n.say(NodeWaiting, fmt.Sprintf("it is Ready since %s; its clock starts at %s if nobody needs it then", clockTime(n.ReadySince), clockTime(from)))
		return
	}
	if !ok {
		since = r.now.Truncate(time.Second)
		r.do(Mark{Group: n.group.Name, Node: n.ref(), Since: since})
	}
	due := since.Add(n.group.unneededTime(r.policy))
	if !ok {
		r.clock.at(due)
		n.say(NodeWaiting, fmt.Sprintf("unneeded from now on; it goes when it has been so for %s", n.group.unneededTime(r.policy)))
		return
	}
	r.whenDue(c, since, due, "unneeded since "+clockTime(since))
}

// whenDue retires the node if its clock has run out and nothing else holds it up. text
// says what the clock counts.
func (r *retirement) whenDue(c *candidate, since, due time.Time, text string) {
	n, waits := c.node, NodeWaiting
	if n.stage == unready {
		waits = NodeUnready
	}
	rested, why := r.rest(n.group)
	_, occupied := n.occupied(r.now)
	switch {
	case r.now.Before(due):
		r.clock.at(due)
		n.say(waits, fmt.Sprintf("%s; it goes at %s if it still is", text, clockTime(due)))
	case r.now.Before(rested):
		r.clock.at(rested)
		n.say(waits, fmt.Sprintf("%s; %s, so it goes at %s at the earliest", text, why, clockTime(rested)))
	case occupied && r.draining >= r.allowed:
		n.say(waits, fmt.Sprintf("%s; it waits until fewer than %d drains are under way", text, r.allowed))
	default:
		if reason, why := r.take(c); reason != "" {
			n.say(reason, fmt.Sprintf("%s; %s", text, why))
			return
		}
		r.retire(n, since, occupied)
		n.say(NodeRetiring, text)
	}
}

// take spends what the node's drain costs: of the budgets, beside all drains that are
// under way, and of the room on nodes that are Ready. Where there is too little nothing is
// spent: the node waits for the others, or is blocked where a budget allows nothing anyway.
func (r *retirement) take(c *candidate) (Reason, string) {
	var back []func()
	for _, t := range c.movers {
		if !r.budgets.Refuses(t.Pod) {
			back = append(back, r.budgets.Take(t.Pod))
			continue
		}
		for _, undo := range slices.Backward(back) {
			undo()
		}
		budget := listed(r.budgets.Guarding(t.Pod))
		if r.unspent().Refuses(t.Pod) {
			return NodeBlocked, fmt.Sprintf("pod %s may not leave: budget %s allows no further disruption", t.Pod.Key(), budget)
		}
		return NodeWaiting, fmt.Sprintf("it waits for other drains: budget %s lets pod %s leave after them", budget, t.Pod.Key())
	}
	reason, why := r.goNow(c)
	if reason != "" {
		for _, undo := range slices.Backward(back) {
			undo()
		}
	}
	return reason, why
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
