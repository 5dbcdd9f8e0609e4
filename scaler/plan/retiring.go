package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// giveUpPauseMax is the longest time for which a node is left in peace after drains
	// that were given up.
	giveUpPauseMax = 4 * time.Hour
	// giveUpForgotten is how long after a pause the next one is the first again.
	giveUpForgotten = 24 * time.Hour
	// growthRemembered is how long it is known that a group grew.
	growthRemembered = time.Hour
)

// finishRetirements ends the instances whose nodes have been drained, and gives
// up drains that do not end.
func (d *decision) finishRetirements() {
	halt := d.halted()
	for _, n := range d.in(terminating) {
		d.terminateAgain(n)
	}
	for _, n := range d.in(retiring) {
		if !n.kept {
			d.finish(n, halt)
		}
	}
	for _, n := range d.in(leaving) {
		d.replaceDrained(n)
	}
	d.forget()
}

// terminateAgain repeats a termination that was cut short between the mark and
// the call to Auto Scaling. Only a retirement may have meant to make the group
// smaller for certain; what was to be replaced is replaced.
func (d *decision) terminateAgain(n *node) {
	if n.instance != nil && n.instance.Live() {
		d.terminate(n, n.mark, contract.Retires(n.mark) && n.group.shrinkable(), "its termination had begun")
	}
	n.say(NodeTerminating, "its instance is being terminated"+d.carriedOn(n))
}

// terminate ends the node's instance, unless another Node may be it.
func (d *decision) terminate(n *node, id string, decrement bool, why string) (done bool) {
	if whyNot := d.contested(n.instance, n); whyNot != "" {
		n.say(NodeHeld, fmt.Sprintf("%s; its instance is not ended: %s", why, whyNot))
		return false
	}
	surplus := n.group.surplus()
	n.group.ended++
	if decrement {
		n.group.lowered++
		d.noteShrunk(n.group)
	}
	d.do(Terminate{Group: n.group.Name, Instance: n.instance.ID, Node: n.ref(), ID: id, Decrement: decrement, Surplus: surplus, Why: why})
	return true
}

// shrinkable says that desired may be one less after what this plan does. It
// may not where there are more instances than desired: then nothing is
// launched in place of one that ends.
func (g *group) shrinkable() bool { return !g.surplus() && g.read-g.lowered > g.Min }

// surplus says that there are more instances than desired.
func (g *group) surplus() bool { return len(g.live)-g.ended > g.read-g.lowered }

// finish carries a retirement on to its end, or back; back where all are halted.
func (d *decision) finish(n *node, halt string) {
	id := n.request.ID
	report, answered := n.answered(id)
	by, held := contract.Held(n.Annotations)
	switch b := d.state.GiveUps[n.InstanceID()]; {
	case halt != "":
		d.keep(n, halt)
	case d.now.Before(b.Until):
		d.keep(n, fmt.Sprintf("it is given up (%s) until %s", b.Cause, clockTime(b.Until)))
	case n.instance == nil || !n.instance.Live():
		d.keep(n, n.whyNotOurs())
	case held:
		d.keep(n, fmt.Sprintf("its annotation %s says so", by))
	case d.contested(n.instance, n) != "":
		d.keep(n, d.contested(n.instance, n))
	case d.refreshed(n):
		d.keep(n, d.replaces(n.group))
	case d.cutOff(n) != "" && !(answered && report.Phase == contract.PhaseDrained):
		d.keep(n, d.cutOff(n))
	case d.recovered(n):
		d.keep(n, "it is Ready again since "+clockTime(n.ReadySince))
	case d.cameBack(n) != "":
		why := d.cameBack(n)
		d.giveUp(n, why, why)
	case n.Ready && !n.group.shrinkable() && !n.group.surplus():
		d.keep(n, fmt.Sprintf("group %s is at its minimum of %d", n.group.Name, n.group.Min))
	case d.alone(n):
		d.finishAlone(n)
	case answered && report.Phase == contract.PhaseDrained:
		d.finishDrained(n)
	case report.Phase == contract.PhaseBlocked && len(report.BlockedBy) > 0:
		d.limit(n, report.Since.Time, "blocked by "+listed(report.BlockedBy))
	case answered && report.Phase == contract.PhaseWaiting && d.task(n) != "":
		d.limit(n, report.Since.Time, "it waits for "+d.task(n))
	case report.Phase == contract.PhaseBlocked, report.Phase == contract.PhaseFailed:
		d.limit(n, report.Since.Time, "it failed: "+report.Message)
	}
	n.say(NodeRetiring, d.whyGoes(n)+n.progress(id))
}

