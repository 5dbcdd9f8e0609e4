package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// After a group has grown or shrunk, or a retirement in it has failed, nothing of it is
// retired for a while: what has just come may be needed, and what has just failed may fail
// again. By default that is each group's own matter; people may want it of the cluster.

// delay is how long groups rest after something.
type delay struct {
	last map[string]time.Time // by group
	rest time.Duration
	what string
}

func (d *decision) delays() []delay {
	return []delay{
		{d.state.GrownAt, d.policy.DelayAfterAdd, "grew"},
		{d.state.ShrunkAt, d.policy.DelayAfterDelete, "shrank"},
		{d.state.FailedAt, d.policy.DelayAfterFailure, "has a node that could not be retired"},
	}
}

// rest is until when nothing of the group is retired, and why; the zero time if it may be.
func (d *decision) rest(g *group) (until time.Time, why string) {
	for _, x := range d.delays() {
		groups := []string{g.Name}
		if !d.policy.DelaysLocal {
			groups = slices.Sorted(maps.Keys(x.last))
		}
		for _, name := range groups {
			at, happened := x.last[name]
			if end := at.Add(x.rest); happened && end.After(until) {
				until, why = end, fmt.Sprintf("group %s %s", name, x.what)
			}
		}
	}
	return until, why
}

// noteShrunk remembers that a group gets smaller by this plan, where that is asked for, and
// where the plan is carried out.
func (d *decision) noteShrunk(g *group) {
	if d.policy.DelayAfterDelete > 0 && !d.rivalled() {
		d.state.ShrunkAt[g.Name] = d.now
	}
}

// noteFailed remembers that a retirement came to nothing. One that a budget does not allow
// has not failed: it holds no other drain back.
func (d *decision) noteFailed(g *group) {
	if d.policy.DelayAfterFailure > 0 && !d.rivalled() {
		d.state.FailedAt[g.Name] = d.now
	}
}

// forgetDelays drops what nobody waits for any more.
func (d *decision) forgetDelays() {
	for _, x := range d.delays()[1:] { // growth is remembered for other reasons too
		maps.DeleteFunc(x.last, func(_ string, at time.Time) bool { return d.now.Sub(at) > x.rest })
	}
}
