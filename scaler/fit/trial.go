package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Trials are what-ifs in which nodes are emptied: pods leave where they are, and seek places
// on nodes that stay. A Row may be used in them, though it keeps refusals: a place that the
// trial itself has changed, or closed, is asked again in the next one.

// Try begins a trial. Revert to the mark takes it back; otherwise it stands.
func (c *Cluster) Try() Mark {
	c.trials++
	c.trial = c.trials
	return c.Fork()
}

// Stand ends the trials: what they have left is as if it had been so before.
func (c *Cluster) Stand() { c.trial = 0 }

// Settle forgets how to undo what was done so far. No what-if that began before may be undone
// any more.
func (c *Cluster) Settle() { c.log, c.undos = c.log[:0], c.undos[:0] }

// tried reports whether the trial that goes on has changed the place.
func (c *Cluster) tried(p *Place) bool { return c.trial > 0 && p.touched == c.trial }

// Close keeps further pods off a place in rows, as its node is to be removed. The node is
// there until then, and kube-scheduler counts its domains for spread, so they count here too,
// with no pod in them that moves, unless the spread honors taints: then the node counts no
// more. When it has been removed it does not count for any pod; that allows more pods in the
// others and never fewer.
func (c *Cluster) Close(p *Place) {
	c.log = append(c.log, change{place: p, what: shut})
	c.shut(p, true)
}

// Reopen lets pods come again to a place that was closed. Rows do not notice.
func (c *Cluster) Reopen(p *Place) {
	c.log = append(c.log, change{place: p, what: reopened})
	c.shut(p, false)
}

// shut closes a place or opens it, and has it vote where it may then.
func (c *Cluster) shut(p *Place, closed bool) {
	p.closed, p.touched = closed, c.trial
	c.steps += int64(1 + len(c.wary))
	changed := slices.DeleteFunc(slices.Clone(c.wary), func(e *electorate) bool { return c.elects(e, p) == p.votes[e.id] })
	if len(changed) == 0 {
		return
	}
	c.tallyAll(p, -1)
	for _, e := range changed {
		c.enroll(e, p, -1)
		p.votes[e.id] = !p.votes[e.id]
		c.enroll(e, p, 1)
	}
	c.tallyAll(p, 1)
}

// tallyAll counts the pods of a place in, or out by -1.
func (c *Cluster) tallyAll(p *Place, n int32) {
	for t := range p.residents() {
		joins := c.members[t.Class.id].joins
		c.steps += counting(len(joins))
		for _, tally := range joins {
			tally.add(p, n)
		}
	}
}

// stays reports whether what refuses a class at the place, by pods that are in the same
// domain, does so for as long as the place is open: in a trial pods leave other nodes of it.
func (c *Cluster) stays(topology string) bool {
	return c.trial == 0 || topology == corev1.LabelHostname
}
