package drains

import (
	"fmt"
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

// Halted says why nothing at all is retired now, whatever has begun.
func (d *Drains) Halted() string {
	if !d.Policy.ScaleDown {
		return "scale-down is switched off"
	}
	if d.Outage != "" {
		return "nothing is scaled down while " + d.Outage
	}
	return ""
}

// InStead says why a node goes whose swap is under way.
func InStead(s *fleet.Swap) string {
	return fmt.Sprintf("a cheaper node of group %s replaces it", s.Group)
}

// whyGoes says why a node is retired.
func (d *Drains) whyGoes(n *cluster.Node) string {
	if s := d.State.Swap; s != nil && !s.Launched.IsZero() && slices.Contains(s.Instances, n.InstanceID()) {
		return InStead(s)
	}
	return Needless
}

// Needless says why a node goes for which no other has come.
const Needless = "nobody needs it"

const (
	// giveUpPauseMax is the longest time for which a node is left in peace after drains
	// that were given up.
	giveUpPauseMax = 4 * time.Hour
	// giveUpForgotten is how long after a pause the next one is the first again.
	giveUpForgotten = 24 * time.Hour
	// growthRemembered is how long it is known that a group grew.
	growthRemembered = time.Hour
)

// FinishRetirements ends the instances whose nodes have been drained, and gives
// up drains that do not end.
func (d *Drains) FinishRetirements() {
	halt := d.Halted()
	for _, n := range d.In(cluster.Terminating) {
		d.terminateAgain(n)
	}
	for _, n := range d.In(cluster.Retiring) {
		if !n.Kept {
			d.finish(n, halt)
		}
	}
	for _, n := range d.In(cluster.Leaving) {
		d.replaceDrained(n)
	}
	d.forget()
}

// terminateAgain repeats a termination that was cut short between the mark and
// the call to Auto Scaling. Only a retirement may have meant to make the group
// smaller for certain; what was to be replaced is replaced.
func (d *Drains) terminateAgain(n *cluster.Node) {
	if n.Instance != nil && n.Instance.Live() {
		d.terminate(n, n.Mark, contract.Retires(n.Mark) && n.Group.Shrinkable(), "its termination had begun")
	}
	n.Say(verdict.NodeTerminating, "its instance is being terminated"+d.CarriedOn(n))
}

// terminate ends the node's instance, unless another Node may be it.
func (d *Drains) terminate(n *cluster.Node, id string, decrement bool, why string) (done bool) {
	if whyNot := d.Contested(n.Instance, n); whyNot != "" {
		n.Say(verdict.NodeHeld, fmt.Sprintf("%s; its instance is not ended: %s", why, whyNot))
		return false
	}
	surplus := n.Group.Surplus()
	n.Group.Ended++
	if decrement {
		n.Group.Lowered++
		d.NoteShrunk(n.Group)
	}
	d.Do(action.Terminate{Group: n.Group.Name, Instance: n.Instance.ID, Node: n.Ref(), ID: id, Decrement: decrement, Surplus: surplus, Why: why})
	return true
}

// finish carries a retirement on to its end, or back; back where all are halted.
func (d *Drains) finish(n *cluster.Node, halt string) {
	id := n.Request.ID
	report, answered := n.Answered(id)
	by, held := contract.Held(n.Annotations)
	switch b := d.State.GiveUps[n.InstanceID()]; {
	case halt != "":
		d.Keep(n, halt)
	case d.Now.Before(b.Until):
		d.Keep(n, fmt.Sprintf("it is given up (%s) until %s", b.Cause, verdict.ClockTime(b.Until)))
	case n.Instance == nil || !n.Instance.Live():
		d.Keep(n, n.WhyNotOurs())
	case held:
		d.Keep(n, fmt.Sprintf("its annotation %s says so", by))
	case d.Contested(n.Instance, n) != "":
		d.Keep(n, d.Contested(n.Instance, n))
	case d.refreshed(n):
		d.Keep(n, d.Replaces(n.Group))
	case d.CutOff(n) != "" && !(answered && report.Phase == contract.PhaseDrained):
		d.Keep(n, d.CutOff(n))
	case d.recovered(n):
		d.Keep(n, "it is Ready again since "+verdict.ClockTime(n.ReadySince))
	case d.CameBack(n) != "":
		why := d.CameBack(n)
		d.giveUp(n, why, why)
	case n.Ready && !n.Group.Shrinkable() && !n.Group.Surplus():
		d.Keep(n, fmt.Sprintf("group %s is at its minimum of %d", n.Group.Name, n.Group.Min))
	case d.Alone(n):
		d.finishAlone(n)
	case answered && report.Phase == contract.PhaseDrained:
		d.finishDrained(n)
	case report.Phase == contract.PhaseBlocked && len(report.BlockedBy) > 0:
		d.limit(n, report.Since.Time, "blocked by "+verdict.Listed(report.BlockedBy))
	case answered && report.Phase == contract.PhaseWaiting && d.task(n) != "":
		d.limit(n, report.Since.Time, "it waits for "+d.task(n))
	case report.Phase == contract.PhaseBlocked, report.Phase == contract.PhaseFailed:
		d.limit(n, report.Since.Time, "it failed: "+report.Message)
	}
	n.Say(verdict.NodeRetiring, d.whyGoes(n)+n.Progress(id))
}

// finishAlone carries on a retirement whose agent is gone.
func (d *Drains) finishAlone(n *cluster.Node) {
	if d.EmptiedAlone(n) {
		why := d.whyGoes(n) + ", and it is empty"
		d.terminate(n, n.Request.ID, n.Group.Shrinkable(), why)
		n.Say(verdict.NodeTerminating, why)
		return
	}
	since, why := n.Request.At.Time, "its agent did not answer"
	if report, answered := n.Answered(n.Request.ID); answered {
		since, why = report.Renewed.Time, "its agent has fallen silent"
	}
	if !n.Ending(d.Now) && !d.detaches(n) {
		d.limit(n, since, why)
	}
	n.Say(verdict.NodeRetiring, d.whyGoes(n)+d.CarriedOn(n))
}

// task names a pod of the node that may stay until it ends, of its own accord; empty
// without one.
func (d *Drains) task(n *cluster.Node) string {
	for _, p := range n.Pods {
		question := drainable.Question{Pod: p, Now: d.Now, Policy: d.Policy.Manner.Rules(p, true, false)}
		if p.Deleted.IsZero() && question.Judge().Outcome == drainable.Wait {
			return fmt.Sprintf("pod %s, which may stay until it ends", p.Key())
		}
	}
	return ""
}

// detaches says that nothing is left on a node that we drain alone but volumes, for
// which it waits for a bounded time: its drain is not stuck.
func (d *Drains) detaches(n *cluster.Node) bool {
	id, why, is := d.Forsaken(n)
	if !is {
		return false
	}
	t := d.LoneDrain(n, id, why).Look(d.Unspent())
	return n.Closed() && t.Left == 0 && t.Pause != ""
}

func (d *Drains) finishDrained(n *cluster.Node) {
	if pod, occupied := n.Occupied(d.Now); occupied {
		d.limit(n, n.Report.Since.Time, fmt.Sprintf("pods come back to it, such as %s", pod))
		n.Say(verdict.NodeRetiring, fmt.Sprintf("%s; it was drained, and then pod %s came", d.whyGoes(n), pod))
		return
	}
	why := d.whyGoes(n) + ", and it is drained"
	d.terminate(n, n.Request.ID, n.Group.Shrinkable(), why)
	n.Say(verdict.NodeTerminating, why)
}

// limit gives a drain up that is stuck for too long. Its time begins with the request
// where a report does not say since when.
func (d *Drains) limit(n *cluster.Node, since time.Time, why string) {
	why = contract.Shorten(why, cluster.MostCause)
	if since.IsZero() {
		since = n.Request.At.Time
	}
	end := since.Add(d.Policy.MaxDrainTime)
	if d.Now.Before(end) {
		d.Clock.At(end)
		return
	}
	if n.Report.Phase != contract.PhaseBlocked && n.Report.Phase != contract.PhaseWaiting {
		d.NoteFailed(n.Group)
	}
	d.giveUp(n, why, fmt.Sprintf("its drain is given up after %s: %s", d.Policy.MaxDrainTime, why))
}

// giveUp takes a retirement back, and leaves the node in peace for a while because of cause.
func (d *Drains) giveUp(n *cluster.Node, cause, why string) {
	b := GiveUp(d.Policy, d.State.GiveUps[n.InstanceID()], d.Now, cause)
	d.State.GiveUps[n.InstanceID()] = b
	d.Clock.At(b.Until)
	d.Keep(n, why)
}

// GiveUp is the pause of a node after one more retirement that came to nothing: as long
// as a drain may take after the first, and twice as long after each further one. It
// belongs into fleet.State.GiveUps, also where Auto Scaling has refused to end the node's
// instance: while it lasts, the node is kept.
func GiveUp(p policy.Policy, b fleet.BackOff, now time.Time, why string) fleet.BackOff {
	return PauseAfter(b, now, p.MaxDrainTime, max(p.MaxDrainTime, giveUpPauseMax), why)
}

// PauseAfter is the pause after one more attempt that came to nothing: so long after the
// first, twice as long after each further one, up to most.
func PauseAfter(b fleet.BackOff, now time.Time, first, most time.Duration, why string) fleet.BackOff {
	count := b.Count + 1
	if now.After(b.Until.Add(giveUpForgotten)) {
		count = 1
	}
	return cluster.BackOff(now.Add(launch.Doubled(first, count, most)), count, why)
}

// replaceDrained ends an instance whose pods have left before EC2 takes it, or stops
// it. If the group grew for those pods, its replacement is there already and desired
// goes down again; otherwise Auto Scaling replaces it now.
func (d *Drains) replaceDrained(n *cluster.Node) {
	id, why := d.Replaced(n)
	if id == "" {
		return
	}
	if why := d.CutOff(n); why != "" && n.Report.Phase != contract.PhaseDrained {
		n.Say(verdict.NodeLeaving, fmt.Sprintf("%s; no pod is left as far as can be seen; %s", n.WhyLeaving(), why))
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
	delete(d.State.Alone, n.Name)
}

// forget drops what has no consequence any more.
func (d *Drains) forget() {
	for _, pauses := range []map[string]fleet.BackOff{d.State.GiveUps, d.State.SwapPauses} {
		maps.DeleteFunc(pauses, func(_ string, b fleet.BackOff) bool { return d.Now.After(b.Until.Add(giveUpForgotten)) })
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

// recovered says that a node that is being retired has become Ready since that began, and
// that its other clock, that of nodes that nobody needs, has not run out.
func (d *Drains) recovered(n *cluster.Node) bool {
	if !n.Ready || !n.ReadySince.After(n.Request.At.Time) {
		return false
	}
	since, ok := d.Marked(n)
	return !ok || d.Now.Before(since.Add(n.Group.UnneededTime(d.Policy)))
}
