package plan

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// mayGo says why a node stays, whatever becomes of its pods and of other nodes; empty if
// it may go.
func (r *retirement) mayGo(n *node) (Reason, string) {
	if !r.policy.ScaleDown {
		return NodeStays, r.halt
	}
	if by, held := contract.Held(n.Annotations); held {
		return NodeHeld, fmt.Sprintf("its annotation %s keeps it", by)
	}
	if n.unreadable != nil {
		return NodeHeld, fmt.Sprintf("a drain request stands on it that nobody can read: %v", n.unreadable)
	}
	if why := r.contested(n.instance, n); why != "" {
		return NodeHeld, why
	}
	if b, ok := r.state.GiveUps[n.InstanceID()]; ok && r.now.Before(b.Until) {
		r.clock.at(b.Until)
		return NodeKept, fmt.Sprintf("its last drain was given up (%s); it is left in peace until %s", b.Cause, clockTime(b.Until))
	}
	switch {
	case n.stage == unready && !r.policy.ScaleDownUnready:
		return NodeUnready, "such nodes are left alone"
	case n.stage == unready && n.instance.State == fleet.PendingWait:
		return NodeUnready, "a launch hook holds its instance"
	}
	if threshold, used := r.threshold(n), r.used(n); used > threshold {
		return NodeNeeded, fmt.Sprintf("%.0f%% of %s requested, more than %.0f%%", used*100, n.whatCounts(), threshold*100)
	}
	return "", ""
}

// limited says why no further node may go beside those that do, or by an empty reason
// that this one may.
func (r *retirement) limited(n *node) (Reason, string) {
	if r.floor(n.group) && n.stage == unready && len(n.group.pauses) == 0 {
		return "", "" // Auto Scaling replaces it
	}
	if r.floor(n.group) {
		return NodeMinSize, fmt.Sprintf("group %s may not have fewer than %d", n.group.Name, n.group.Min)
	}
	if why := r.remains.needs(n, r.policy); why != "" {
		return NodeMinSize, why
	}
	return "", ""
}

// halted says why nothing at all is retired now, whatever has begun.
func (d *decision) halted() string {
	if !d.policy.ScaleDown {
		return "scale-down is switched off"
	}
	if d.outage != "" {
		return "nothing is retired while " + d.outage
	}
	return ""
}

// stopped says why the node is not retired now; empty where it may be. That may last for
// one evaluation, and says nothing of who is needed: clocks go on meanwhile.
func (r *retirement) stopped(n *node) string {
	g := n.group
	if r.halt != "" {
		return r.halt
	}
	if why := r.cutOff(n); why != "" {
		return why
	}
	if why := r.replaces(g); why != "" {
		return fmt.Sprintf("%s, and group %s is not made smaller meanwhile", why, g.Name)
	}
	over := g.excess()
	switch {
	case over > 0 && !g.protected():
		return fmt.Sprintf("group %s: %s", g.Name, g.aboveDesired())
	case over > 0 && r.ending[g] >= over:
		return fmt.Sprintf("group %s is %s above desired, and as many are being removed", g.Name, counted(over, "instance"))
	}
	return ""
}

// floor says that with what is on its way out the group is at its minimum. Of a group with
// more instances than desired, those above it go first, without lowering desired.
func (r *retirement) floor(g *group) bool {
	return max(g.read, len(g.live))-r.leaving[g] <= g.Min
}
