package scaleup

import (
	"cmp"
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// gang is pods that are of no use one by one, such as the workers of a training. Either each of
// them that waits finds a place, on nodes that there are or that are launched, or no node is
// launched for any.
type gang struct {
	name string
	pods []fit.Tenant
}

// gangOf names the gang of a pod; empty for a pod of none. Kubernetes has a word
// for it, which is alpha and off by default in 1.36, and of which the pod names
// only the group: how many of it would do is not looked at, all of them have to.
// https://github.com/kubernetes/enhancements/issues/4671
func gangOf(p *fleet.Pod) string {
	if p.Spec != nil && p.Spec.SchedulingGroup != nil && p.Spec.SchedulingGroup.PodGroupName != nil {
		return fmt.Sprintf("pod group %s/%s", p.Namespace, *p.Spec.SchedulingGroup.PodGroupName)
	}
	switch name := p.Annotations[contract.AnnotationAllOrNothing]; name {
	case "", "false":
		return ""
	case "true":
		if p.Owner == nil {
			return ""
		}
		return fmt.Sprintf("%s %s/%s", p.Owner.Kind, p.Namespace, p.Owner.Name)
	default:
		return fmt.Sprintf("%s/%s", p.Namespace, name)
	}
}

// gangsOf takes the gangs out of the pending pods, whose list is used up: those of greater
// priority first, then by name.
func (d *ScaleUp) gangsOf(pods []fit.Tenant) (alone []fit.Tenant, gangs []gang) {
	byName := map[string]int{}
	alone = pods[:0] // there may be very many
	for _, t := range pods {
		name := gangOf(t.Pod)
		if name == "" {
			alone = append(alone, t)
			continue
		}
		i, known := byName[name]
		if !known {
			i = len(gangs)
			byName[name] = i
			gangs = append(gangs, gang{name: name})
		}
		gangs[i].pods = append(gangs[i].pods, t)
	}
	slices.SortFunc(gangs, func(a, b gang) int {
		return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.name, b.name))
	})
	return alone, gangs
}

// priority is the least of its pods'.
func (g gang) priority() int32 {
	return slices.MinFunc(g.pods, func(a, b fit.Tenant) int {
		return cmp.Compare(a.Pod.Priority(), b.Pod.Priority())
	}).Pod.Priority()
}

// What a gang costs beside its pods, by itself and for each node: all are listed for it several
// times, and all is as before where it does not fit.
const gangSteps, gangStepsOfNode = 12_000, 12

// growForGang finds places for all pods of a gang, or all is as before.
func (d *ScaleUp) growForGang(g gang) {
	if space := g.pods[0].Pod.Namespace; !d.Ration.Ask(space) {
		for _, t := range g.pods {
			d.SayPod(t, verdict.PodBudgetSpent, "", d.BudgetSpent(space))
			d.SettleBack(t)
		}
		return
	}
	d.Fit.Spend(gangSteps + gangStepsOfNode*len(d.Nodes))
	start, before, moves := d.Fit.Fork(), d.growth(), d.moves()
	var given []seats.Seat
	var left, young []fit.Tenant
	room := d.OpenRoom()
	for _, t := range d.InOrder(g.pods) {
		if !d.Ration.Ask(t.Pod.Namespace) {
			left = append(left, t)
			continue
		}
		s, ok := room.Seat(t)
		switch {
		case ok:
			given = append(given, s)
		case d.TooYoung(t):
			young = append(young, t)
		default:
			left = append(left, t)
		}
	}
	refused := d.growFor(left)
	if len(refused)+len(young) == 0 {
		for _, s := range given {
			d.take(s)
		}
		return
	}
	var why verdict.Details
	if len(refused) > 0 {
		why = d.BudgetSpent(refused[0].Pod.Namespace)
		if !d.Unasked[seats.Asking{Class: refused[0].Class, Namespace: refused[0].Pod.Namespace}] {
			_, why = d.whyNot(refused[0].Class)
		}
		why = verdict.Say("pod {pod} has none: {why}", verdict.Pod(refused[0].Pod.Key()), verdict.Why(why))
	}
	d.Fit.Revert(start)
	d.restore(before)
	for n, moved := range moves {
		n.Moved = moved
	}
	for _, t := range young {
		d.Clock.At(d.GrowsFrom(t))
	}
	details := verdict.Say("only {count} of the {all} pending pods of gang {gang} find a place",
		verdict.Count(len(g.pods)-len(refused)-len(young)), verdict.All(len(g.pods)), verdict.Gang(g.name)).Then(why)
	if len(refused) == 0 {
		details = verdict.Say("some of the {all} pending pods of gang {gang} are too young to trigger scale-up", verdict.All(len(g.pods)), verdict.Gang(g.name))
	}
	for _, t := range g.pods {
		d.SayPod(t, verdict.PodGangDoesNotFit, "", details)
		d.SettleBack(t)
	}
}

// moves are where the pods of each scaled-down node go.
func (d *ScaleUp) moves() map[*cluster.Node][]cluster.Move {
	all := map[*cluster.Node][]cluster.Move{}
	for n := range d.In(cluster.ScalingDown) {
		all[n] = n.Moved
	}
	return all
}

// growth is how far the new nodes of each group are planned.
type growth struct {
	beside  []fit.Seat
	fresh   map[*cluster.Group][]*fit.Place
	have    map[*cluster.Group][]int
	cluster cluster.Totals
}

func (d *ScaleUp) growth() growth {
	now := growth{slices.Clip(d.beside), map[*cluster.Group][]*fit.Place{}, map[*cluster.Group][]int{}, *d.Totals}
	for _, g := range d.Groups {
		now.fresh[g], now.have[g] = slices.Clip(g.Fresh), slices.Clone(g.Have)
	}
	return now
}

func (d *ScaleUp) restore(to growth) {
	for _, g := range d.Groups {
		g.Fresh, g.Have = to.fresh[g], to.have[g]
	}
	d.beside, *d.Totals = to.beside, to.cluster
}
