package scaledown

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// mayGo says why a node stays, whatever becomes of its pods and of other nodes; empty if
// it may go.
func (r *retirement) mayGo(n *cluster.Node) (verdict.Reason, string) {
	if !r.Policy.ScaleDown {
		return verdict.NodeStays, r.halt
	}
	if by, held := contract.Held(n.Annotations); held {
		return verdict.NodeHeld, fmt.Sprintf("its annotation %s keeps it", by)
	}
	if n.Unreadable != nil {
		return verdict.NodeHeld, fmt.Sprintf("a drain request stands on it that nobody can read: %v", n.Unreadable)
	}
	if why := r.Contested(n.Instance, n); why != "" {
		return verdict.NodeHeld, why
	}
	if b, ok := r.State.GiveUps[n.InstanceID()]; ok && r.Now.Before(b.Until) {
		r.Clock.At(b.Until)
		return verdict.NodeKept, fmt.Sprintf("its last drain was given up (%s); not tried again until %s (back-off)", b.Cause, verdict.ClockTime(b.Until))
	}
	switch {
	case n.Stage == cluster.Unready && !r.Policy.ScaleDownUnready:
		return verdict.NodeUnready, "such nodes are left alone"
	case n.Stage == cluster.Unready && n.Instance.State == fleet.PendingWait:
		return verdict.NodeUnready, "a launch hook holds its instance"
	}
	if threshold, used := r.Threshold(n), r.Used(n); used > threshold {
		return verdict.NodeNeeded, fmt.Sprintf("%.0f%% of %s requested, more than %.0f%%", used*100, seats.WhatCounts(n), threshold*100)
	}
	return "", ""
}

// limited says why no further node may go beside those that do, or by an empty reason
// that this one may.
func (r *retirement) limited(n *cluster.Node) (verdict.Reason, string) {
	if r.floor(n.Group) && n.Stage == cluster.Unready && len(n.Group.Pauses) == 0 {
		return "", "" // Auto Scaling replaces it
	}
	if r.floor(n.Group) {
		return verdict.NodeMinSize, fmt.Sprintf("group %s may not have fewer than %d", n.Group.Name, n.Group.Min)
	}
	if why := r.remains.Needs(n, r.Policy); why != "" {
		return verdict.NodeMinSize, why
	}
	return "", ""
}

// stopped says why the node is not retired now; empty where it may be. That may last for
// one evaluation, and says nothing of who is needed: clocks go on meanwhile.
func (r *retirement) stopped(n *cluster.Node) string {
	g := n.Group
	if r.halt != "" {
		return r.halt
	}
	if why := r.CutOff(n); why != "" {
		return why
	}
	if why := r.Replaces(g); why != "" {
		return fmt.Sprintf("%s, and group %s is not made smaller meanwhile", why, g.Name)
	}
	over := g.Excess()
	switch {
	case over > 0 && !launch.Protected(g):
		return fmt.Sprintf("group %s: %s", g.Name, AboveDesired(g))
	case over > 0 && r.ending[g] >= over:
		return fmt.Sprintf("group %s is %s above desired, and as many are being removed", g.Name, verdict.Counted(over, "instance"))
	}
	return ""
}

// floor says that with what is on its way out the group is at its minimum. Of a group with
// more instances than desired, those above it go first, without lowering desired.
func (r *retirement) floor(g *cluster.Group) bool {
	return max(g.Read, len(g.Live))-r.leaving[g] <= g.Min
}
