package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// hooklessDrainTime is what an agent has where no hook holds the instance.
	// Auto Scaling then ends it at once, and EC2 takes about that long.
	hooklessDrainTime = 60 * time.Second
	// hooksKnownWithin is how long an instance that leaves waits for its group's hooks to
	// be read. If they cannot be, it drains as if there were none.
	hooksKnownWithin = 10 * time.Second
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
	// answerWithin is how long the agent of a node that goes into a warm pool has to
	// notice that by itself.
	answerWithin = 10 * time.Second
)

// way is what an instance goes through while lifecycle hooks may hold it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html
type way struct {
	// start is the state before hooks hold it, wait the one in which they do.
	start, wait string
	// transitions are those whose hooks may hold it.
	transitions []string
	// notice is the id under which agent and scaler know that its pods must leave;
	// nil where they need not.
	notice func(instance string) string
	// unasked is how long its agent has to answer by itself. Where there is no such
	// time it is told a deadline at once.
	unasked time.Duration
	// why is for people.
	why string
}

var (
	ending  = way{fleet.Terminating, fleet.TerminatingWait, []string{fleet.OnTerminate}, contract.TerminateID, 0, "Auto Scaling terminates its instance"}
	cooling = way{fleet.WarmedTerminating, fleet.WarmedTerminatingWait, []string{fleet.OnTerminate}, contract.TerminateID, 0, "Auto Scaling terminates its instance"}
	// warming is the first boot of an instance for the pool, where launch hooks hold
	// it, and its return on scale-in, where those of terminations do. Nothing that
	// AWS says of the instance tells the two apart, so both are asked: one of them
	// says that there is nothing to complete.
	warming   = way{fleet.WarmedPending, fleet.WarmedPendingWait, []string{fleet.OnLaunch, fleet.OnTerminate}, contract.WarmID, answerWithin, "Auto Scaling leads its instance into the warm pool"}
	launching = way{fleet.Pending, fleet.PendingWait, []string{fleet.OnLaunch}, nil, 0, ""}
)

// passage is one instance on its way.
type passage struct {
	*way
	group    *group
	instance *fleet.Instance
	node     *node // nil where none has registered, or it is gone already
	// hooks are those that are ours to complete.
	hooks []fleet.Hook
	// began is since when it has been on this way, as far as anybody knows.
	began time.Time
}

// answerHooks gives the agents of nodes that Auto Scaling takes a deadline, holds
// their instances while pods leave, and lets instances go that need not wait any
// more, out of service or into it.
func (d *decision) answerHooks() {
	waits, pooling := map[string]bool{}, map[string]time.Time{}
	for _, g := range d.groups {
		byInstance := map[string]*node{}
		for _, n := range g.nodes {
			if other := byInstance[n.InstanceID()]; other == nil || n.likelierThan(other) {
				byInstance[n.InstanceID()] = n
			}
		}
		for i := range g.Instances {
			p, ok := d.passage(g, &g.Instances[i], byInstance[g.Instances[i].ID])
			if !ok {
				continue
			}
			if p.instance.Warmed() {
				pooling[p.instance.ID] = p.began
			}
			d.ask(p)
			for _, hook := range p.hooks {
				key := fleet.HeartbeatKey(p.instance.ID, hook.Name)
				waits[key] = true
				if !d.complete(p, hook, key) {
					d.heartbeat(p, hook, key)
				}
			}
		}
		d.noteRetained(g)
	}
	d.state.Pooling = pooling
	over := func(key string, _ time.Time) bool { return !waits[key] }
	maps.DeleteFunc(d.state.Heartbeats, over)
	maps.DeleteFunc(d.state.Completed, over)
}

// likelierThan says which of two Nodes with the same providerID is more likely the machine.
func (n *node) likelierThan(other *node) bool {
	if n.Ready != other.Ready {
		return n.Ready
	}
	return n.Created.After(other.Created)
}

// passage says on which way an instance is, if any.
func (d *decision) passage(g *group, i *fleet.Instance, n *node) (passage, bool) {
	p := passage{group: g, instance: i, node: n, began: d.now}
	switch i.State {
	case fleet.Terminating, fleet.TerminatingWait:
		p.way = &ending
		if !i.LeavingSince.IsZero() {
			p.began = i.LeavingSince
		}
	case fleet.WarmedTerminating, fleet.WarmedTerminatingWait:
		p.way = &cooling
	case fleet.WarmedPending, fleet.WarmedPendingWait:
		p.way = &warming
	case fleet.PendingWait: // before that there is nothing to do
		p.way = &launching
	default:
		return passage{}, false
	}
	if since, known := d.given.Pooling[i.ID]; known && i.Warmed() {
		p.began = since
	}
	for _, h := range g.Hooks {
		if p.heldBy(h) && d.ours(h) {
			p.hooks = append(p.hooks, h)
		}
	}
	return p, true
}

