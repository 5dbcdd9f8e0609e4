package hooks

import (
	"maps"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/recognition"
	"windlass.dev/windlass/scaler/plan/standin"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Hooks answers the lifecycle hooks of Auto Scaling.
type Hooks struct {
	*cluster.Cluster
	*outcome.Outcome
	*recognition.Recognition
	*standin.StandIn
}

// New has done nothing yet.
func New(c *cluster.Cluster, out *outcome.Outcome, r *recognition.Recognition, a *standin.StandIn) *Hooks {
	return &Hooks{Cluster: c, Outcome: out, Recognition: r, StandIn: a}
}

const (
	// hooksKnownWithin is how long a terminating instance waits for its group's hooks to be read.
	// If they cannot be, it drains as if there were none.
	hooksKnownWithin = 10 * time.Second
	// tooEarly is how soon to evaluate again an instance that is ready to go and that Auto Scaling
	// has not brought to its hook yet, on its way to a warm pool or out of it.
	tooEarly = time.Second
	// reachesHook is how long Auto Scaling takes, most of the time, to bring an instance to its hook
	// that it terminates.
	reachesHook = 2 * time.Second
	// completeAgain is how long a completion may take to show, and
	// completeAgainBeside where hooks of others hold the instance as well.
	completeAgain       = 5 * time.Second
	completeAgainBeside = time.Minute
	// heartbeatShare of a hook's timeout may pass without a heartbeat. It is
	// less than half, so that one that is late by a tenth still comes before.
	heartbeatShare = 0.4
)

// AnswerHooks gives the agents of nodes that Auto Scaling takes a deadline, holds
// their instances while pods leave, and lets instances go that need not wait any
// more, out of service or into it.
func (d *Hooks) AnswerHooks() {
	waits, pooling := map[string]bool{}, map[string]time.Time{}
	for _, g := range d.Groups {
		var byInstance map[string]*cluster.Node // of two Nodes of one instance the likelier
		for i := range g.Instances {
			p, ok := d.Passage(g, &g.Instances[i], nil)
			if !ok {
				continue
			}
			if byInstance == nil {
				byInstance = likeliest(g.Nodes)
			}
			p.Node = byInstance[p.Instance.ID]
			if p.Instance.Warmed() {
				pooling[p.Instance.ID] = p.Began
			}
			d.ask(p)
			for _, hook := range p.Hooks {
				key := fleet.HeartbeatKey(p.Instance.ID, hook.Name)
				waits[key] = true
				if !d.complete(p, hook, key) {
					d.heartbeat(p, hook, key)
				}
			}
		}
		d.noteRetained(g)
	}
	d.State.Pooling = pooling
	over := func(key string, _ time.Time) bool { return !waits[key] }
	maps.DeleteFunc(d.State.Heartbeats, over)
	maps.DeleteFunc(d.State.Completed, over)
}

func likeliest(nodes []*cluster.Node) map[string]*cluster.Node {
	byInstance := make(map[string]*cluster.Node, len(nodes))
	for _, n := range nodes {
		if other := byInstance[n.InstanceID()]; other == nil || n.LikelierThan(other) {
			byInstance[n.InstanceID()] = n
		}
	}
	return byInstance
}

// complete lets the instance go on if nothing holds it here any more. It says whether no
// heartbeat is needed: none is either where another Node may be the instance, whose hook is left
// to its own time.
func (d *Hooks) complete(p cluster.Passage, hook fleet.Hook, key string) bool {
	r, ready := d.released(p)
	if !ready {
		return false
	}
	if why := d.Contested(p.Instance, p.Node); why != nil && p.Way != &cluster.Launching { // that ends nothing
		p.Group.Note(verdict.Say("hook {hook} of instance {instance} is not completed, and runs to its timeout: {why}", verdict.Hook(hook.Name), verdict.Instance(p.Instance.ID), verdict.Why(why)))
		return true
	}
	if due := d.waitsFrom(p); d.Now.Before(due) {
		d.Clock.At(due)
		return true
	}
	again := d.patience(p)
	if at, done := d.State.Completed[key]; done && d.Now.Before(at.Add(again)) {
		d.Clock.At(at.Add(again))
		return true
	}
	d.State.Completed[key] = d.Now
	d.Clock.At(d.Now.Add(again))
	c := action.Complete{Group: p.Group.Name, Instance: p.Instance.ID, Hook: hook.Name, State: p.Wait, Early: !p.Waits(), Occupied: r.occupied, Why: r.why}
	if p.Way != &cluster.Launching {
		c.Since = p.Began
	}
	if p.Node != nil {
		c.Node = p.Node.Ref()
	}
	d.Do(c)
	return true
}

// waitsFrom is from when on hooks hold an instance, as far as is known. From a termination there is
// no way back, so that one may be completed that no reading has shown to wait: where it does not yet,
// AWS refuses, and nothing is lost. Who waits for a reading waits as long as those are apart.
func (d *Hooks) waitsFrom(p cluster.Passage) time.Time {
	switch {
	case p.Waits():
		return d.Now
	case p.Instance.State == fleet.Terminating:
		return p.Began.Add(reachesHook)
	}
	return d.Now.Add(tooEarly)
}

// patience is how long an instance may stay at its hooks after ours was completed, before it is
// tried again: the call may have failed. Where others hold it too, that means little.
func (d *Hooks) patience(p cluster.Passage) time.Duration {
	for _, h := range p.Group.Hooks {
		if p.HeldBy(h) && !d.Ours(h) {
			return completeAgainBeside
		}
	}
	return completeAgain
}

// release is why an instance may go on, and whether pods may be on its node then.
type release struct {
	why      string
	occupied bool
}

// released says whether nothing of ours holds an instance any more.
func (d *Hooks) released(p cluster.Passage) (r release, ready bool) {
	if p.Notice == nil {
		return release{"its node is Ready", true}, p.Node != nil && p.Node.Up()
	}
	if p.Node == nil {
		return d.withoutNode(p)
	}
	if d.boots(p) {
		return release{}, false
	}
	pod, occupied := p.Node.Occupied(d.Now)
	switch over := p.Node.Mark != "" || p.Way == &cluster.Cooling && !p.Node.Ready; { // it was drained, or is switched off
	case over && occupied: // the pod has come since, and may be unreported
		return d.outOfTime(p, pod)
	case over:
		return release{why: "its node is empty"}, true
	}
	report, answered := p.Answered()
	switch {
	case answered && report.Phase == contract.PhaseDrained && !occupied: // else a pod came, and its agent may be gone
		return release{why: "its node is drained"}, true
	case answered && report.Phase == contract.PhaseFailed && !occupied:
		return release{why: "its drain failed, and its node is empty all the same"}, true
	case answered && report.Phase == contract.PhaseFailed:
		return d.outOfTime(p, pod)
	case answered && occupied && !p.Asked(): // its agent has a deadline of its own, by which nothing fails
		return d.outOfTime(p, pod)
	case !occupied && d.Emptied(p.Node):
		return release{why: "its node is empty, and no agent has reported that"}, true
	case d.Acts(p.Node) && occupied:
		return d.outOfTime(p, pod)
	}
	return release{}, false
}

// boots reports whether a node that goes into a warm pool has not been Ready yet: whatever starts on it
// for the first time is not cut off, for as long as any new node may take.
func (d *Hooks) boots(p cluster.Passage) bool {
	if p.Way != &cluster.Warming || !p.Node.NeverUp(false) {
		return false
	}
	due := d.DueUp(p.Node)
	d.Clock.At(due)
	return d.Now.Before(due)
}

// outOfTime lets an instance go whose drain has failed, when its time is over and
// people want it so.
func (d *Hooks) outOfTime(p cluster.Passage, pod string) (release, bool) {
	if d.Policy.FailedDrain == policy.HoldFailed {
		return release{}, false
	}
	end := d.Deadline(p)
	d.Clock.At(end)
	return release{"the time for its drain is over, with " + pod + " still there", true}, !d.Now.Before(end)
}

// withoutNode lets an instance go that has no node. One that boots for a warm pool may yet join.
// One that was no node here as far as is known has the time of a drain: it may belong to another
// cluster, or its Node may have been deleted. So has one that was a node, where pods run on
// machines whose Node was deleted: this may be one of them, and its agent drains on, unless the
// garbage collector of pods, a minute later, deletes them.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection
func (d *Hooks) withoutNode(p cluster.Passage) (release, bool) {
	if p.Way == &cluster.Warming {
		due := d.After(p.Began, p.Group.ProvisionTime(d.Policy))
		d.Clock.At(due)
		if !p.Group.Recognised && !d.Now.Before(due) {
			p.Group.Note(verdict.Say("instance {instance} has not registered within {within}, and no instance of the group ever was a Node of this cluster, so its hook is not completed",
				verdict.Instance(p.Instance.ID), verdict.Within(p.Group.ProvisionTime(d.Policy))))
			return release{}, false
		}
		return release{why: "no node of it has registered within " + p.Group.ProvisionTime(d.Policy).String()}, !d.Now.Before(due)
	}
	end := p.Began.Add(d.Policy.TerminationDrainTime)
	switch d.mayServe(p) {
	case servesNobody:
		return release{why: "it has no node"}, true
	case servesOthers:
		p.Group.Note(verdict.Say("instance {instance} was never a Node of this cluster, nor was any other of the group, so its hook is not completed", verdict.Instance(p.Instance.ID)))
		return release{}, false
	case servesPerhaps:
		d.Clock.At(end)
		return release{why: "no Node of it is known, and the time of a drain is over"}, !d.Now.Before(end)
	}
	d.Clock.At(end)
	return release{why: "it has no node, and the time is over for pods such as " + d.Stranded}, !d.Now.Before(end)
}

// service is for whom a terminating instance without a node may have worked.
type service int

const (
	servesNobody  service = iota
	servesOthers          // another cluster, most likely
	servesPerhaps         // unknown
	servesPods            // of this cluster, whose Node is deleted
)

func (d *Hooks) mayServe(p cluster.Passage) service {
	switch {
	case p.Group.Foreign:
		return servesOthers
	case d.EndedByUs(p.Instance) && !d.WasNode(p.Instance):
		return servesNobody
	case !p.Group.Recognised:
		return servesOthers
	case !d.WasNode(p.Instance) && p.Way != &cluster.Cooling: // what never left its warm pool did not serve
		return servesPerhaps
	case d.Stranded == "":
		return servesNobody
	}
	return servesPods
}

// heldBefore reports whether a hook may have held an instance for any time before it was seen: whoever
// leads has just begun to, and nothing dates it.
func (d *Hooks) heldBefore(p cluster.Passage) bool {
	exact := p.Instance.Terminating() && p.Instance.TerminatingExact
	return !exact && !d.Leads.IsZero() && !p.Began.Before(d.Leads) && p.Began.Before(d.Leads.Add(cluster.SettlesIn))
}

// heartbeat keeps the hook waiting while the drain goes on, in time and never past the end of our
// patience: if the drain does not end, the hook's own timer ends the wait.
func (d *Hooks) heartbeat(p cluster.Passage, hook fleet.Hook, key string) {
	if p.Notice == nil || !p.Waits() {
		return
	}
	end, open := d.heldUntil(p, hook)
	if !open {
		return
	}
	last, sent := d.State.Heartbeats[key]
	if !sent {
		last = p.Began
	}
	due := HeartbeatDue(last, hook)
	if !sent && d.heldBefore(p) {
		last, due = d.Now, d.Now
	}
	if !due.Before(end) || !d.Now.Before(end) {
		return
	}
	next := outcome.Foreseen{
		Heartbeat: action.Heartbeat{Group: p.Group.Name, Instance: p.Instance.ID, Hook: hook.Name, State: p.Wait},
		Due:       due, Every: HeartbeatDue(last, hook).Sub(last), Until: end,
	}
	if !d.Now.Before(due) {
		d.State.Heartbeats[key] = d.Now
		d.Do(next.Heartbeat)
		next.Due = d.Now.Add(next.Every)
	}
	d.Clock.At(next.Due)
	if next.Due.Before(end) {
		d.Foreseen = append(d.Foreseen, next)
	}
}

// HeartbeatDue is when the timer of a hook is restarted that began, or was restarted, last.
func HeartbeatDue(last time.Time, h fleet.Hook) time.Time {
	return last.Add(time.Duration(heartbeatShare * float64(h.Heartbeat.Duration)))
}

// heldUntil is for how long a hook of ours is kept waiting as things are; open is
// false if it is not.
func (d *Hooks) heldUntil(p cluster.Passage, hook fleet.Hook) (end time.Time, open bool) {
	if p.Node == nil {
		holds := d.mayServe(p)
		end, open = p.Began.Add(d.Policy.TerminationDrainTime), holds == servesPerhaps || holds == servesPods
		if p.Way == &cluster.Warming { // it may yet join
			end, open = p.Began.Add(p.Group.ProvisionTime(d.Policy)), p.Group.Recognised
		}
		if hook.Global.Duration > 0 {
			end = cluster.Earliest(end, p.Began.Add(hook.Global.Duration))
		}
		return end, open
	}
	end = d.Deadline(p)
	global := end
	if hook.Global.Duration > 0 {
		global = p.Began.Add(hook.Global.Duration)
	}
	if d.boots(p) {
		return cluster.Earliest(d.DueUp(p.Node), global), true
	}
	report, answered := p.Answered()
	switch {
	case d.Acts(p.Node):
	case !answered: // it may yet
		end = cluster.Earliest(end, p.Began.Add(contract.UnresponsiveAfter))
	case !report.Phase.Open() && report.Phase != contract.PhaseFailed:
		return time.Time{}, false
	}
	if (answered || d.Acts(p.Node)) && d.Policy.FailedDrain == policy.HoldFailed {
		return global, true
	}
	return cluster.Earliest(end, global), true
}
