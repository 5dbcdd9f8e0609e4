package scaledown

import (
	"math"
	"strconv"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// whyKept says why a node stays, whatever becomes of its pods and of other nodes; empty if
// it may go.
func (r *nodeSearch) whyKept(n *cluster.Node) (verdict.Reason, verdict.Details) {
	if !r.Policy.ScaleDown {
		return verdict.NodeScaleDownStopped, r.halt
	}
	if by, held := contract.Held(n.Annotations); held {
		return verdict.NodeHeld, verdict.Say("its annotation {annotation} keeps it", verdict.Annotation(by))
	}
	if n.Unreadable != nil {
		return verdict.NodeHeld, verdict.Say("its drain request cannot be read: {cause}", verdict.Cause(n.Unreadable.Error()))
	}
	if why := r.Contested(n.Instance, n); why != nil {
		return verdict.NodeHeld, why
	}
	if b, ok := r.State.GiveUps[n.InstanceID()]; ok && r.Now.Before(b.Until) {
		r.Clock.At(b.Until)
		return verdict.NodeScaleDownCancelled, verdict.Say("its last drain was given up ({cause})", verdict.Cause(b.Cause)).Then(notAgainUntil(b.Until))
	}
	switch {
	case n.Stage == cluster.Unready && !r.Policy.ScaleDownUnready:
		return verdict.NodeUnready, verdict.Say("--scale-down-unready-enabled=false keeps nodes that are not Ready")
	case n.Stage == cluster.Unready && n.Instance.State == fleet.PendingWait:
		return verdict.NodeUnready, verdict.Say("a launch hook holds its instance")
	}
	if threshold, used := r.Threshold(n), r.Used(n); used > threshold {
		return verdict.NodeNeeded, r.whyFull(n, used, threshold)
	}
	return "", nil
}

// fullness is all that whyFull goes by.
type fullness struct {
	gpus       bool
	used, most float64 // in whole percent
}

// whyFull says that more of a node is used than of one that may go. Thousands of nodes are as full as
// others, and share their details.
func (r *nodeSearch) whyFull(n *cluster.Node, used, most float64) verdict.Details {
	key := fullness{seats.HasGPUs(n), math.RoundToEven(used * 100), math.RoundToEven(most * 100)}
	why, said := r.full[key]
	if !said {
		why = seats.Requested(n, percent(used)).And(", more than {most}", verdict.Most(percent(most)))
		r.full[key] = why
	}
	return why
}

func dollars(sum float64) string {
	if 0 < sum && sum < 0.001 {
		return "less than $0.001"
	}
	return "$" + strconv.FormatFloat(sum, 'f', 3, 64)
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 0, 64) + "%" }

func notAgainUntil(t time.Time) verdict.Details {
	return verdict.Say("not tried again until {until} (back-off)", verdict.Until(t))
}

// whyLimited says why no further node may go beside those that do, or by an empty reason
// that this one may.
func (r *nodeSearch) whyLimited(n *cluster.Node) (verdict.Reason, verdict.Details) {
	if r.floor(n.Group) {
		why := verdict.Say("group {group} may not have fewer than {min}", verdict.Group(n.Group.Name), verdict.Min(n.Group.Min))
		if n.Stage != cluster.Unready {
			return verdict.NodeGroupAtMin, why
		}
		whyNot := r.WhyNotReplaced(n.Group)
		if whyNot == nil {
			return "", nil // Auto Scaling replaces it
		}
		return verdict.NodeGroupAtMin, why.And(", and {why}", verdict.Why(whyNot))
	}
	if why := r.remains.WhyKept(n, r.Policy); why != nil {
		return verdict.NodeGroupAtMin, why
	}
	return "", nil
}

// whyWithheld says why no further node may go beside those that do: for its group, for the
// cluster, or for headroom; empty if it may.
func (r *nodeSearch) whyWithheld(c *candidate) (verdict.Reason, verdict.Details) {
	if reason, why := r.whyLimited(c.Node); reason != "" {
		return reason, why
	}
	return r.whyReserved(c)
}

// whyStopped says why the node is not scaled down now; empty where it may be. That may last for one
// evaluation, and does not decide which are needed: clocks go on meanwhile.
func (r *nodeSearch) whyStopped(n *cluster.Node) verdict.Details {
	g := n.Group
	if r.halt != nil {
		return r.halt
	}
	if r.CatchesUp() {
		return verdict.Say("the API server is away, or was a moment ago: what is known of pods may be out of date")
	}
	if why := r.CutOff(n); why != nil {
		return why
	}
	if why := r.WhyReplacing(g); why != nil {
		return why.And(", and group {group} is not made smaller meanwhile", verdict.Group(g.Name))
	}
	over := g.Excess()
	switch {
	case g.Held != "":
		return verdict.Say("nothing of group {group} is changed: {why}", verdict.Group(g.Name), verdict.Why(verdict.Quote(g.Held)))
	case over > 0 && !launch.Protected(g):
		return verdict.Say("group {group}: {why}", verdict.Group(g.Name), verdict.Why(AboveDesired(g)))
	case over > 0 && r.ending[g] >= over:
		return verdict.Say("group {group} is {count} {count:instance|instances} above desired, and as many are being removed", verdict.Group(g.Name), verdict.Count(over))
	}
	return nil
}

// floor reports whether without what is being removed the group is at its minimum, as far as it is to have
// instances and as far as it has: what Auto Scaling owes may never come. Of a group with more instances
// than desired, those above it go first, without lowering desired.
func (r *nodeSearch) floor(g *cluster.Group) bool {
	return min(max(g.Read, len(g.Live))-r.leaving[g], len(g.Live)-r.gone[g]) <= g.Min
}