// ours says that a hook is named by our flags. All others belong to somebody else,
// who completes them.
func (d *decision) ours(h fleet.Hook) bool {
	names := d.policy.TerminationHooks
	if h.Transition == fleet.OnLaunch {
		names = d.policy.LaunchHooks
	}
	return slices.Contains(names, h.Name)
}

// heldBy says that a hook of the group may hold instances on this way.
func (w *way) heldBy(h fleet.Hook) bool { return slices.Contains(w.transitions, h.Transition) }

// waits says that hooks hold the instance now.
func (p passage) waits() bool { return p.instance.State == p.wait }

// complete lets the instance go on if nothing holds it here any more. It says
// whether nothing does.
func (d *decision) complete(p passage, hook fleet.Hook, key string) bool {
	r, ready := d.released(p)
	if !ready {
		return false
	}
	if why := d.contested(p.instance, p.node); why != "" && p.way != &launching { // that ends nothing
		p.group.note(fmt.Sprintf("hook %s of instance %s is left to its own time: %s", hook.Name, p.instance.ID, why))
		return true
	}
	if !p.waits() {
		d.clock.at(d.now.Add(tooEarly))
		return true
	}
	again := d.patience(p)
	if at, done := d.state.Completed[key]; done && d.now.Before(at.Add(again)) {
		d.clock.at(at.Add(again))
		return true
	}
	d.state.Completed[key] = d.now
	d.clock.at(d.now.Add(again))
	c := Complete{Group: p.group.Name, Instance: p.instance.ID, Hook: hook.Name, State: p.wait, Occupied: r.occupied, Why: r.why}
	if p.way != &launching {
		c.Since = p.began
	}
	if p.node != nil {
		c.Node = p.node.ref()
	}
	d.do(c)
	return true
}

