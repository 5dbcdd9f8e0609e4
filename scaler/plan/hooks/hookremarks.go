package hooks

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// noteRetained tells of the instances that were kept when a hook was abandoned. They
// are never completed or ended by us: somebody wants to look at them.
func (d *Hooks) noteRetained(g *cluster.Group) {
	for _, i := range g.Instances {
		if i.Retained() {
			g.Retained = append(g.Retained, i.ID)
		}
	}
	for _, n := range g.Nodes {
		if n.Instance.Retained() {
			n.Say(verdict.NodeRetained, fmt.Sprintf("its instance is %s: it is paid for and counts for nothing until somebody terminates it", n.Instance.State))
		}
	}
}

// HookRemarks are what people should know of the group's hooks and what those left
// behind, and the verdict of a group of which nothing weightier is to be said.
func (d *Hooks) HookRemarks(g *cluster.Group) (reason verdict.Reason, notes []string) {
	if len(g.Retained) > 0 {
		reason = verdict.GroupRetains
		notes = append(notes, fmt.Sprintf("%s %s retained after a hook was abandoned: paid for, counting for nothing, until somebody terminates %s",
			verdict.Listed(verdict.Some(g.Retained)), verdict.Plural(len(g.Retained), "is", "are"), verdict.Plural(len(g.Retained), "it", "them")))
	}
	if g.HooksUnknown || len(d.Policy.TerminationHooks) == 0 {
		return reason, notes
	}
	why, texts := d.terminationRemarks(g)
	if reason == "" {
		reason = why
	}
	return reason, append(notes, texts...)
}

// terminationRemarks say what follows from the hooks that hold, or do not hold, the
// terminations of a group.
func (d *Hooks) terminationRemarks(g *cluster.Group) (reason verdict.Reason, notes []string) {
	var ours []fleet.Hook
	var foreign []string
	for _, h := range g.Hooks {
		switch {
		case h.Transition != fleet.OnTerminate:
		case d.Ours(h):
			ours = append(ours, h)
		default:
			foreign = append(foreign, h.Name)
		}
	}
	switch {
	case len(ours) > 0:
		for _, h := range ours {
			notes = append(notes, d.hookFaults(h)...)
		}
		if len(notes) > 0 {
			reason = verdict.GroupHookAmiss
		}
		return reason, notes
	case len(foreign) > 0:
		return verdict.GroupForeignHook, []string{fmt.Sprintf("its terminations are held by %s alone, which is not ours to complete", verdict.Listed(foreign))}
	}
	return verdict.GroupHookMissing, []string{fmt.Sprintf("no hook %s holds its terminations, so a drain has %s", d.hookNames(), cluster.HooklessDrainTime)}
}

func (d *Hooks) hookNames() string {
	names := slices.Clone(d.Policy.TerminationHooks)
	if len(names) < 2 {
		return verdict.Listed(names)
	}
	return verdict.Listed(names[:len(names)-1]) + " or " + names[len(names)-1]
}

// hookFaults say what a hook of ours should be otherwise, and what follows.
func (d *Hooks) hookFaults(h fleet.Hook) []string {
	var notes []string
	if h.Default == cluster.Abandons {
		notes = append(notes, fmt.Sprintf("hook %s has the default result ABANDON: when it times out, hooks of others are cut short, and a lifecycle policy may retain the instance", h.Name))
	}
	if needs := d.mayLast(h); h.Heartbeat.Duration < needs {
		notes = append(notes, fmt.Sprintf("hook %s times out after %s and a drain may last %s: without the scaler's heartbeats the instance is terminated in the middle of it", h.Name, h.Heartbeat.Duration, needs))
	}
	return notes
}

// mayLast is how long a drain may that a hook of ours holds.
func (d *Hooks) mayLast(h fleet.Hook) time.Duration {
	return min(d.Holds(h), d.Policy.TerminationDrainTime)
}
