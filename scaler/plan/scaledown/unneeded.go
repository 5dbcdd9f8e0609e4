package scaledown

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// runClock starts the node's clock, or scales the node down if that has run out.
func (r *nodeSearch) runClock(c *candidate) {
	n, since, ok := c.Node, c.since, !c.since.IsZero()
	if n.Stage == cluster.Unready {
		since = n.UnreadySince()
		r.whenDue(c, since, c.due(r.Policy), n.WhyUnready().And(", and unneeded"))
		return
	}
	if from := n.Settled(r.Policy); !ok && r.Now.Before(from) {
		r.Clock.At(from)
		n.Say(verdict.NodeUnneeded, verdict.Say("it is Ready since {since}", verdict.Since(n.ReadySince)).
			Then(verdict.Say("its unneeded time starts at {until} if it is unneeded then", verdict.Until(from))))
		return
	}
	if ok {
		r.whenDue(c, since, c.due(r.Policy), verdict.Say("unneeded since {since}", verdict.Since(since)))
		return
	}
	since = r.Now.Truncate(time.Second)
	r.Do(action.Mark{Group: n.Group.Name, Node: n.Ref(), Since: since})
	r.Clock.At(since.Add(n.Group.UnneededTime(r.Policy)))
	if !r.sayStopped(c, unneededNow) {
		n.Say(verdict.NodeUnneeded, unneededNow.Then(verdict.Say("scaled down after {after}", verdict.After(n.Group.UnneededTime(r.Policy)))))
	}
}

var unneededNow = verdict.Say("unneeded from now on")

// sayStopped gives the candidate its verdict where nothing of its group is scaled down now; text is
// what its clock counts.
func (r *nodeSearch) sayStopped(c *candidate, text verdict.Details) bool {
	why := r.whyStopped(c.Node)
	if why == nil {
		return false
	}
	reason := verdict.NodeScaleDownStopped
	switch {
	case why.Equal(r.CutOff(c.Node)):
		reason = verdict.NodeZoneUnready
	case c.Stage == cluster.Unready:
		reason = verdict.NodeUnready
	}
	c.Node.Say(reason, text.Then(why))
	return true
}

// due is when the clock of a node that has one runs out.
func (c *candidate) due(p policy.Policy) time.Time {
	if c.Stage == cluster.Unready {
		return c.since.Add(unreadyTime(c.Group, p))
	}
	return c.since.Add(c.Group.UnneededTime(p))
}

// whenDue scales the node down if its clock has run out and nothing else holds it up. text
// says what the clock counts.
func (r *nodeSearch) whenDue(c *candidate, since, due time.Time, text verdict.Details) {
	n, waits := c.Node, verdict.NodeUnneeded
	if n.Stage == cluster.Unready {
		waits = verdict.NodeUnready
	}
	rested, why := r.Rest(n.Group)
	switch {
	case r.sayStopped(c, text):
	case r.Now.Before(due):
		r.Clock.At(due)
		n.Say(waits, text.Then(verdict.Say("scaled down at {until} if it still is", verdict.Until(due))))
	case r.Now.Before(rested):
		r.Clock.At(rested)
		n.Say(waits, text.Then(why.And(", so it is scaled down at {until} at the earliest", verdict.Until(rested))))
	default:
		r.depart(c, since, whyScaledDown(n, since), text, waits)
	}
}

// take spends what the node's drain costs: of the budgets, beside all drains that are
// under way, and of the room on nodes that are Ready. Where there is too little nothing is
// spent: the node waits for the others, or is blocked where a budget allows nothing anyway.
// A node with more pods than their budget allows goes if no other spends of that budget:
// its pods leave one after the other.
func (r *nodeSearch) take(c *candidate) (verdict.Reason, verdict.Details) {
	for _, p := range c.evicted {
		if r.Budgets.Refuses(p) {
			return r.refused(p)
		}
	}
	if p, over := overspends(r.Budgets, c.evicted, r.Budgets.Spent); over {
		return r.refused(p)
	}
	if reason, why := r.goNow(c); reason != "" {
		return reason, why
	}
	for _, p := range c.evicted {
		r.Budgets.Take(p)
	}
	return "", nil
}

// refused says what becomes of a node with a pod that a budget does not let go beside
// other drains.
func (r *nodeSearch) refused(p *fleet.Pod) (verdict.Reason, verdict.Details) {
	budgets := r.Budgets.Guarding(p)
	if r.Unspent().Refuses(p) {
		return verdict.NodeBlocked, keptByBudget(p, budgets...)
	}
	return verdict.NodeUnneeded, verdict.Say("it waits for other drains: budget {budgets} lets pod {pod} leave after them", verdict.Budgets(budgets), verdict.Pod(p.Key()))
}

func keptByBudget(p *fleet.Pod, budgets ...string) verdict.Details {
	return verdict.Say("pod {pod} may not leave: budget {budgets} allows no further disruption", verdict.Pod(p.Key()), verdict.Budgets(budgets))
}

// overspends finds the first of a node's pods for which those before it leave nothing of its
// budget. Only pods that count are considered, and nothing is spent.
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
