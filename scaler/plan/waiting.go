package plan

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// seatWaiting looks for places for the pods without a node, without launching
// any: on nodes that serve, because kube-scheduler may not have looked since
// room came free; on nodes whose drain is being undone; on nodes that come; where
// pods of nodes being retired were to go and can go elsewhere; and on nodes being
// retired, because keeping is cheaper than launching. Gangs, which
// need more room at once, come after all others.
func (d *decision) seatWaiting() {
	d.coming = d.onTheWay()
	d.measure()
	waiting := append(d.waiting(), d.foresee()...)
	d.rationGrowth(waiting)
	alone, gangs := d.gangsOf(waiting)
	d.gangs = gangs
	room := d.openRoom()
	d.left = make([]fit.Tenant, 0, len(alone))
	for _, t := range d.inOrder(alone) {
		if !d.ration.Ask(t.Pod.Namespace) {
			d.sayPod(t, PodBudgetSpent, "", d.budgetSpent(t.Pod.Namespace))
			d.settleBack(t)
			continue
		}
		s, ok := room.seat(t)
		switch {
		case ok:
			d.take(s)
		case !d.young(t):
			d.left = append(d.left, t)
		}
	}
}

// openRoom is where pods may go without a new node.
type openRoom struct {
	*decision
	free, staying, coming *fit.Row
	yielding              *yielding
	retiring              *reprieve
}

// openRoom lists it as it is now. No room may come free while it is in use.
func (d *decision) openRoom() openRoom {
	r := openRoom{decision: d, yielding: d.yielding(), retiring: d.reprieve()}
	r.list()
	return r
}

func (r *openRoom) list() {
	r.free = r.fit.NewRow(places(r.in(serving, cordoned, leaving))) // some tolerate a cordon, and some of those that leave wait for their turn
	r.staying = r.fit.NewRow(r.decision.staying())
	r.coming = r.fit.NewRow(r.decision.coming)
}

// seat is where a pod goes that needs no new node.
type seat struct {
	pod     fit.Tenant
	reason  Reason
	message string
	// keeps is the node whose retirement is taken back for it, nil without one.
	keeps *node
}

// seat gives the pod a seat.
func (r *openRoom) seat(t fit.Tenant) (seat, bool) {
	if p := r.free.Seat(t); p != nil {
		return seat{pod: t, reason: PodFitsFree, message: fmt.Sprintf("node %s has room for it", p.Name)}, true
	}
	if p := r.staying.Seat(t); p != nil {
		return seat{pod: t, reason: PodKeepsNode, message: fmt.Sprintf("node %s stays and has room for it", p.Name)}, true
	}
	if p := r.coming.Seat(t); p != nil {
		return seat{pod: t, reason: PodFitsComing, message: fmt.Sprintf("%s is coming and has room for it", p.Name)}, true
	}
	if p := r.yielding.seat(t); p != nil {
		r.list() // who was to go there may have left more room than it takes
		return seat{pod: t, reason: PodFitsFree, message: fmt.Sprintf("node %s has room for it", p.Name)}, true
	}
	if r.tooYoung(t) {
		return seat{}, false
	}
	n := r.retiring.seat(t)
	if n == nil {
		return seat{}, false
	}
	r.list() // what was to move to other nodes has left room there
	return seat{pod: t, reason: PodKeepsNode, message: fmt.Sprintf("node %s stays and has room for it", n.Name), keeps: n}, true
}

// take settles that a pod has that seat.
func (d *decision) take(s seat) {
	if s.keeps != nil {
		d.keep(s.keeps, fmt.Sprintf("pod %s needs it", s.pod.Pod.Key()))
	}
	s = d.dispute(s)
	d.sayPod(s.pod, s.reason, "", s.message)
}

// young settles the verdict of a pod that is too young to bring a node, and asks
// for a look when it is old enough.
func (d *decision) young(t fit.Tenant) bool {
	if !d.tooYoung(t) {
		return false
	}
	due := d.growsFrom(t)
	d.clock.at(due)
	d.sayPod(t, PodYoung, "", fmt.Sprintf("there is no room for it, and it brings a node from %s on", clockTime(due)))
	return true
}

