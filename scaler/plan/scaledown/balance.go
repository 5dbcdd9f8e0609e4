package scaledown

import (
	"slices"
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
	usualCost = 4
	// costOfMarked is the share of what it costs to move its pods that a marked node has to save,
	// so that no mark is cleared again because one pod came or went.
	costOfMarked = 0.8
)

// balances reports whether what is saved is held against what it costs to move pods.
func (d *ScaleDown) balances() bool { return d.Policy.Consolidate == policy.ConsolidateBalance }

// weigh finds out what it costs to move the movers of a candidate, and for how long they would go on
// to keep it: for as long as the youngest of them has run. Half of the processes that have run for
// some time end only after as long again, and in the traces of clusters it is the same; a node with
// young pods is soon empty without an eviction. Pods that came after a moment do not make it
// younger, where others are older; the zero time counts all.
// Harchol-Balter and Downey, Exploiting Process Lifetime Distributions for Dynamic Load Balancing, 1997.
func (r *nodeSearch) weigh(c *candidate, until time.Time) {
	c.cost, c.lasting, c.unreadable = 0, mostLasting, nil
	counts := func(t fit.Tenant) bool { return t.Pod.Created.Time().Before(until) }
	if !slices.ContainsFunc(c.movers, counts) {
		counts = func(fit.Tenant) bool { return true }
	}
	for _, t := range c.movers {
		if counts(t) {
			c.lasting = min(c.lasting, r.Now.Sub(t.Pod.Created.Time()))
		}
		cost, said, err := contract.DisruptionCost(t.Pod.Annotations)
		if err != nil {
			c.unreadable = verdict.Say("what it costs to move pod {pod} cannot be read: {cause}", verdict.Pod(t.Pod.Key()), verdict.Cause(err.Error()))
		}
		if !said {
			cost = r.usualCostOf(c, t) * disruptionOfPod(t.Pod)
		}
		c.cost += cost
	}
}

func (r *nodeSearch) usualCostOf(c *candidate, t fit.Tenant) float64 {
	if r.Policy.DisruptionCost > 0 {
		return r.Policy.DisruptionCost
	}
	return usualCost * max(cluster.PriceOf(t.Class), r.GPUShare(c.Node, t.Class)*pricedAt(c))
}

// pricedAt is what a candidate costs in an hour: its own price where that is certain, and otherwise
// by its size, as the price of a group with several types is that of the dearest.
func pricedAt(c *candidate) float64 {
	if price := knownPrice(c.Node); price > 0 {
		return price
	}
	return c.TypicalPrice()
}

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
	r.weigh(c, c.since)
	if c.unreadable != nil {
		return c.unreadable
	}
	cost := verdict.Say("to move its pods would cost {cost}", verdict.Cost(dollars(c.cost)))
	least := c.cost
	if !c.since.IsZero() {
		least *= costOfMarked
	}
	// Its pods take the room of others that are to come: what is saved is what it has free, and all
	// of it where nothing comes any more.
	hourly := pricedAt(c)
	if c.Stage != cluster.Cordoned {
		hourly *= 1 - r.Used(c.Node)
	}
	if least > hourly*mostLasting.Hours() {
		return cost.And(", more than it could save")
	}
	if least == 0 {
		return nil
	}
	due := r.Now.Add(time.Duration(least/hourly*float64(time.Hour)) - c.lasting).Truncate(time.Second).Add(time.Second)
	if c.lasting == mostLasting || !r.Now.Before(due) {
		return nil
	}
	r.Clock.At(due)
	return cost.And(", and is not worth it before {until}", verdict.Until(due))
}