// whyNotOurs says why to end the node's instance would not make a group of ours
// smaller.
func (n *node) whyNotOurs() string {
	if n.instance == nil {
		return "its instance is in none of our groups any more"
	}
	return fmt.Sprintf("its instance is %s and does not count in group %s", n.instance.State, n.group.Name)
}

// finishAlone carries on a retirement whose agent is gone.
func (d *decision) finishAlone(n *node) {
	if d.emptiedAlone(n) {
		why := d.whyGoes(n) + ", and it is empty"
		d.terminate(n, n.request.ID, n.group.shrinkable(), why)
		n.say(NodeTerminating, why)
		return
	}
	since, why := n.request.At.Time, "its agent did not answer"
	if report, answered := n.answered(n.request.ID); answered {
		since, why = report.Renewed.Time, "its agent has fallen silent"
	}
	if !n.ending(d.now) && !d.detaches(n) {
		d.limit(n, since, why)
	}
	n.say(NodeRetiring, d.whyGoes(n)+d.carriedOn(n))
}

// ending says that a pod of the node is in its grace period: its drain is not stuck.
func (n *node) ending(now time.Time) bool {
	return slices.ContainsFunc(n.pods, func(p *fleet.Pod) bool { return !p.Deleted.IsZero() && drainable.Occupies(p, now) })
}

// task names a pod of the node that may stay until it ends, of its own accord; empty
// without one.
func (d *decision) task(n *node) string {
	for _, p := range n.pods {
		question := drainable.Question{Pod: p, Now: d.now, Policy: d.policy.Manner.Rules(p, true, false)}
		if p.Deleted.IsZero() && question.Judge().Outcome == drainable.Wait {
			return fmt.Sprintf("pod %s, which may stay until it ends", p.Key())
		}
	}
	return ""
}

// detaches says that nothing is left on a node that we drain alone but volumes, for
// which it waits for a bounded time: its drain is not stuck.
func (d *decision) detaches(n *node) bool {
	id, why, is := d.forsaken(n)
	if !is {
		return false
	}
	t := d.loneDrain(n, id, why).look(d.unspent())
	return n.closed() && t.left == 0 && t.pause != ""
}

func (d *decision) finishDrained(n *node) {
	if pod, occupied := n.occupied(d.now); occupied {
		d.limit(n, n.report.Since.Time, fmt.Sprintf("pods come back to it, such as %s", pod))
		n.say(NodeRetiring, fmt.Sprintf("%s; it was drained, and then pod %s came", d.whyGoes(n), pod))
		return
	}
	why := d.whyGoes(n) + ", and it is drained"
	d.terminate(n, n.request.ID, n.group.shrinkable(), why)
	n.say(NodeTerminating, why)
}

// limit gives a drain up that is stuck for too long. Its time begins with the request
// where a report does not say since when.
func (d *decision) limit(n *node, since time.Time, why string) {
	why = contract.Shorten(why, mostCause)
	if since.IsZero() {
		since = n.request.At.Time
	}
	end := since.Add(d.policy.MaxDrainTime)
	if d.now.Before(end) {
		d.clock.at(end)
		return
	}
	if n.report.Phase != contract.PhaseBlocked && n.report.Phase != contract.PhaseWaiting {
		d.noteFailed(n.group)
	}
	d.giveUp(n, why, fmt.Sprintf("its drain is given up after %s: %s", d.policy.MaxDrainTime, why))
}

// giveUp takes a retirement back, and leaves the node in peace for a while because of cause.
func (d *decision) giveUp(n *node, cause, why string) {
	b := d.policy.GiveUp(d.state.GiveUps[n.InstanceID()], d.now, cause)
	d.state.GiveUps[n.InstanceID()] = b
	d.clock.at(b.Until)
	d.keep(n, why)
}