func (d *decision) tooYoung(t fit.Tenant) bool { return d.now.Before(d.growsFrom(t)) }

// growsFrom is when a pod is old enough to bring a node. One that runs now and will
// wait for another node is.
func (d *decision) growsFrom(t fit.Tenant) time.Time {
	if t.Pod.Node != "" {
		return d.now
	}
	delay, _ := contract.PodScaleUpDelay(t.Pod.Annotations, d.policy.NewPodDelay) // one that nobody can read counts for nothing
	return t.Pod.Created.Add(delay)
}

// waiting are the pods that a new node could help; each of the others without a
// node gets a verdict that says why none would.
func (d *decision) waiting() []fit.Tenant {
	list := make([]fit.Tenant, 0, d.unplaced())
	for i, p := range d.pods {
		if !wantsNode(p) {
			continue
		}
		t := fit.Tenant{Pod: p}
		switch {
		case p.Scheduling == fleet.Gated:
			d.sayPod(t, PodGated, "", "it has scheduling gates, and wants no node before they are removed")
		case !d.scheduled(p):
			d.sayPod(t, PodOfOther, "", fmt.Sprintf("its scheduler is %s, and --scheduler-name does not name that, so it brings no node", p.Spec.SchedulerName))
		case d.promised(p):
			d.sayPod(t, PodNominated, "", fmt.Sprintf("kube-scheduler makes room for it on node %s", p.Nominated))
		case d.expendable(p):
			d.sayPod(t, PodExpendable, "", fmt.Sprintf("its priority %d is below %d, so it brings no node", p.Priority(), d.policy.ExpendableBelow))
		case d.unheard[p] != "":
			d.sayPod(t, PodTermsLeftOut, "", d.unheard[p])
		default:
			list = append(list, d.fit.TenantAt(i))
		}
	}
	return list
}

// scheduled says that a scheduler places the pod for which nodes are brought.
func (d *decision) scheduled(p *fleet.Pod) bool {
	if p.Spec == nil || p.Spec.SchedulerName == "" {
		return true // the API server fills in the default
	}
	return slices.Contains(d.policy.Schedulers, p.Spec.SchedulerName)
}

// promised says that kube-scheduler makes room for the pod on a node that it may
// still come to.
func (d *decision) promised(p *fleet.Pod) bool {
	n := d.node(p.Nominated)
	return n != nil && n.stage != leaving && n.stage != terminating && (n.stage != retiring || n.kept)
}

// wantsNode says that the pod is without a node and in need of one. Pods of
// DaemonSets are made for a node that is there already, and those that stand for
// head-room are none.
func wantsNode(p *fleet.Pod) bool {
	return p.Node == "" && !imaginary(p) && drainable.MustBePlacedAgain(p)
}

// inOrder is the order in which pods are placed: by priority, the largest
// first, measured against the largest nodes that there could be.
func (d *decision) inOrder(pods []fit.Tenant) []fit.Tenant {
	var all []*fit.Looks
	for _, g := range d.groups {
		all = append(all, g.looks...)
	}
	return d.fit.Sorted(pods, all)
}

// sayPod settles the verdict of a waiting pod. Pods that are only foreseen to
// wait have none.
func (d *decision) sayPod(t fit.Tenant, reason Reason, group, message string) {
	if !wantsNode(t.Pod) {
		return
	}
	if d.podVerdicts == nil {
		d.podVerdicts = make([]Verdict, 0, d.unplaced()+len(d.nodes)+len(d.groups))
	}
	d.podVerdicts = append(d.podVerdicts, Verdict{
		Of: OfPod, Name: t.Pod.Key(), UID: string(t.Pod.UID), Group: group, Reason: reason, Message: message,
	})
}

// unplaced counts the pods without a node.
func (d *decision) unplaced() int {
	n := 0
	for _, p := range d.pods {
		if p.Node == "" {
			n++
		}
	}
	return n
}
