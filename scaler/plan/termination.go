package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// hooklessDrainTime is what an agent has where no hook holds the instance.
	// Auto Scaling then ends it at once, and EC2 takes about that long.
	hooklessDrainTime = 60 * time.Second
	// hookSlack is how long before a hook's global timeout the drain must end.
	hookSlack = 30 * time.Second
	// tooEarly is how soon to look again at an instance that is ready to go and
	// that Auto Scaling has not brought to its hook yet.
	tooEarly = time.Second
	// completeAgain is how long a completion may take to show, and
	// completeAgainBeside where hooks of others hold the instance as well.
	completeAgain       = 5 * time.Second
	completeAgainBeside = time.Minute
	// heartbeatShare of a hook's timeout may pass without a heartbeat. It is
	// less than half, so that one that is late by a tenth still comes before.
	heartbeatShare = 0.4
)

// termination is one instance that Auto Scaling takes away, by its own wish or
// because we asked it to.
type termination struct {
	group    *group
	instance *fleet.Instance
	node     *node // nil where none has registered, or it is gone already
	// hooks are those that are ours to complete.
	hooks []fleet.Hook
}

// answerTerminations gives the agent of a node that Auto Scaling takes a
// deadline, holds the instance while its pods leave, and lets it go when they
// have.
func (d *decision) answerTerminations() {
	waits := map[string]bool{}
	for _, t := range d.terminations() {
		d.giveDeadline(t)
		for _, hook := range t.hooks {
			key := fleet.HeartbeatKey(t.instance.ID, hook.Name)
			waits[key] = true
			if !d.complete(t, hook, key) {
				d.heartbeat(t, hook, key)
			}
		}
	}
	over := func(key string, _ time.Time) bool { return !waits[key] }
	maps.DeleteFunc(d.state.Heartbeats, over)
	maps.DeleteFunc(d.state.Completed, over)
}

func (d *decision) terminations() []termination {
	var list []termination
	for _, g := range d.groups {
		byInstance := map[string]*node{}
		for _, n := range g.nodes {
			byInstance[n.InstanceID()] = n
		}
		hooks := d.ourHooks(g)
		for i := range g.Instances {
			instance := &g.Instances[i]
			if instance.State != fleet.Terminating && instance.State != fleet.TerminatingWait {
				continue
			}
			list = append(list, termination{g, instance, byInstance[instance.ID], hooks})
		}
	}
	return list
}

// ourHooks are the group's hooks that hold terminations and that our flag
// names. All others belong to somebody else, who completes them.
func (d *decision) ourHooks(g *group) []fleet.Hook {
	var ours []fleet.Hook
	for _, h := range g.Hooks {
		if h.Transition == fleet.OnTerminate && slices.Contains(d.policy.TerminationHooks, h.Name) {
			ours = append(ours, h)
		}
	}
	return ours
}

// began is when the termination did, as far as anybody knows.
func (d *decision) began(t termination) time.Time {
	if t.instance.LeavingSince.IsZero() {
		return d.now
	}
	return t.instance.LeavingSince
}

// deadline of the drain: the one that stands on the node, so that it does not
// move, or else what the hooks and our patience allow.
func (d *decision) deadline(t termination) time.Time {
	if n := t.node; n != nil && n.requested && n.request.ID == contract.TerminateID(t.instance.ID) && !n.request.Deadline.IsZero() {
		return n.request.Deadline.Time
	}
	began := d.began(t)
	held := time.Duration(0)
	for _, h := range t.group.Hooks {
		if h.Transition == fleet.OnTerminate {
			held = max(held, d.holds(h))
		}
	}
	return began.Add(max(hooklessDrainTime, min(held, d.policy.TerminationDrainTime)))
}

// holds is for how long a hook surely keeps an instance: ours as long as it may
// be prolonged, one of others until its first timeout.
func (d *decision) holds(h fleet.Hook) time.Duration {
	if !slices.Contains(d.policy.TerminationHooks, h.Name) {
		return h.Heartbeat.Duration - hookSlack
	}
	if h.Global.Duration <= 0 {
		return d.policy.TerminationDrainTime
	}
	return h.Global.Duration - hookSlack
}