// GiveUp is the pause of a node after one more retirement that came to nothing: as long
// as a drain may take after the first, and twice as long after each further one. It
// belongs into fleet.State.GiveUps, also where Auto Scaling has refused to end the node's
// instance: while it lasts, the node is kept.
func (p Policy) GiveUp(b fleet.BackOff, now time.Time, why string) fleet.BackOff {
	return pauseAfter(b, now, p.MaxDrainTime, max(p.MaxDrainTime, giveUpPauseMax), why)
}

// pauseAfter is the pause after one more attempt that came to nothing: so long after the
// first, twice as long after each further one, up to most.
func pauseAfter(b fleet.BackOff, now time.Time, first, most time.Duration, why string) fleet.BackOff {
	count := b.Count + 1
	if now.After(b.Until.Add(giveUpForgotten)) {
		count = 1
	}
	return backOff(now.Add(doubled(first, count, most)), count, why)
}

// keep takes a retirement back.
func (d *decision) keep(n *node, why string) {
	if n.kept {
		return
	}
	n.kept = true
	d.do(Keep{Group: n.groupName(), Node: n.ref(), ID: n.request.ID, AgentGone: d.abandoned(n), Why: why})
	n.say(NodeKept, "its retirement is taken back: "+why)
}

// replaceDrained ends an instance whose pods have left before EC2 takes it, or stops
// it. If the group grew for those pods, its replacement is there already and desired
// goes down again; otherwise Auto Scaling replaces it now.
func (d *decision) replaceDrained(n *node) {
	id, why := d.replaced(n)
	if id == "" {
		return
	}
	if why := d.cutOff(n); why != "" && n.report.Phase != contract.PhaseDrained {
		n.say(NodeLeaving, fmt.Sprintf("%s; no pod is left as far as can be seen; %s", n.whyLeaving(), why))
		return
	}
	if len(n.group.fresh) > 0 {
		d.clock.at(d.now.Add(time.Second)) // first see the group grown
		return
	}
	at, grew := d.state.GrownAt[n.group.Name]
	grew = grew && !at.Before(n.report.Since.Time)
	if !d.terminate(n, id, grew && n.group.shrinkable(), why) {
		return
	}
	n.say(NodeTerminating, why)
	d.drains = slices.DeleteFunc(d.drains, func(x Drain) bool { return x.Node == n.ref() })
	delete(d.state.Alone, n.Name)
}

// replaced is the notice for which a node is drained whose instance is ended before EC2
// takes it, and why; empty where it is not to end, or not yet.
func (d *decision) replaced(n *node) (id, why string) {
	if n.stage != leaving || n.instance == nil || !n.instance.Live() || len(n.report.Answers) == 0 {
		return "", ""
	}
	if drained := n.reported && n.report.Phase == contract.PhaseDrained || d.emptiedAlone(n); !drained {
		return "", ""
	}
	_, held := contract.Held(n.Annotations)
	if _, occupied := n.occupied(d.now); held || occupied {
		return "", ""
	}
	return n.givenUp()
}

// givenUp is the notice for which the instance of a drained node is ended, and why:
// it is not to stay, or its machine is degraded. A node that is drained for a reboot
// serves again after it.
func (n *node) givenUp() (id, why string) {
	kind := n.draining()
	if kind == contract.KindSpot || kind == contract.KindRebalance {
		return n.report.Answers[0], fmt.Sprintf("it is drained for %s", kind)
	}
	if i := slices.IndexFunc(n.report.Answers, contract.Degraded); kind == contract.KindMaintenance && i >= 0 {
		return n.report.Answers[i], "it is drained, and its machine is degraded"
	}
	return "", ""
}

// forget drops what has no consequence any more.
func (d *decision) forget() {
	for _, pauses := range []map[string]fleet.BackOff{d.state.GiveUps, d.state.SwapPauses} {
		maps.DeleteFunc(pauses, func(_ string, b fleet.BackOff) bool { return d.now.After(b.Until.Add(giveUpForgotten)) })
	}
	remembered := max(growthRemembered, d.policy.DelayAfterAdd)
	for name, at := range d.state.GrownAt {
		if d.now.Sub(at) > remembered {
			delete(d.state.GrownAt, name)
		}
	}
	d.forgetDelays()
	for name := range d.state.Bursts {
		if _, goesOn := d.burst(name); !goesOn {
			delete(d.state.Bursts, name)
		}
	}
}
