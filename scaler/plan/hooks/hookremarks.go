package hooks

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// noteRetained notes the instances that were retained when a hook was abandoned. We never complete
// or end them: people want to look at them.
func (d *Hooks) noteRetained(g *cluster.Group) {
	for _, i := range g.Instances {
		if i.Retained() {
			g.Retained = append(g.Retained, i.ID)
		}
	}
	for _, n := range g.Nodes {
		if n.Instance.Retained() {
			n.Say(verdict.NodeRetained, verdict.Say("its instance is {state}: it is paid for and counts for nothing until somebody terminates it", verdict.State(n.Instance.State)))
		}
	}
}

// HookRemarks are what people should know of the group's hooks and what those left
// behind, and the verdict of a group of which nothing weightier is to be said.
func (d *Hooks) HookRemarks(g *cluster.Group) (reason verdict.Reason, notes verdict.Details) {
	if len(g.Retained) > 0 {
		reason = verdict.GroupRetainsCapacity
		notes = verdict.Say("{instances:5} {count:is|are} retained after a hook was abandoned: paid for, counting for nothing, until somebody terminates {count:it|them}",
			verdict.Instances(g.Retained), verdict.Count(len(g.Retained)))
	}
	if cut, was := d.State.CutIn[g.Name]; was {
		reason = verdict.GroupHookCutIn
		notes = notes.Then(verdict.Say("hook {hook} of instance {instance} was completed by something else, so its pods may have been cut off: find what answers lifecycle events, which is a Node Termination Handler in queue mode, a Lambda or a rule of EventBridge, and take it off", verdict.Hook(cut.Hook), verdict.Instance(cut.Instance)))
	}
	if g.External {
		return reason, verdict.Say("its provider has no lifecycle hooks, activities and choice of zones: what it ends of its own accord has {within} to drain, of failed launches it tells only by what it lists, and it places new nodes itself", verdict.Within(cluster.HooklessDrainTime))
	}
	if g.HooksUnknown || len(d.Policy.TerminationHooks) == 0 {
		return reason, notes
	}
	why, others := d.terminationRemarks(g)
	if reason == "" {
		reason = why
	}
	return reason, notes.Then(others)
}

// terminationRemarks say what follows from the hooks that hold, or do not hold, the
// terminations of a group.
func (d *Hooks) terminationRemarks(g *cluster.Group) (reason verdict.Reason, notes verdict.Details) {
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
			notes = notes.Then(d.hookFaults(h))
		}
		if len(notes) > 0 {
			reason = verdict.GroupHookMisconfigured
		}
		return reason, notes
	case len(foreign) > 0:
		return verdict.GroupForeignHook, verdict.Say("its terminations are held by {hooks} alone, which Windlass does not complete: add a hook that --termination-hook names", verdict.Hooks(foreign))
	}
	return verdict.GroupHookMissing, verdict.Say("no hook {hooks:or} holds its terminations, so a drain has only {within}: add one", verdict.Hooks(d.Policy.TerminationHooks), verdict.Within(cluster.HooklessDrainTime))
}

// hookFaults say what a hook of ours should be otherwise, and what follows.
func (d *Hooks) hookFaults(h fleet.Hook) (notes verdict.Details) {
	if h.Default == cluster.Abandons {
		notes = verdict.Say("hook {hook} has the default result ABANDON, so when it times out, other hooks are cut short, and a lifecycle policy may retain the instance: set CONTINUE", verdict.Hook(h.Name))
	}
	if needs := d.mayLast(h); h.Heartbeat.Duration < needs {
		notes = notes.Then(verdict.Say("hook {hook} times out after {after}, but a drain may last {within}: set its heartbeat timeout to that, or the instance is terminated in mid-drain when the scaler sends no heartbeats",
			verdict.Hook(h.Name), verdict.After(h.Heartbeat.Duration), verdict.Within(needs)))
	}
	return notes
}

// mayLast is how long a drain may that a hook of ours holds.
func (d *Hooks) mayLast(h fleet.Hook) time.Duration {
	return min(d.Holds(h), d.Policy.TerminationDrainTime)
}
