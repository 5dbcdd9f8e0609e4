package plan

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// noteRetained tells of the instances that were kept when a hook was abandoned. They
// are never completed or ended by us: somebody wants to look at them.
func (d *decision) noteRetained(g *group) {
	for _, i := range g.Instances {
		if i.Retained() {
			g.retained = append(g.retained, i.ID)
		}
	}
	for _, n := range g.nodes {
		if n.instance.Retained() {
			n.say(NodeRetained, fmt.Sprintf("its instance is %s: it is paid for and counts for nothing until somebody terminates it", n.instance.State))
		}
	}
}

// hookRemarks are what people should know of the group's hooks and what those left
// behind, and the verdict of a group of which nothing weightier is to be said.
func (d *decision) hookRemarks(g *group) (reason Reason, notes []string) {
	if len(g.retained) > 0 {
		reason = GroupRetains
		notes = append(notes, fmt.Sprintf("%s %s retained after a hook was abandoned: paid for, counting for nothing, until somebody terminates %s",
			listed(some(g.retained)), plural(len(g.retained), "is", "are"), plural(len(g.retained), "it", "them")))
	}
	if g.HooksUnknown || len(d.policy.TerminationHooks) == 0 {
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
func (d *decision) terminationRemarks(g *group) (reason Reason, notes []string) {
	var ours []fleet.Hook
	var foreign []string
	for _, h := range g.Hooks {
		switch {
		case h.Transition != fleet.OnTerminate:
		case d.ours(h):
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
			reason = GroupHookAmiss
		}
		return reason, notes
	case len(foreign) > 0:
		return GroupForeignHook, []string{fmt.Sprintf("its terminations are held by %s alone, which is not ours to complete", listed(foreign))}
	}
	return GroupHookMissing, []string{fmt.Sprintf("no hook %s holds its terminations, so a drain has %s", d.hookNames(), hooklessDrainTime)}
}

func (d *decision) hookNames() string {
	names := slices.Clone(d.policy.TerminationHooks)
	if len(names) < 2 {
		return listed(names)
	}
	return listed(names[:len(names)-1]) + " or " + names[len(names)-1]
}

// hookFaults say what a hook of ours should be otherwise, and what follows.
func (d *decision) hookFaults(h fleet.Hook) []string {
	var notes []string
	if h.Default == abandons {
		notes = append(notes, fmt.Sprintf("hook %s has the default result ABANDON: when it times out, hooks of others are cut short, and a lifecycle policy may retain the instance", h.Name))
	}
	if needs := d.mayLast(h); h.Heartbeat.Duration < needs {
		notes = append(notes, fmt.Sprintf("hook %s times out after %s and a drain may last %s: without the scaler's heartbeats the instance goes in the middle of it", h.Name, h.Heartbeat.Duration, needs))
	}
	return notes
}

// mayLast is how long a drain may that a hook of ours holds.
func (d *decision) mayLast(h fleet.Hook) time.Duration {
	return min(d.holds(h), d.policy.TerminationDrainTime)
}

// some are the first five of a list, and how many more there are.
func some(names []string) []string {
	const most = 5
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
