package drains

import (
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Halted says why nothing at all is scaled down now, whatever has begun.
func (d *Drains) Halted() verdict.Details {
	if !d.Policy.ScaleDown {
		return verdict.Say("scale-down is switched off")
	}
	if d.Outage != nil {
		return verdict.Say("nothing is scaled down while {why}", verdict.Why(d.Outage))
	}
	return nil
}

// ReplacedBy says why a node is removed whose replacement is under way.
func ReplacedBy(s *fleet.NodeReplacement) verdict.Details {
	return verdict.Say("a cheaper node of group {group} replaces it", verdict.Group(s.Group))
}

// whyGoes says why a node is scaled down.
func (d *Drains) whyGoes(n *cluster.Node) verdict.Details {
	if s := d.State.Replacement; s != nil && !s.Launched.IsZero() && slices.Contains(s.Instances, n.InstanceID()) {
		return ReplacedBy(s)
	}
	return Needless
}

// Needless says why a node is removed for which no other has come.
var Needless = verdict.Say("it is unneeded")

const (
	// giveUpBackOffMax is the longest time for which a node is not tried again after drains
	// that were given up.
	giveUpBackOffMax = 4 * time.Hour
	// giveUpForgotten is how long after a back-off the next one is the first again.
	giveUpForgotten = 24 * time.Hour
	// growthRemembered is how long the state keeps that a group grew.
	growthRemembered = time.Hour
)

// FinishScaleDowns ends the instances whose nodes have been drained, and gives
// up drains that do not end.
func (d *Drains) FinishScaleDowns() {
	halt := d.Halted()
	for n := range d.In(cluster.Terminating) {
		d.terminateAgain(n)
	}
	for n := range d.In(cluster.ScalingDown) {
		if !n.Cancelled {
			d.finish(n, halt)
		}
	}
	for n := range d.In(cluster.Draining) {
		d.endEarly(n)
	}
	d.forget()
}

// terminateAgain repeats a termination that was cut short between the mark and
// the call to Auto Scaling. Only a scale-down may have meant to make the group
// smaller for certain; what was to be replaced is replaced. An external provider takes
// each call for another machine less, and may show the one that an earlier leader ended for
// a while.
func (d *Drains) terminateAgain(n *cluster.Node) {
	settled := d.Leads.Add(cluster.SettlesIn)
	switch {
	case n.Instance == nil || !n.Instance.Live():
	case n.Group.External && !d.Leads.IsZero() && d.Now.Before(settled):
		d.Clock.At(settled)
	default:
		d.terminate(n, n.Mark, contract.IsScaleDown(n.Mark) && n.Group.Shrinkable(), verdict.Say("its termination had begun"))
	}
	n.Say(verdict.NodeTerminating, verdict.Say("its instance is being terminated").Then(d.CarriedOn(n)))
}

// terminate ends the node's instance, unless another Node may be it.
func (d *Drains) terminate(n *cluster.Node, id string, decrement bool, why verdict.Details) (done bool) {
	if whyNot := d.Contested(n.Instance, n); whyNot != nil {
		n.Say(verdict.NodeHeld, why.Then(verdict.Say("its instance is not terminated: {why}", verdict.Why(whyNot))))
		return false
	}
	if g := n.Group; g.Held != "" || g.External && !g.Shrinkable() {
		whyNot := verdict.Say("its group would be smaller than {min}, as its provider replaces none", verdict.Min(g.Min))
		if g.Held != "" {
			whyNot = verdict.Quote(g.Held)
		}
		n.Say(verdict.NodeHeld, why.Then(verdict.Say("its instance is not terminated: {why}", verdict.Why(whyNot))))
		return false
	}
	decrement = decrement || n.Group.External
	surplus := n.Group.Surplus()
	n.Group.Ended++
	if decrement {
		n.Group.Lowered++
		d.NoteShrunk(n.Group)
	}
	d.NoteEnding(n)
	d.Do(action.Terminate{Group: n.Group.Name, Instance: n.Instance.ID, Node: n.Ref(), ID: id, Decrement: decrement, Surplus: surplus, Why: why.String()})
	return true
}

// finish carries on a scale-down or cancels it; it cancels where all are halted.
func (d *Drains) finish(n *cluster.Node, halt verdict.Details) {
	id := n.Request.ID
	report, answered := n.Answered(id)
	by, held := contract.Held(n.Annotations)
	switch b := d.State.GiveUps[n.InstanceID()]; {
	case halt != nil:
		d.Cancel(n, halt)
	case d.Now.Before(b.Until):
		d.Cancel(n, verdict.Say("it was given up ({cause}), and is not tried again until {until}", verdict.Cause(b.Cause), verdict.Until(b.Until)))
	case n.Instance == nil || !n.Instance.Live():
		d.Cancel(n, n.WhyNotOurs())
	case held:
		d.Cancel(n, verdict.Say("its annotation {annotation} keeps it", verdict.Annotation(by)))
	case d.Contested(n.Instance, n) != nil:
		d.Cancel(n, d.Contested(n.Instance, n))
	case d.refreshed(n):
		d.Cancel(n, d.WhyReplacing(n.Group))
	case d.CutOff(n) != nil && !(answered && report.Phase == contract.PhaseDrained):
		d.Cancel(n, d.CutOff(n))
	case d.recovered(n):
		d.Cancel(n, verdict.Say("it is Ready again since {since}", verdict.Since(n.ReadySince)))
	case d.CameBack(n) != "":
		why := d.CameBack(n)
		d.giveUp(n, why, verdict.Quote(why))
	case n.Group.Unread: // its agent goes on, and it goes when that is over
	case n.Group.Held != "":
		d.limit(n, time.Time{}, verdict.Quote(n.Group.Held))
	case n.Ready && !n.Group.Shrinkable() && !n.Group.Surplus():
		d.Cancel(n, verdict.Say("group {group} is at its minimum of {min}", verdict.Group(n.Group.Name), verdict.Min(n.Group.Min)))
	case !n.Ready && !n.Group.Shrinkable() && !n.Group.Surplus() && d.WhyNotReplaced(n.Group) != nil:
		whyNot := verdict.Say("its instance is not terminated: group {group} may not have fewer than {min}, and {why}", verdict.Group(n.Group.Name), verdict.Min(n.Group.Min), verdict.Why(d.WhyNotReplaced(n.Group)))
		d.limit(n, time.Time{}, whyNot)
		n.Say(verdict.NodeScalingDown, d.whyGoes(n).Then(n.Progress(id), whyNot))
	case d.Acts(n):
		d.finishAlone(n)
	case answered && report.Phase == contract.PhaseDrained:
		d.finishDrained(n)
	case report.Phase == contract.PhaseBlocked && len(report.BlockedBy) > 0:
		d.limit(n, d.drainsSince(n), verdict.Say("blocked by {blockers}", verdict.Blockers(report.BlockedBy)))
	case answered && report.Phase == contract.PhaseWaiting && d.task(n) != "":
		d.limit(n, d.drainsSince(n), verdict.Say("it waits for pod {pod}, which may stay until it ends", verdict.Pod(d.task(n))))
	case answered && report.Phase == contract.PhaseDraining:
		d.limitGrace(n)
	case report.Phase == contract.PhaseBlocked, report.Phase == contract.PhaseFailed:
		d.limit(n, d.drainsSince(n), verdict.Say("it failed: {cause}", verdict.Cause(report.Message)))
	}
	n.Say(verdict.NodeScalingDown, d.whyGoes(n).Then(n.Progress(id)))
}

// finishAlone carries on a scale-down whose agent is unresponsive.
func (d *Drains) finishAlone(n *cluster.Node) {
	if d.Emptied(n) {
		why := verdict.Say("{why}, and it is empty", verdict.Why(d.whyGoes(n)))
		d.terminate(n, n.Request.ID, n.Group.Shrinkable(), why)
		n.Say(verdict.NodeTerminating, why)
		return
	}
	since, why := n.Request.At.Time, verdict.Say("its agent did not answer")
	if report, answered := n.Answered(n.Request.ID); answered {
		since, why = report.Renewed.Time, verdict.Say("its agent does not report any more")
	}
	d.limitGrace(n)
	if !n.Ending(d.Now) && !d.detaches(n) {
		d.limit(n, since, why)
	}
	n.Say(verdict.NodeScalingDown, d.whyGoes(n).Then(d.CarriedOn(n)))
}

// task names a pod of the node that may stay until it ends, of its own accord; empty
// without one.
func (d *Drains) task(n *cluster.Node) string {
	for _, p := range n.Pods {
		question := drainable.Question{Pod: p, Now: d.Now, Policy: d.Policy.Manner.Rules(p, true, false)}
		if p.Deleted.IsZero() && question.Judge().Outcome == drainable.Wait {
			return p.Key()
		}
	}
	return ""
}

// detaches reports whether nothing is left on a node that we drain alone but volumes, for
// which it waits for a bounded time: its drain is not stuck.
func (d *Drains) detaches(n *cluster.Node) bool {
	id, why, is := d.Unresponsive(n)
	if !is {
		return false
	}
	t := d.LoneDrain(n, id, why).Remedy(d.Unspent())
	return n.Closed() && t.Left == 0 && t.Pause != nil
}

func (d *Drains) finishDrained(n *cluster.Node) {
	if pod, occupied := n.Occupied(d.Now); occupied {
		d.limit(n, d.drainsSince(n), verdict.Say("pods come back to it, such as {pod}", verdict.Pod(pod)))
		n.Say(verdict.NodeScalingDown, d.whyGoes(n).Then(verdict.Say("it was drained, and then pod {pod} came", verdict.Pod(pod))))
		return
	}
	why := verdict.Say("{why}, and it is drained", verdict.Why(d.whyGoes(n)))
	d.terminate(n, n.Request.ID, n.Group.Shrinkable(), why)
	n.Say(verdict.NodeTerminating, why)
}

// limitGrace gives a drain up that waits for a pod whose grace period is too long. The pod goes
// all the same; its node is open to others meanwhile.
func (d *Drains) limitGrace(n *cluster.Node) {
	for _, p := range n.Pods {
		if since, longer := d.Outlasts(p, n.Request.At.Time); longer {
			d.limit(n, since, cluster.InItsGracePeriod(p))
		}
	}
}

// drainsSince is since when a node drains by its report. That is the node's word: it makes the time
// of a drain no more than twice as long.
func (d *Drains) drainsSince(n *cluster.Node) time.Time {
	since := n.Report.Since.Time
	if since.After(d.Now) {
		return n.Request.At.Time
	}
	return cluster.Earliest(since, n.Request.At.Add(d.Policy.MaxDrainTime))
}

// limit gives a drain up that is stuck for too long. Its time begins with the request
// where a report does not say since when, or names a time to come.
func (d *Drains) limit(n *cluster.Node, since time.Time, why verdict.Details) {
	if n.Cancelled {
		return
	}
	if since.IsZero() || since.After(d.Now) {
		since = n.Request.At.Time
	}
	end := since.Add(d.Policy.MaxDrainTime)
	if d.Now.Before(end) {
		d.Clock.At(end)
		return
	}
	switch n.Report.Phase {
	case contract.PhaseBlocked, contract.PhaseWaiting, contract.PhaseDraining:
	default:
		d.NoteFailed(n.Group)
	}
	cause := contract.Shorten(why.String(), cluster.MostCause)
	d.giveUp(n, cause, verdict.Say("its drain is given up after {after}: {cause}", verdict.After(d.Policy.MaxDrainTime), verdict.Cause(cause)))
}

// giveUp cancels a scale-down, and backs off from the node for a while because of cause.
func (d *Drains) giveUp(n *cluster.Node, cause string, why verdict.Details) {
	b := GiveUp(d.Policy, d.State.GiveUps[n.InstanceID()], d.Now, cause)
	d.State.GiveUps[n.InstanceID()] = b
	d.Clock.At(b.Until)
	d.Cancel(n, why)
}

// GiveUp is the back-off of a node after one more scale-down that came to nothing: as long as a
// drain may take after the first, and twice as long after each further one. It belongs into
// fleet.State.GiveUps, also where Auto Scaling has refused to end the node's instance: while it
// lasts, the node is not scaled down.
func GiveUp(p policy.Policy, b fleet.BackOff, now time.Time, why string) fleet.BackOff {
	return BackOffAfter(b, now, p.MaxDrainTime, max(p.MaxDrainTime, giveUpBackOffMax), why)
}

// BackOffAfter is the back-off after one more attempt that came to nothing: so long after the
// first, twice as long after each further one, up to most.
func BackOffAfter(b fleet.BackOff, now time.Time, first, most time.Duration, why string) fleet.BackOff {
	count := b.Count + 1
	if now.After(b.Until.Add(giveUpForgotten)) {
		count = 1
	}
	return cluster.BackOff(now.Add(launch.Doubled(first, count, most)), count, why)
}

// endEarly ends an instance whose pods have left before EC2 takes it, or stops
// it. If the group grew for those pods, its replacement is there already and desired
// goes down again; otherwise Auto Scaling replaces it now.
func (d *Drains) endEarly(n *cluster.Node) {
	id, why := d.EndsEarly(n)
	if id == "" {
		return
	}
	if why := d.CutOff(n); why != nil && n.Report.Phase != contract.PhaseDrained {
		n.Say(verdict.NodeDraining, n.WhyDraining().Then(verdict.Say("no pod is left as far as can be seen"), why))
		return
	}
	if len(n.Group.Fresh) > 0 {
		d.Clock.At(d.Now.Add(time.Second)) // first see the group grown
		return
	}
	at, grew := d.State.GrownAt[n.Group.Name]
	grew = grew && !at.Before(n.Report.Since.Time)
	if !d.terminate(n, id, grew && n.Group.Shrinkable(), why) {
		return
	}
	n.Say(verdict.NodeTerminating, why)
	d.Carried = slices.DeleteFunc(d.Carried, func(x action.Drain) bool { return x.Node == n.Ref() })
	delete(d.State.StandIns, n.Name)
}

// forget drops what has no consequence any more.
func (d *Drains) forget() {
	for _, backOffs := range []map[string]fleet.BackOff{d.State.GiveUps, d.State.ReplacementBackOffs} {
		maps.DeleteFunc(backOffs, func(_ string, b fleet.BackOff) bool { return d.Now.After(b.Until.Add(giveUpForgotten)) })
	}
	remembered := max(growthRemembered, d.Policy.DelayAfterAdd)
	for name, at := range d.State.GrownAt {
		if d.Now.Sub(at) > remembered {
			delete(d.State.GrownAt, name)
		}
	}
	d.ForgetDelays()
	for name := range d.State.Bursts {
		if _, goesOn := d.Burst(name); !goesOn {
			delete(d.State.Bursts, name)
		}
	}
}

// recovered reports whether a node that is being scaled down has become Ready since that began, and
// whether its other clock, that of unneeded nodes, has not run out. When it became Ready its kubelet
// says, whose clock may be behind ours.
func (d *Drains) recovered(n *cluster.Node) bool {
	if !n.Ready || !n.Request.Unready && !n.ReadySince.After(n.Request.At.Time) {
		return false
	}
	since, ok := d.Marked(n)
	return !ok || d.Now.Before(since.Add(n.Group.UnneededTime(d.Policy)))
}
