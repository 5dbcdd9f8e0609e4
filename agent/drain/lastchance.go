package drain

import (
	"cmp"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/drainable"
)

// lastChance reports whether the deadline is so near that pods which are kept are
// deleted, so that they hear of their end. Only deadlines that were announced and are still to come
// count, not the agent's own guess, and of a short time the last quarter at most.
func (d *decision) lastChance() bool {
	var deadline, since time.Time
	for _, n := range d.grounds() {
		if d.response(n).LastChance == notice.Delete && n.Deadline.After(d.Now) && notice.Earliest(deadline, n.Deadline) != deadline {
			deadline, since = n.Deadline, d.sinceFor(n)
		}
	}
	if deadline.IsZero() {
		return false
	}
	whole := max(0, deadline.Sub(since))
	return d.due(deadline.Add(-min(d.policy.LastChanceTime, whole/4)))
}

// deletable reports whether a pod was asked to leave and is kept: by a budget, for want
// of a right, by failure after failure. One whose deletion is forbidden too is
// asked to leave as before.
func (t Try) deletable() bool {
	return !t.Sent && !t.Undeletable && (t.stuck() || t.Deleted && t.Outcome != Accepted && t.Outcome != Gone)
}

// deletions are the deletions that are due, of all these pods at once: they are
// past their budgets, so none waits for a turn.
func (d *decision) deletions(pods []candidate, t tally) []Evict {
	var steps []Evict
	for _, c := range pods {
		again := c.try.At
		if c.try.Deleted {
			again = again.Add(spread(c.Pod.UID, hastyPause))
		}
		if d.due(again) {
			steps = append(steps, d.delete(c, t))
		}
	}
	return steps
}

func (d *decision) delete(c candidate, t tally) Evict {
	step := d.evict(c, t)
	step.Delete, step.Past = true, c.try.keeper()
	if c.try.Outcome == Refused {
		step.Overrides = drainable.RuleBudget
	}
	return step
}

// keeper says what keeps a pod.
func (t Try) keeper() string {
	switch {
	case t.Budget != "":
		return "budget " + t.Budget
	case t.Deleted:
		return cmp.Or(t.Message, string(t.Outcome))
	}
	return t.String()
}
