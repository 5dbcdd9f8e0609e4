package launch

import (
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// After a group has grown or shrunk, or a scale-down in it has failed, nothing of it is
// scaled down for a while: what has just come may be needed, and what has just failed may fail
// again. By default that is each group's own matter; people may want it of the cluster.

// delay is for how long groups are not scaled down after something.
type delay struct {
	last map[string]time.Time // by group
	rest time.Duration
	what string
}

func (d *Launches) delays() []delay {
	return []delay{
		{d.State.GrownAt, d.Policy.DelayAfterAdd, "group {group} grew"},
		{d.State.ShrunkAt, d.Policy.DelayAfterDelete, "group {group} shrank"},
		{d.State.FailedAt, d.Policy.DelayAfterFailure, "group {group} has a node that could not be scaled down"},
	}
}

// Rest is until when nothing of the group is scaled down, and why; the zero time if it may be.
func (d *Launches) Rest(g *cluster.Group) (until time.Time, why verdict.Details) {
	for _, x := range d.delays() {
		groups := []string{g.Name}
		if !d.Policy.DelaysLocal {
			groups = slices.Sorted(maps.Keys(x.last))
		}
		for _, name := range groups {
			at, happened := x.last[name]
			if end := at.Add(x.rest); happened && end.After(until) {
				until, why = end, verdict.Say(x.what, verdict.Group(name))
			}
		}
	}
	return until, why
}

// NoteShrunk persists that a group gets smaller by this plan, where that is asked for, and where
// the plan is carried out.
func (d *Launches) NoteShrunk(g *cluster.Group) {
	if d.Policy.DelayAfterDelete > 0 && !d.OtherAutoscalerActs() {
		d.State.ShrunkAt[g.Name] = d.Now
	}
}

// NoteFailed persists that a scale-down came to nothing. One that a budget does not allow has not
// failed: it holds no other drain back.
func (d *Launches) NoteFailed(g *cluster.Group) {
	if d.Policy.DelayAfterFailure > 0 && !d.OtherAutoscalerActs() {
		d.State.FailedAt[g.Name] = d.Now
	}
}

// ForgetDelays drops what nothing waits for any more.
func (d *Launches) ForgetDelays() {
	for _, x := range d.delays()[1:] { // growth is persisted for other reasons too
		maps.DeleteFunc(x.last, func(_ string, at time.Time) bool { return d.Now.Sub(at) > x.rest })
	}
}
