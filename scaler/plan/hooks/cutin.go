package hooks

import (
	"cmp"
	"maps"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// What answers lifecycle events, such as a Node Termination Handler in queue mode, completes a hook
// of ours as soon as it thinks that it may, and pods are cut off. AWS does not say who completed a
// hook. So an instance that terminates goes on although we did not complete its hook, and its time was
// not over by far, is what shows it. Anything that may have another cause is not reported.

const (
	// cutInTold is how long it is reported of a group, and how long nothing else of it is.
	cutInTold = time.Hour
	// seenEarly is how soon after its termination began an instance must have been seen with the hook:
	// one that people add later does not hold it.
	seenEarly = time.Minute
	// A share of a hook's time, and at least this, is left out: clocks differ.
	cutInMargin, cutInShare = 30 * time.Second, 3
)

// WatchCompletions finds instances whose hook something else completed.
//
// This leader has to have seen the instance held, and after the calls of a leader before it were
// answered: that one may have completed the hook and not written it down.
func (d *Hooks) WatchCompletions() {
	for group, cut := range d.State.CutIn {
		if over := cut.At.Add(cutInTold); !d.Now.Before(over) {
			delete(d.State.CutIn, group)
		} else {
			d.Clock.At(over)
		}
	}
	there, held := map[string]bool{}, map[string]time.Time{}
	for _, g := range d.Groups {
		there[g.Name] = true
		for i := range g.Instances {
			d.watch(g, &g.Instances[i], held)
		}
	}
	d.State.Held = held
	maps.DeleteFunc(d.State.CutIn, func(group string, _ fleet.CutIn) bool { return !there[group] })
}

// watch notes of an instance which hooks of ours hold it, and what became of those that did.
func (d *Hooks) watch(g *cluster.Group, i *fleet.Instance, held map[string]time.Time) {
	if g.HooksUnknown || d.Leads.IsZero() {
		return
	}
	for _, h := range g.Hooks {
		if h.Transition != fleet.OnTerminate || !d.Ours(h) {
			continue
		}
		key := fleet.HeartbeatKey(i.ID, h.Name)
		since, known := d.Given.Held[key]
		_, before := d.Given.Completed[key]
		_, now := d.State.Completed[key]
		waits := i.State == fleet.Terminating || i.State == fleet.TerminatingWait
		switch settled := d.Leads.Add(cluster.SettlesIn); {
		case waits && (before || now), i.Terminating() && known && since.IsZero():
			held[key] = time.Time{}
		case waits && known && !since.Before(settled):
			held[key] = since
		case waits && !d.Now.Before(settled):
			held[key] = d.Now
		case i.State == fleet.TerminatingProceed && known:
			held[key] = time.Time{}
			if !before && !since.Before(settled) && d.mustBeCutIn(g, i, since) {
				d.tellCutIn(g, i, h)
			}
		}
	}
}

// mustBeCutIn reports whether an instance that was held from a moment on and goes on can have been let
// go by no timeout.
func (d *Hooks) mustBeCutIn(g *cluster.Group, i *fleet.Instance, held time.Time) bool {
	if !i.TerminatingExact || held.Sub(i.TerminatingSince) > seenEarly {
		return false
	}
	for _, h := range g.Hooks {
		if h.Transition != fleet.OnTerminate || !d.Ours(h) && h.Default != cluster.Abandons {
			continue // one of others ends its own wait alone
		}
		least := h.Heartbeat.Duration
		if !d.Now.Before(i.TerminatingSince.Add(least - max(cutInMargin, least/cutInShare))) {
			return false
		}
	}
	return true
}

// tellCutIn reports it; of several at once the first by name, in whatever order they are listed.
func (d *Hooks) tellCutIn(g *cluster.Group, i *fleet.Instance, h fleet.Hook) {
	cut := fleet.CutIn{At: d.Now, Instance: i.ID, Hook: h.Name}
	told, was := d.State.CutIn[g.Name]
	if was && (!told.At.Equal(d.Now) || cmp.Or(cmp.Compare(told.Instance, cut.Instance), cmp.Compare(told.Hook, cut.Hook)) <= 0) {
		return
	}
	d.State.CutIn[g.Name] = cut
	d.Clock.At(d.Now.Add(cutInTold))
}
