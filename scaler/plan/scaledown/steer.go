package scaledown

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// mostSteered bounds how many nodes get another turn at a time, and steerAgain is how long it is
	// before the next do: else whoever makes and deletes pods would have Nodes written as often.
	mostSteered, steerAgain = 10, 10 * time.Second
	// fullerBy is by how much of its utilization a surplus node must be fuller than another that
	// is none, and fullerFirst one that is filled later than one that is filled first, so that two
	// that are alike do not change turns at each pod.
	fullerBy, fullerFirst = 0.05, 0.02
)

// steer has kube-scheduler fill the fullest nodes first, where pods are moved to save money. By
// itself it prefers the emptiest, so that none ever becomes empty. Nodes without which the others
// have what all pods request are surplus and filled last; of the others the emptier, which have
// half of the free room, are filled later. They bear taints that new pods avoid. So nodes become
// empty without an eviction. Of nodes that are in no group of ours any more the taints are taken off.
// While scale-down is stopped nothing changes.
func (r *nodeSearch) steer() {
	balances := r.balances() && r.Policy.ScaleDown
	if r.OtherAutoscalerActs() || balances && r.halt != nil {
		return
	}
	turns := map[*cluster.Node]contract.FillTurn{} // nothing is asked of the others
	if balances {
		for _, nodes := range r.rooms() {
			maps.Copy(turns, r.fillTurns(nodes))
		}
	}
	var changes []action.Steer
	for n := range r.In(cluster.Serving) {
		if !r.GivenUp(n) && n.Instance == nil || n.Leaves { // what leaves bears another taint
			continue
		}
		if turns[n] != contract.FillFirst {
			sayBeside(n, verdict.Say("new pods go to fuller nodes first"))
		}
		if contract.FillTurnOf(n.Taints) != turns[n] {
			changes = append(changes, action.Steer{Group: n.GroupName(), Node: n.Ref(), Fill: turns[n]})
		}
	}
	if len(changes) == 0 {
		return
	}
	if since := r.Now.Sub(r.State.Steered); 0 <= since && since < steerAgain {
		r.Clock.At(r.State.Steered.Add(steerAgain))
		return
	}
	r.State.Steered = r.Now
	// Nodes that are to be filled first come first, as long as all changes are
	// made at once: pods that come meanwhile find those free before others bear their taints.
	slices.SortFunc(changes, func(a, b action.Steer) int {
		return cmp.Or(cmp.Compare(a.Fill, b.Fill), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	if most := int64(len(changes)); most > mostSteered {
		// Others come first in the next minute, should these fail.
		turn := int(r.Now.Unix() / 60 * mostSteered % most)
		changes = slices.Concat(changes[turn:], changes[:turn])[:mostSteered]
		r.Clock.At(r.Now.Add(steerAgain))
	}
	for _, x := range changes {
		r.Do(x)
	}
}

// rooms are the nodes of groups, by kindOf.
func (r *nodeSearch) rooms() map[string][]*cluster.Node {
	rooms := map[string][]*cluster.Node{}
	for _, n := range r.Nodes {
		if n.Group != nil && n.Instance != nil && n.Stage != cluster.Upcoming {
			kind := r.kindOf(n)
			rooms[kind] = append(rooms[kind], n)
		}
	}
	return rooms
}

// kindOf names the nodes among which pods can choose: those with the same taints, operating system,
// architecture, GPUs and zone. Pods of different zones are not led to one.
func (r *nodeSearch) kindOf(n *cluster.Node) string {
	parts := []string{n.Labels[corev1.LabelOSStable], n.Labels[corev1.LabelArchStable], n.Zone(), fmt.Sprint(seats.HasGPUs(n))}
	for _, t := range r.Policy.Lasting(n.Taints) {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			parts = append(parts, t.ToString())
		}
	}
	return strings.Join(parts, " ")
}

// fillTurns are the turns of these nodes that serve. A node that stays anyway is filled before all
// others, and so is one that came for a replacement. None that came a moment ago is surplus, and
// none with GPUs: cpu and memory do not say whether it is needed.
func (r *nodeSearch) fillTurns(nodes []*cluster.Node) map[*cluster.Node]contract.FillTurn {
	var wanted, has seats.Load
	var list []*cluster.Node
	for _, n := range nodes {
		wanted = wanted.Plus(r.LoadOf(n))
		switch {
		case n.Stage != cluster.Serving || n.Leaves:
		case r.staysAnyway(n):
			has = has.Plus(r.RoomOf(n))
		default:
			list = append(list, n)
		}
	}
	turns := map[*cluster.Node]contract.FillTurn{}
	r.fullestFirst(list, fullerBy, func(turn contract.FillTurn) bool { return turn != contract.FillLast })
	free := 0.0
	for i, n := range list {
		if has.Covers(wanted) {
			for _, n := range list[i:] {
				turns[n] = contract.FillLast
			}
			list = list[:i]
			break
		}
		has = has.Plus(r.RoomOf(n))
		free += r.freeOf(n)
	}
	r.fullestFirst(list, fullerFirst, func(turn contract.FillTurn) bool { return turn == contract.FillFirst })
	before := 0.0
	for i, n := range list {
		if i > 0 && before+r.freeOf(n)/2 >= free/2 && free > 0 {
			turns[n] = contract.FillLater
		}
		before += r.freeOf(n)
	}
	return turns
}

// fullestFirst sorts nodes by their utilization, to which some is added of those whose turn it is
// already.
func (r *nodeSearch) fullestFirst(list []*cluster.Node, more float64, already func(contract.FillTurn) bool) {
	rank := map[*cluster.Node]float64{}
	for _, n := range list {
		rank[n] = r.Used(n)
		if already(contract.FillTurnOf(n.Taints)) {
			rank[n] += more
		}
	}
	slices.SortFunc(list, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a.Name, b.Name))
	})
}

// freeOf is what a node has free, in cpus and in the memory that costs as much.
func (r *nodeSearch) freeOf(n *cluster.Node) float64 { return n.Work() * max(0, 1-r.Used(n)) }

// staysAnyway reports whether nothing that pods do lets a node go now.
func (r *nodeSearch) staysAnyway(n *cluster.Node) bool {
	if from := n.Settled(r.Policy); r.Now.Before(from) {
		r.Clock.At(from)
		return true
	}
	_, held := contract.Held(n.Annotations)
	came := r.replaced[n] && r.State.Replacement != nil && n.GroupName() == r.State.Replacement.Group
	return held || came || seats.HasGPUs(n) || max(n.Group.Read, len(n.Group.Live)) <= n.Group.Min
}
