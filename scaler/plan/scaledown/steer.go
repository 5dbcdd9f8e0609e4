package scaledown

import (
	"cmp"
	"fmt"
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
	// mostSteered bounds how many nodes get or lose the surplus taint in an evaluation.
	mostSteered = 10
	// fullerBy is by how much of its utilization a node with the taint must be fuller than one
	// without, so that two that are alike do not exchange it at each pod.
	fullerBy = 0.05
	// steerAgain is when the next of them follow.
	steerAgain = 10 * time.Second
)

// steer has kube-scheduler fill the fullest nodes first, where pods are moved to save money. By
// itself it prefers the emptiest, so that none ever becomes empty. The fullest nodes that together
// have what all pods request are left as they are; the others are surplus, and bear a taint that
// new pods avoid. So they become empty without an eviction. While scale-down is stopped nothing
// changes.
func (r *nodeSearch) steer() {
	balances := r.balances() && r.Policy.ScaleDown
	if r.OtherAutoscalerActs() || balances && r.halt != nil {
		return
	}
	rooms := map[string][]*cluster.Node{}
	for _, n := range r.Nodes {
		if n.Group == nil || n.Instance == nil || n.Stage == cluster.Upcoming {
			continue
		}
		kind := r.kindOf(n)
		rooms[kind] = append(rooms[kind], n)
	}
	var changes []action.Steer
	for _, nodes := range rooms {
		surplus := map[*cluster.Node]bool{}
		if balances {
			surplus = r.surplus(nodes)
		}
		for _, n := range nodes {
			if n.Stage != cluster.Serving || n.Leaves { // what leaves bears another taint
				continue
			}
			if surplus[n] {
				sayBeside(n, verdict.Say("new pods go to fuller nodes first"))
			}
			if surplus[n] != contract.IsSurplus(n.Taints) {
				changes = append(changes, action.Steer{Group: n.Group.Name, Node: n.Ref(), Away: surplus[n]})
			}
		}
	}
	// Those first that may take pods again.
	slices.SortFunc(changes, func(a, b action.Steer) int {
		return cmp.Or(cluster.CompareBool(a.Away, b.Away), cmp.Compare(a.Node.Name, b.Node.Name))
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

// surplus are the emptiest of these nodes that serve, without which the others have what all pods
// request, those on nodes that go as well. A node that stays anyway is filled before all others, and
// so is one that came for a replacement. None that came a moment ago is surplus, and none with GPUs:
// cpu and memory do not say whether it is needed.
func (r *nodeSearch) surplus(nodes []*cluster.Node) map[*cluster.Node]bool {
	var wanted, has seats.Load
	var fullest []*cluster.Node
	rank := map[*cluster.Node]float64{}
	for _, n := range nodes {
		wanted = wanted.Plus(r.LoadOf(n))
		switch {
		case n.Stage != cluster.Serving || n.Leaves:
		case r.staysAnyway(n):
			has = has.Plus(r.RoomOf(n))
		default:
			if rank[n] = r.Used(n); !contract.IsSurplus(n.Taints) {
				rank[n] += fullerBy
			}
			fullest = append(fullest, n)
		}
	}
	slices.SortFunc(fullest, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a.Name, b.Name))
	})
	surplus := map[*cluster.Node]bool{}
	for _, n := range fullest {
		surplus[n] = has.Covers(wanted)
		has = has.Plus(r.RoomOf(n))
	}
	return surplus
}

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
