package cloud

import (
	"slices"
	"time"
)

// replacement is a launch before a termination: when the new instance serves, the old one leaves, and desired stays.
type replacement struct {
	fresh, old *instance
	why        string
}

// overlap is what the group may have above its desired capacity while replacements are under way.
func (g *group) overlap() int {
	sum := 0
	for _, r := range g.replacing {
		if r.fresh.LifecycleState.Counts() && r.old.LifecycleState.Counts() {
			sum += r.fresh.weight()
		}
	}
	return sum
}

func (g *group) isReplacing(i *instance) bool {
	return slices.ContainsFunc(g.replacing, func(r replacement) bool { return r.fresh == i || r.old == i })
}

// finishReplacements lets the old ones go whose successors serve.
func (c *Cloud) finishReplacements(g *group) {
	var open []replacement
	for _, r := range g.replacing {
		switch {
		case !r.old.LifecycleState.Counts() || r.old.Group == "" || !r.fresh.LifecycleState.Counts():
			// One of the two has left by itself: nothing remains to be replaced.
		case r.fresh.LifecycleState == InService:
			c.leave(g, r.old, c.sentence("instance %s was taken out of service in response to %s", r.old.ID, r.why), false)
		default:
			open = append(open, r)
		}
	}
	g.replacing = open
}

// launchInPlaceOf launches a successor of an instance. It fails quietly where there is no capacity: the old one then simply stays.
func (c *Cloud) launchInPlaceOf(g *group, old *instance, zones []string, cause, why string) bool {
	src, err := c.sourceOf(g.spec)
	if err != nil || g.isSuspended("Launch") {
		return false
	}
	for _, zone := range zones {
		o, failed := c.choose(g, zone, src)
		if len(failed) > 0 {
			c.failLaunch(g, zone, failed[len(failed)-1].status(src.mixed))
			continue
		}
		fresh := c.launch(g, zone, o, cause)
		g.replacing = append(g.replacing, replacement{fresh: fresh, old: old, why: why})
		return true
	}
	return false
}

// overlapAllowed: rebalancing may exceed the maximum by ten percent, or by one.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
func (g *group) overlapAllowed() int { return max(1, g.max/10) }

// RebalanceZones evens out the zones of a group as the AZRebalance process does: it launches in the emptiest zone before it terminates in the fullest. A
// forced one moves one instance even between zones that are even. It answers how many are being moved.
func (c *Cloud) RebalanceZones(name string, force bool, now time.Time) (int, error) {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return 0, noGroup(name)
	}
	if g.isSuspended("AZRebalance") {
		return 0, invalid("The AZRebalance process of group %s is suspended", name)
	}
	moved := 0
	counts := g.zoneCounts()
	for moved < g.overlapAllowed() {
		to, from := g.emptiest(counts), g.fullest(counts)
		uneven := counts[from]-counts[to] > 1
		if to == from || !uneven && (!force || moved > 0) {
			break
		}
		old := g.movable(from)
		if old == nil || !c.move(g, old, to) {
			break
		}
		counts[from]--
		counts[to]++
		moved++
		if !uneven {
			break
		}
	}
	if moved == 0 {
		return 0, invalid("The zones of group %s are balanced, or nothing may be moved: %v", name, counts)
	}
	return moved, nil
}

func (c *Cloud) move(g *group, old *instance, to string) bool {
	why := "a difference between desired and actual capacity"
	counts := g.zoneCounts()
	cause := c.sentence("availability zones %s %s had %d %d instances respectively. An instance was launched to aid in balancing the group's zones", old.Zone, to, counts[old.Zone], counts[to])
	return c.launchInPlaceOf(g, old, []string{to}, cause, why)
}

func (g *group) emptiest(counts map[string]int) string {
	return slices.MinFunc(g.spec.Zones, func(a, b string) int { return counts[a] - counts[b] })
}

// fullest is the last of the zones with the most, so that it differs from the emptiest where all are even.
func (g *group) fullest(counts map[string]int) string {
	best := g.spec.Zones[0]
	for _, z := range g.spec.Zones {
		if counts[z] >= counts[best] {
			best = z
		}
	}
	return best
}

// movable is an instance of the zone that serves, is not protected and is not being replaced already.
func (g *group) movable(zone string) *instance {
	for _, i := range g.counting() {
		if i.Zone == zone && i.LifecycleState == InService && !i.Protected && !g.isReplacing(i) {
			return i
		}
	}
	return nil
}
