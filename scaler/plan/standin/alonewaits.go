package standin

import (
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// A drain that the scaler carries on waits as one by an agent does: for the load balancers before
// its first eviction, and for the volumes after its last pod. An agent writes into its report since
// when. Where it has not come to that, the scaler's persisted state has it.

// shut reports whether nothing new comes to the node: no pod, and nothing from load balancers.
// Whoever cordoned the node, an agent, people or the scaler: a drain that goes on keeps load
// balancers away as well.
func (x loneDrain) shut() bool {
	_, excluded := x.node.Labels[contract.LabelExcludeFromLoadBalancers]
	return x.node.Closed() && excluded
}

// pause is what the drain waits for now; nil where for nothing but pods.
func (x loneDrain) pause(t loneTally) verdict.Details {
	if t.Left == 0 {
		return x.detaching(t.drain)
	}
	until := x.balancersBy(t.drain)
	if !x.Now.Before(until) {
		return nil
	}
	x.Clock.At(until)
	return verdict.Say("it waits until {until} for the load balancers to leave the node out", verdict.Until(until))
}

// balancersBy is until when load balancers are given time to leave the node out; zero where they
// are not waited for.
func (x loneDrain) balancersBy(d drainable.Drain) time.Time {
	if x.begun() {
		return time.Time{}
	}
	return d.BalancersBy(x.excludedSince(), d.Deadline, d.Steps.Needs(slices.Values(x.node.Pods)))
}

// begun reports whether an agent has begun to evict. One that waits after that has pods that
// shall end by themselves.
func (x loneDrain) begun() bool {
	return x.report.Phase != "" && (x.report.Phase != contract.PhaseWaiting || slices.Contains(x.report.Told, contract.EventDrainStarted))
}

// excludedSince is since when load balancers are kept away from the node.
func (x loneDrain) excludedSince() time.Time {
	if at := x.report.Excluded.Time; !at.IsZero() {
		return at
	}
	return firstSeen(x.Given.StandIns[x.node.Name].Excluded, x.Now)
}

// detaching says what an empty node still waits for; nil for nothing, as on a node that its
// agent has called drained.
func (x loneDrain) detaching(d drainable.Drain) verdict.Details {
	until, volumes := d.VolumesBy(x.kind, x.node.Pods, x.node.Attached, x.emptySince(), x.deadline)
	if volumes == 0 || x.report.Phase == contract.PhaseDrained {
		return nil
	}
	return verdict.Say("no pod is left").Then(verdict.Say("it waits until {until} for its volumes to be detached", verdict.Until(until)))
}

// emptySince is since when no pod is left on the node.
func (x loneDrain) emptySince() time.Time {
	if at := x.report.Emptied.Time; !at.IsZero() {
		return at
	}
	return firstSeen(x.Given.StandIns[x.node.Name].Emptied, x.Now)
}

// firstSeen is what the state keeps, or now.
func firstSeen(remembered, now time.Time) time.Time {
	if remembered.IsZero() {
		return now
	}
	return remembered
}

// remember persists since when nothing is to come to the node, and since when it is empty: for as
// long as volumes are attached, or the wait for them would begin anew when it is over. Of its pods
// it persists which were called last, and which may come back.
func (x loneDrain) remember(t loneTally) {
	var m fleet.LoneDrain
	if x.report.Excluded.IsZero() {
		m.Excluded = x.excludedSince()
	}
	if t.Left == 0 && x.node.Attached > 0 {
		m.Emptied = x.emptySince()
	}
	m.LastCalls, m.Evicted = x.noteCalls(t.drain.Returns), x.evictions(t.drain.Returns)
	if !m.IsZero() {
		x.State.StandIns[x.node.Name] = m
	}
}

// keepWaits keeps the persisted state of drains that are not carried on: their waits do not begin
// anew after an outage.
func (d *StandIn) keepWaits(stages []cluster.Stage) {
	for n := range d.In(stages...) {
		if m, known := d.Given.StandIns[n.Name]; known {
			d.State.StandIns[n.Name] = m
		}
	}
}
