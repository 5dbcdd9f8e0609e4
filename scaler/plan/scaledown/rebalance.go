package scaledown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Auto Scaling's AZRebalance process evens out a group whose zones differ by more than one
// instance: it launches where there are few and ends one where there are many, whatever runs there.
// We scale unneeded nodes down, and launch where pods want to be, so that zones get uneven by our
// choice; the two would undo each other's work.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage

// processRebalance is the name of that process.
const processRebalance = "AZRebalance"

// suspendAgain is how long a suspension that was asked for may take to show.
const suspendAgain = time.Minute

// BalanceZones finds the groups that Auto Scaling would rebalance after this plan, and has that
// process suspended where people want it: once for each group. Where it runs again later, people
// want that.
func (d *ScaleDown) BalanceZones() {
	for _, g := range d.Groups {
		at, asked := d.State.Suspending[g.Name]
		if g.IsSuspended(processRebalance) {
			if asked {
				d.State.Suspending[g.Name] = time.Time{} // it is done
			}
			continue
		}
		g.Uneven = d.uneven(g)
		done, ours := asked && at.IsZero(), g.Recognised && !g.Foreign && g.Held == ""
		if g.Uneven == nil || !d.Policy.SuspendAZRebalance || done || !ours {
			continue
		}
		if due := at.Add(suspendAgain); asked && d.Now.Before(due) {
			d.Clock.At(due)
			continue
		}
		d.State.Suspending[g.Name] = d.Now
		d.Do(action.Suspend{Group: g.Name, Process: processRebalance, Why: "its zones get uneven: " + strings.Join(g.Uneven, ", ")})
	}
	for name := range d.State.Suspending {
		if d.GroupOf(name) == nil {
			delete(d.State.Suspending, name)
		}
	}
}

// uneven says how many instances the group will have in each of its zones when what has
// been asked for is done, if they differ by more than one; nil otherwise.
func (d *ScaleDown) uneven(g *cluster.Group) []string {
	if len(g.Zones) < 2 {
		return nil
	}
	count := d.byZone(g)
	zones := slices.Sorted(slices.Values(g.Zones))
	least, most := count[zones[0]], count[zones[0]]
	words := make([]string, len(zones))
	for i, z := range zones {
		least, most = min(least, count[z]), max(most, count[z])
		words[i] = fmt.Sprintf("%s %d", z, count[z])
	}
	if most-least < 2 {
		return nil
	}
	return words
}

// byZone counts the instances that the group will have: those that live, without the
// ones that we end, and with those that we launch in a zone of our choice. What Auto
// Scaling launches by itself, it launches where there are fewest.
func (d *ScaleDown) byZone(g *cluster.Group) map[string]int {
	goes := map[string]bool{}
	for _, n := range g.Nodes {
		going := (n.Stage == cluster.ScalingDown || n.Stage == cluster.Terminating) && !n.Cancelled
		if _, asked := goes[n.InstanceID()]; going || asked {
			goes[n.InstanceID()] = going
		}
	}
	count, free := map[string]int{}, max(0, g.Owed())
	for a := range action.Only[action.RequestDrain](d.Actions) {
		if n := d.Node(a.Node.Name); a.Kind == contract.KindScaleDown && n != nil {
			goes[n.InstanceID()] = true
		}
	}
	for a := range action.Only[action.Terminate](d.Actions) {
		goes[a.Instance] = goes[a.Instance] || a.Decrement
	}
	for a := range action.Only[action.Grow](d.Actions) {
		switch {
		case a.Group != g.Name:
		case a.Token == "":
			free += a.To - a.From
		default:
			count[a.Zone] += a.Count
		}
	}
	stay := 0
	for i := range g.Instances {
		i := &g.Instances[i]
		if i.Live() && !goes[i.ID] {
			count[i.Zone]++
			stay++
		}
	}
	free = max(free, g.Min-stay) // what goes at the minimum is replaced
	for range free {
		count[slices.MinFunc(g.Zones, func(a, b string) int { return cmp.Compare(count[a], count[b]) })]++
	}
	return count
}

// Rebalanced says for a group's verdict that Auto Scaling will undo what we do.
func (d *ScaleDown) Rebalanced(g *cluster.Group) verdict.Details {
	if g.Uneven == nil {
		return nil
	}
	uneven := verdict.Say("its zones are uneven ({zones:,}) or become so, and its "+processRebalance+" process is on, which launches and terminates instances to even them out", verdict.Zones(g.Uneven))
	if d.Policy.SuspendAZRebalance {
		return uneven
	}
	return uneven.And(": suspend it, or have --suspend-az-rebalance do so")
}