// giveDeadline answers the agent's notice, whose source tells no time. It is
// also how an agent that cannot see the metadata service hears of it.
func (d *decision) giveDeadline(t termination) {
	id := contract.TerminateID(t.instance.ID)
	if t.node == nil || t.node.mark != "" {
		return // there is nobody to tell, or all has been done already
	}
	if t.group.HooksUnknown && !t.asked(id) {
		t.node.say(NodeLeaving, "Auto Scaling terminates its instance; the hooks that may hold it are not known yet")
		return
	}
	deadline := d.deadline(t)
	d.clock.at(deadline)
	t.node.say(NodeLeaving, fmt.Sprintf("Auto Scaling terminates its instance; its pods have until %s%s", clockTime(deadline), t.node.progress(id)))
	if t.asked(id) {
		return
	}
	d.do(Retire{
		Group: t.group.Name, Node: t.node.ref(), ID: id, Kind: contract.KindASG,
		Why: "Auto Scaling terminates its instance", Deadline: deadline,
	})
}

// asked says that the request stands on the node, and its deadline with it.
func (t termination) asked(id string) bool { return t.node.requested && t.node.request.ID == id }

// complete lets the instance go if nothing holds it here any more. It says
// whether nothing does.
func (d *decision) complete(t termination, hook fleet.Hook, key string) bool {
	why, ready := d.readyToGo(t)
	if !ready {
		return false
	}
	if t.instance.State != fleet.TerminatingWait {
		d.clock.at(d.now.Add(tooEarly))
		return true
	}
	if at, done := d.state.Completed[key]; done && d.now.Before(at.Add(t.patience())) {
		d.clock.at(at.Add(t.patience()))
		return true
	}
	d.state.Completed[key] = d.now
	d.clock.at(d.now.Add(t.patience()))
	c := Complete{Group: t.group.Name, Instance: t.instance.ID, Hook: hook.Name, Why: why}
	if t.node != nil {
		c.Node = t.node.ref()
	}
	d.do(c)
	return true
}

// patience is how long an instance may stay at its hooks after ours was
// completed, before it is tried again: the call may have failed. Where others
// hold it too, that tells little.
func (t termination) patience() time.Duration {
	for _, h := range t.group.Hooks {
		if h.Transition == fleet.OnTerminate && !slices.ContainsFunc(t.hooks, func(ours fleet.Hook) bool { return ours.Name == h.Name }) {
			return completeAgainBeside
		}
	}
	return completeAgain
}

func (d *decision) readyToGo(t termination) (why string, ready bool) {
	if t.node == nil {
		return "it has no node", true
	}
	pod, occupied := t.node.occupied(d.now)
	if t.node.mark != "" {
		return "its node is empty", !occupied
	}
	report, answered := t.node.answered(contract.TerminateID(t.instance.ID))
	if !answered {
		return "", false
	}
	switch report.Phase {
	case contract.PhaseDrained:
		return "its node is drained", !occupied
	case contract.PhaseFailed:
		return fmt.Sprintf("the time for its drain is over, with %s still there", pod), !d.now.Before(d.deadline(t))
	}
	return "", false
}

// heartbeat keeps the hook waiting while the drain goes on, in time and never
// past the end of our patience: if nobody ends the drain, the hook's own timer
// ends the wait.
func (d *decision) heartbeat(t termination, hook fleet.Hook, key string) {
	if t.node == nil || t.instance.State != fleet.TerminatingWait {
		return
	}
	report, answered := t.node.answered(contract.TerminateID(t.instance.ID))
	if !answered || !report.Phase.Open() {
		return
	}
	last, sent := d.state.Heartbeats[key]
	if !sent {
		last = d.began(t)
	}
	due := last.Add(time.Duration(heartbeatShare * float64(hook.Heartbeat.Duration)))
	end := d.began(t).Add(hook.Global.Duration)
	if deadline := d.deadline(t); deadline.Before(end) || hook.Global.Duration <= 0 {
		end = deadline
	}
	if !due.Before(end) || !d.now.Before(end) {
		return
	}
	if d.now.Before(due) {
		d.clock.at(due)
		return
	}
	d.state.Heartbeats[key] = d.now
	d.clock.at(d.now.Add(due.Sub(last)))
	d.do(Heartbeat{Group: t.group.Name, Instance: t.instance.ID, Hook: hook.Name})
}

// progress is how far the drain for that id is, for a verdict; it has no
// figures that tick.
func (n *node) progress(id string) string {
	report, answered := n.answered(id)
	switch {
	case !answered:
		return "; its agent has not answered yet"
	case report.Phase == contract.PhaseBlocked && len(report.BlockedBy) > 0:
		return "; its drain is blocked by " + listed(slices.Sorted(slices.Values(report.BlockedBy)))
	case report.Phase == contract.PhaseDrained:
		return "; it is drained"
	case report.Phase == contract.PhaseFailed:
		return "; its drain failed: " + report.Message
	}
	return "; it is being drained"
}
