package scaleup

import (
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// SeatWaiting looks for places for the pods without a node, without launching any: on nodes that
// serve, because kube-scheduler may not have tried since room came free; on nodes whose drain is
// being undone; on upcoming nodes; where pods of nodes being scaled down were to go and can go
// elsewhere; and on nodes being scaled down, because to cancel a scale-down is cheaper than to
// launch. Gangs, which need more room at once, come after all others.
func (d *ScaleUp) SeatWaiting() {
	d.Upcoming = d.OnTheWay()
	d.Measure()
	waiting := append(d.waiting(), d.Foresee()...)
	d.RationGrowth(waiting)
	alone, gangs := d.gangsOf(waiting)
	d.gangs = gangs
	room := d.OpenRoom()
	d.left = alone[:0] // InOrder gives this list, of which each is read before it is written, or another
	for _, t := range d.InOrder(alone) {
		if !d.Ration.Ask(t.Pod.Namespace) {
			d.SayPod(t, verdict.PodBudgetSpent, "", d.BudgetSpent(t.Pod.Namespace))
			d.SettleBack(t)
			continue
		}
		s, ok := room.Seat(t)
		switch {
		case ok:
			d.take(s)
		case !d.young(t):
			d.left = append(d.left, t)
		}
	}
}

// take settles that a pod has that seat.
func (d *ScaleUp) take(s seats.Seat) {
	if s.Cancels != nil {
		d.Cancel(s.Cancels, verdict.Say("pod {pod} needs it", verdict.Pod(s.Pod.Pod.Key())))
	}
	s = d.dispute(s)
	d.SayPod(s.Pod, s.Reason, "", s.Details)
}

// young settles the verdict of a pod that is too young to trigger scale-up, and asks
// for an evaluation when it is old enough.
func (d *ScaleUp) young(t fit.Tenant) bool {
	if !d.TooYoung(t) {
		return false
	}
	due := d.GrowsFrom(t)
	d.Clock.At(due)
	d.SayPod(t, verdict.PodTooYoung, "", verdict.Say("there is no room for it, and it triggers scale-up from {until} on", verdict.Until(due)))
	return true
}

var gated = verdict.Say("it has scheduling gates, and wants no node before they are removed")

// waiting are the pods that a new node could help; each of the others without a
// node gets a verdict that says why none would.
func (d *ScaleUp) waiting() []fit.Tenant {
	list := make([]fit.Tenant, 0, len(d.Unbound.Pods))
	for i, p := range d.Unbound.Pods {
		if !cluster.WantsNode(p) {
			continue
		}
		t := fit.Tenant{Pod: p}
		switch {
		case p.Scheduling == fleet.Gated:
			d.SayPod(t, verdict.PodGated, "", gated)
		case !d.Scheduled(p):
			d.SayPod(t, verdict.PodOtherScheduler, "", verdict.Say("its scheduler is {scheduler}, and --scheduler-name does not name that, so it triggers no scale-up", verdict.Scheduler(p.Spec.SchedulerName)))
		case d.Promised(p):
			d.SayPod(t, verdict.PodNominated, "", verdict.Say("kube-scheduler makes room for it on node {node}", verdict.Node(p.Nominated())))
		case d.Expendable(p):
			d.SayPod(t, verdict.PodExpendable, "", verdict.Say("its priority {priority} is below {min}, so it triggers no scale-up", verdict.Priority(int(p.Priority())), verdict.Min(int(d.Policy.ExpendableBelow))))
		case d.Unheard[p] != nil:
			d.SayPod(t, verdict.PodTermsLeftOut, "", d.Unheard[p])
		default:
			list = append(list, d.Fit.TenantAt(int(d.Unbound.Rows[i])))
		}
	}
	return list
}