// patience is how long an instance may stay at its hooks after ours was
// completed, before it is tried again: the call may have failed. Where others
// hold it too, that tells little.
func (d *decision) patience(p passage) time.Duration {
	for _, h := range p.group.Hooks {
		if p.heldBy(h) && !d.ours(h) {
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
func (d *decision) released(p passage) (r release, ready bool) {
	if p.notice == nil {
		return release{"its node is Ready", true}, p.node != nil && p.node.up()
	}
	if p.node == nil {
		return d.withoutNode(p)
	}
	pod, occupied := p.node.occupied(d.now)
	switch {
	case p.node.mark != "" && occupied: // it has come since, and nobody may tell of it
		return d.outOfTime(p, pod)
	case p.node.mark != "" || p.way == &cooling && !p.node.Ready:
		return release{why: "its node is empty"}, !occupied // it was drained, or is switched off
	}
	report, answered := p.answered()
	switch {
	case answered && report.Phase == contract.PhaseDrained:
		return release{why: "its node is drained"}, !occupied
	case answered && report.Phase == contract.PhaseFailed && !occupied:
		return release{why: "its drain failed, and its node is empty all the same"}, true
	case answered && report.Phase == contract.PhaseFailed:
		return d.outOfTime(p, pod)
	case answered && occupied && !p.asked(): // its agent has a deadline of its own, by which nothing fails
		return d.outOfTime(p, pod)
	case !occupied && d.emptiedAlone(p.node):
		return release{why: "its node is empty, and no agent says so"}, true
	case d.alone(p.node) && occupied:
		return d.outOfTime(p, pod)
	}
	return release{}, false
}

// outOfTime lets an instance go whose drain has failed, when its time is over and
// people want it so.
func (d *decision) outOfTime(p passage, pod string) (release, bool) {
	if d.policy.FailedDrain == HoldFailed {
		return release{}, false
	}
	end := d.deadline(p)
	d.clock.at(end)
	return release{"the time for its drain is over, with " + pod + " still there", true}, !d.now.Before(end)
}

// withoutNode lets an instance go that has no node. One that boots for a warm pool
// may yet join. One that was no node here as far as anybody knows has the time of a drain:
// it may be somebody else's, or its Node may have been deleted. So has one that was a
// node, where pods run on machines whose Node somebody has deleted: this may be
// one of them, and its agent drains on, unless the garbage
// collector of pods, a minute later, says that they are gone.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection
func (d *decision) withoutNode(p passage) (release, bool) {
	if p.way == &warming {
		due := d.after(p.began, d.policy.MaxNodeProvisionTime)
		d.clock.at(due)
		if !p.group.recognised && !d.now.Before(due) {
			p.group.note(fmt.Sprintf("instance %s has not registered within %s, and no Node of the group ever was here, so its hook is left to those whose it is", p.instance.ID, d.policy.MaxNodeProvisionTime))
			return release{}, false
		}
		return release{why: "no node of it has registered within " + d.policy.MaxNodeProvisionTime.String()}, !d.now.Before(due)
	}
	end := p.began.Add(d.policy.TerminationDrainTime)
	switch d.mayServe(p) {
	case servesNobody:
		return release{why: "it has no node"}, true
	case servesOthers:
		p.group.note(fmt.Sprintf("instance %s was no Node of this cluster, nor any other of the group, so its hook is left to those whose it is", p.instance.ID))
		return release{}, false
	case servesPerhaps:
		d.clock.at(end)
		return release{why: "no Node of it is known, and the time of a drain is over"}, !d.now.Before(end)
	}
	d.clock.at(end)
	return release{why: "it has no node, and the time is over for pods such as " + d.stranded}, !d.now.Before(end)
}

// service is for whom an instance without a node that leaves may have worked.
type service int

const (
	servesNobody  service = iota
	servesOthers          // another cluster, most likely
	servesPerhaps         // nobody knows
	servesPods            // of this cluster, whose Node is gone
)

func (d *decision) mayServe(p passage) service {
	switch {
	case p.group.foreign():
		return servesOthers
	case d.endedByUs(p.instance) && !d.wasNode(p.instance):
		return servesNobody
	case !p.group.recognised:
		return servesOthers
	case !d.wasNode(p.instance) && p.way != &cooling: // what never left its pool did not serve
		return servesPerhaps
	case d.stranded == "":
		return servesNobody
	}
	return servesPods
}

// heartbeat keeps the hook waiting while the drain goes on, in time and never
// past the end of our patience: if nobody ends the drain, the hook's own timer
// ends the wait.
func (d *decision) heartbeat(p passage, hook fleet.Hook, key string) {
	if p.notice == nil || !p.waits() {
		return
	}
	end, open := d.heldUntil(p, hook)
	if !open {
		return
	}
	last, sent := d.state.Heartbeats[key]
	if !sent {
		last = p.began
	}
	due := last.Add(time.Duration(heartbeatShare * float64(hook.Heartbeat.Duration)))
	if !due.Before(end) || !d.now.Before(end) {
		return
	}
	if d.now.Before(due) {
		d.clock.at(due)
		return
	}
	d.state.Heartbeats[key] = d.now
	d.clock.at(d.now.Add(due.Sub(last)))
	d.do(Heartbeat{Group: p.group.Name, Instance: p.instance.ID, Hook: hook.Name, State: p.wait})
}

// heldUntil is for how long a hook of ours is kept waiting as things are; open is
// false if it is not.
func (d *decision) heldUntil(p passage, hook fleet.Hook) (end time.Time, open bool) {
	if p.node == nil {
		end = p.began.Add(d.policy.TerminationDrainTime)
		if hook.Global.Duration > 0 {
			end = earliest(end, p.began.Add(hook.Global.Duration))
		}
		holds := d.mayServe(p)
		return end, p.way != &warming && (holds == servesPerhaps || holds == servesPods)
	}
	end = d.deadline(p)
	global := end
	if hook.Global.Duration > 0 {
		global = p.began.Add(hook.Global.Duration)
	}
	report, answered := p.answered()
	switch {
	case d.alone(p.node):
	case !answered: // it may yet
		end = earliest(end, p.began.Add(contract.GoneAfter))
	case !report.Phase.Open() && report.Phase != contract.PhaseFailed:
		return time.Time{}, false
	}
	if (answered || d.alone(p.node)) && d.policy.FailedDrain == HoldFailed {
		return global, true
	}
	return earliest(end, global), true
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// held is for how long the hooks of a way surely keep an instance. It waits for all
// of them, but one that is abandoned ends the wait for the others.
func (d *decision) held(g *group, w *way) time.Duration {
	longest, cut := time.Duration(0), time.Duration(math.MaxInt64)
	for _, h := range g.Hooks {
		if !w.heldBy(h) {
			continue
		}
		longest = max(longest, d.holds(h))
		if h.Default == abandons {
			cut = min(cut, d.holds(h))
		}
	}
	return min(longest, cut)
}

// abandons is the result of a hook that nobody completed in time, where the group's
// owner has not said CONTINUE.
const abandons = "ABANDON"

// holds is for how long a hook surely keeps an instance: ours as long as it may
// be prolonged, one of others until its first timeout.
func (d *decision) holds(h fleet.Hook) time.Duration {
	if !d.ours(h) {
		return h.Heartbeat.Duration - hookSlack
	}
	if h.Global.Duration <= 0 {
		return d.policy.TerminationDrainTime
	}
	return h.Global.Duration - hookSlack
}
