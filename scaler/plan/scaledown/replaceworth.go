package scaledown

import (
	"time"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// leastSaving is the share of what the nodes cost that a replacement must save.
	leastSaving = 0.15
	// leastBalanced is the same where what it costs to move pods is weighed, too.
	leastBalanced = 0.05
	// leastScore is what a replacement must save, as a share of what all nodes cost, for what it
	// disrupts, as a share of what there is to be disrupted: a half, as in Karpenter's
	// policy Balanced with its threshold of 2.
	// https://github.com/kubernetes-sigs/karpenter/blob/main/designs/balanced-consolidation.md
	leastScore = 0.5
	// A pod counts for one, and by its priority for up to ten. That of system critical
	// pods is two thousand million.
	priorityOfOne, mostOfPod = 1 << 25, 10
)

// ledger is what the nodes of our groups cost in an hour, in dollars, and what it would
// disrupt to move all that is on them.
type ledger struct{ price, disruption float64 }

func (d *ScaleDown) ledger() ledger {
	var all ledger
	for _, n := range d.Nodes {
		if price := knownPrice(n); price > 0 {
			all.price += price
			all.disruption += disruptionOf(n)
		}
	}
	return all
}

// disruptionOf a node is one for itself, and what its pods count for.
func disruptionOf(n *cluster.Node) float64 {
	sum := 1.0
	for _, p := range n.Pods {
		if drainable.MustBePlacedAgain(p) {
			sum += disruptionOfPod(p)
		}
	}
	return sum
}

func disruptionOfPod(p *fleet.Pod) float64 {
	return min(max(0, 1+float64(p.Priority())/priorityOfOne), mostOfPod)
}

// knownPrice is what the node costs in an hour, in dollars; 0 where that is not known for
// certain: in a group with several types the price of the group is that of the dearest.
func knownPrice(n *cluster.Node) float64 {
	switch {
	case n.Group == nil || n.Instance == nil || len(n.Group.NodeTemplates) == 0:
		return 0
	case !n.Group.Mixed && n.Instance.Type != n.Group.NodeTemplates[0].InstanceType:
		return 0
	case n.Group.Mixed || n.Instance.PricePerHour > 0: // in its own zone
		return n.Instance.PricePerHour
	}
	return n.Group.Price()
}

// bill is what a replacement costs and saves: dollars an hour for the old nodes and for the new one,
// and what it disrupts.
type bill struct {
	old, new, disruption float64
	// balanced: what it costs to move pods is weighed. saved is in dollars until the pods end,
	// less what it costs to evict them; the longer they have run, the more it is, by hourly, until
	// the first has run for mostLasting.
	balanced      bool
	saved, hourly float64
	steady        time.Duration
}

// gain is what the best of several replacements has most of.
func (b bill) gain() float64 {
	if b.balanced {
		return b.saved
	}
	return b.old - b.new
}

// least is the share of what the nodes cost that must be saved.
func (b bill) least() float64 {
	if b.balanced {
		return leastBalanced
	}
	return leastSaving
}

// pays is how much longer the pods have to run for the replacement to be worth while, or until it can
// be said better; 0 where that does not depend on it.
func (b bill) pays() time.Duration {
	if !b.balanced || !b.saves() || b.saved > epsilon {
		return 0
	}
	if b.hourly <= 0 {
		return b.steady
	}
	return time.Duration(min((epsilon-b.saved)/b.hourly, b.steady.Hours()) * float64(time.Hour))
}

// share is what is saved of what the nodes cost.
func (b bill) share() float64 { return (b.old - b.new) / b.old }

// saves reports whether it is a saving worth the name. A share of nothing is NaN, and none.
func (b bill) saves() bool { return b.share() >= b.least() }

// whyRefused says why a replacement is not worth while beside all that there is; empty if it is.
func (b bill) whyRefused(all ledger) verdict.Details {
	score := (b.old - b.new) / all.price / (b.disruption / all.disruption)
	switch {
	case !b.saves():
		return verdict.Say("less than {least}", verdict.Least(percent(b.least())))
	case b.balanced && b.saved > epsilon:
		return nil
	case b.balanced || !(score >= leastScore):
		return verdict.Say("too little for the pods that it would move")
	}
	return nil
}
