package scaledown

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// mostLasting bounds for how long it is taken that pods go on.
	mostLasting = 48 * time.Hour
	// usualCost is for how many hours an eviction costs what the pod's requests do, where people
	// do not say what it costs.
	usualCost = 2
	// costOfMarked is the share of what it costs to move its pods that a marked node has to save,
	// so that no mark is cleared again because one pod came or went.
	costOfMarked = 0.8
)

// balances reports whether what is saved is held against what it costs to move pods.
func (d *ScaleDown) balances() bool { return d.Policy.Consolidate == policy.ConsolidateBalance }

// whyTooDear says why the pods of a candidate are not moved to save its node; empty where they may
// be, or where there are none. Of nodes that are not Ready the pods have to leave anyway.
func (r *nodeSearch) whyTooDear(c *candidate) verdict.Details {
	if len(c.movers) == 0 || c.Stage == cluster.Unready {
		return nil
	}
	switch r.Policy.Consolidate {
	case policy.ConsolidateOff:
		return verdict.Say("pod {pod} would have to be moved, and --consolidate=off moves none", verdict.Pod(c.movers[0].Pod.Key()))
	case policy.ConsolidateBalance:
	default:
		return nil
	}
	cost, wrong := r.costOfMoving(c)
	if wrong != nil {
		return wrong
	}
	if !c.since.IsZero() {
		cost *= costOfMarked
	}
	// Its pods take the room of others that are to come: what is saved is what it has free.
	hourly := c.worth * (1 - r.Used(c.Node))
	saved := hourly * r.lasting(c).Hours()
	if saved >= cost {
		return nil
	}
	if due := time.Duration(cost / hourly * float64(time.Hour)); hourly > 0 && cost < hourly*mostLasting.Hours() {
		r.Clock.At(r.Now.Add(due - r.lasting(c)))
	}
	return verdict.Say("to move its pods would cost {cost} and save {saving}", verdict.Cost(dollars(cost)), verdict.Saving(dollars(saved)))
}

func dollars(x float64) string { return fmt.Sprintf("$%.3f", x) }

// lasting is for how long the movers of a node would go on to keep it: for as long as the youngest
// of them has run. Half of the processes that have run for some time end only after as long again,
// and in the traces of clusters it is the same; a node with young pods is soon empty without an
// eviction.
// Harchol-Balter and Downey, Exploiting Process Lifetime Distributions for Dynamic Load Balancing, 1997.
func (r *nodeSearch) lasting(c *candidate) time.Duration {
	least := mostLasting
	for _, t := range c.movers {
		least = min(least, r.Now.Sub(t.Pod.Created))
	}
	return max(0, least)
}

// costOfMoving is what it costs to evict the movers, in dollars; wrong says what of a pod cannot be
// read.
func (r *nodeSearch) costOfMoving(c *candidate) (sum float64, wrong verdict.Details) {
	for _, t := range c.movers {
		cost, said, err := contract.DisruptionCost(t.Pod.Annotations)
		if err != nil {
			return 0, verdict.Say("what it costs to move pod {pod} cannot be read: {cause}", verdict.Pod(t.Pod.Key()), verdict.Cause(err.Error()))
		}
		if !said {
			cost = r.usualCostOf(t) * disruptionOfPod(t.Pod)
		}
		sum += cost
	}
	return sum, nil
}

func (r *nodeSearch) usualCostOf(t fit.Tenant) float64 {
	if r.Policy.DisruptionCost > 0 {
		return r.Policy.DisruptionCost
	}
	return usualCost * cluster.PriceOf(t.Class)
}
