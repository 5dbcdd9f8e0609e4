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
)

// steer has kube-scheduler fill the fullest nodes first, where pods are moved to save money. By
// itself it prefers the emptiest, so that none ever becomes empty. The fullest nodes that together
// have what all pods request are left as they are; the others are surplus, and bear a taint that
// lets new pods come only where nothing else takes them. So they become empty without an eviction.
func (d *ScaleDown) steer() {
	rooms := map[string][]*cluster.Node{}
	for _, n := range d.In(cluster.Serving) {
		switch {
		case n.Group == nil || !n.Instance.Live():
		case d.balances() && d.Policy.ScaleDown:
			kind := kindOf(n)
			rooms[kind] = append(rooms[kind], n)
		case contract.IsSurplus(n.Taints):
			rooms[""] = append(rooms[""], n)
		}
	}
	var changes []action.Steer
	for kind, nodes := range rooms {
		surplus := map[*cluster.Node]bool{}
		if kind != "" {
			surplus = d.surplus(nodes)
		}
		for _, n := range nodes {
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
	for i, x := range changes {
		if i == mostSteered {
			d.Clock.At(d.Now.Add(time.Second))
			return
		}
		d.Do(x)
	}
}

// kindOf names the nodes among which pods can choose: those with the same taints, architecture and
// GPUs.
func kindOf(n *cluster.Node) string {
	parts := []string{n.Labels[corev1.LabelArchStable], fmt.Sprint(seats.HasGPUs(n))}
	for _, t := range n.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !contract.Transient(t) {
			parts = append(parts, t.ToString())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// surplus are the emptiest of these nodes, without which the others have what all pods request. A
// node that stays anyway is filled before all others, and one that goes after them.
func (d *ScaleDown) surplus(nodes []*cluster.Node) map[*cluster.Node]bool {
	var wanted seats.Load
	rank := map[*cluster.Node]float64{}
	for _, n := range nodes {
		wanted = wanted.Plus(d.LoadOf(n))
		switch rank[n] = d.Used(n); {
		case n.Leaves:
			rank[n] -= 2
		case n.Reason == verdict.NodeHeld || n.Reason == verdict.NodeBlocked || n.Reason == verdict.NodeGroupAtMin:
			rank[n] += 2
		}
		if !contract.IsSurplus(n.Taints) {
			rank[n] += fullerBy
		}
	}
	fullest := slices.Clone(nodes)
	slices.SortFunc(fullest, func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a.Name, b.Name))
	})
	surplus := map[*cluster.Node]bool{}
	var has seats.Load
	for _, n := range fullest {
		surplus[n] = has.Covers(wanted)
		has = has.Plus(d.RoomOf(n))
	}
	return surplus
}
