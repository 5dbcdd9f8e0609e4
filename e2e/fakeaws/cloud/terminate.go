package cloud

import (
	"cmp"
	"slices"
	"time"
)

const maxInstancesPerCall = 100

// Terminate is TerminateInstanceInAutoScalingGroup for one or more instances; with several, the group must be named. Nothing is terminated if one of them
// cannot be. Scale-in protection does not matter.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
func (c *Cloud) Terminate(name string, ids []string, decrement bool, now time.Time) ([]Activity, error) {
	c.Advance(now)
	if len(ids) > maxInstancesPerCall {
		return nil, invalid("1 validation error detected: Value at 'instanceIds' failed to satisfy constraint: Member must have length less than or equal to %d", maxInstancesPerCall)
	}
	var (
		g       *group
		victims []*instance
	)
	for _, id := range ids {
		i, of, err := c.terminable(name, id)
		if err != nil {
			return nil, err
		}
		g = of
		victims = append(victims, i)
	}
	if g == nil {
		return nil, invalid("Either InstanceId or InstanceIds must be specified")
	}
	if err := g.mayShrink(victims, decrement); err != nil {
		return nil, err
	}
	var activities []Activity
	for _, i := range victims {
		activities = append(activities, c.terminateByRequest(g, i, decrement))
	}
	return activities, nil
}

// terminable finds an instance that a caller may terminate.
func (c *Cloud) terminable(name, id string) (*instance, *group, error) {
	i, g, err := c.managed(id)
	if err != nil {
		return nil, nil, err
	}
	if name != "" && g.spec.Name != name {
		return nil, nil, noManagedInstance(id)
	}
	retained := i.LifecycleState == TerminatingRetained || i.LifecycleState == WarmedTerminatingRetained
	switch {
	case retained:
		return i, g, nil
	case i.LifecycleState.Leaving():
		return nil, nil, inProgress(i.activityID(c))
	case i.LifecycleState.Warm():
		return nil, nil, invalid("The instance %s is in the warm pool of the group: this operation is not supported for instances in a warm pool.", id)
	}
	return i, g, nil
}

func (i *instance) activityID(c *Cloud) string {
	if i.activity == nil {
		return c.uuid()
	}
	return i.activity.ID
}

// mayShrink checks the minimum, for the instances that count.
func (g *group) mayShrink(victims []*instance, decrement bool) error {
	if !decrement {
		return nil
	}
	by := 0
	for _, i := range victims {
		if i.LifecycleState.Counts() {
			by += i.weight()
		}
	}
	if g.desired-by < g.min {
		return invalid("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. "+
			"Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.min)
	}
	return nil
}

func (c *Cloud) terminateByRequest(g *group, i *instance, decrement bool) Activity {
	if !i.LifecycleState.Counts() { // retained, or in standby: out of the count already
		c.leave(g, i, c.sentence("instance %s was taken out of service in response to a user request", i.ID), false)
		return i.activity.Activity
	}
	have := g.capacity()
	if decrement {
		g.desired -= i.weight()
	}
	c.leave(g, i, c.sentence("instance %s was taken out of service in response to a user request, shrinking the capacity from %d to %d", i.ID, have, have-i.weight()), false)
	return i.activity.Activity
}

// leave starts the termination of an instance, or its return to the warm pool where it is scaled in and the pool takes it back.
func (c *Cloud) leave(g *group, i *instance, cause string, scaledIn bool) {
	if scaledIn && c.takesBack(g, i) {
		c.backToPool(g, i, cause)
		return
	}
	c.endActivity(i.activity, statusCancelled, "")
	i.activity = c.startActivity(g, i.Zone, "Terminating EC2 instance: "+i.ID, cause, statusInProgress)
	if i.LifecycleState == TerminatingRetained || i.LifecycleState == WarmedTerminatingRetained {
		c.enter(i, i.phase.proceed)
		c.shutDown(i)
		return
	}
	p := leaving
	if i.LifecycleState.Warm() {
		p = cooling
	}
	c.run(i, p, OnTerminate, c.scaled(c.spec.Timing.Terminating), func() { c.shutDown(i) })
	c.reconcile(g)
}

// protectedMessage is what the activity history says when nobody may be scaled in.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
const protectedMessage = "Could not scale to desired capacity because all remaining instances are protected from scale in."

// scaleInSurplus terminates what the group has too many of.
func (c *Cloud) scaleInSurplus(g *group, surplus int) {
	for surplus > 0 {
		i := g.victim(surplus)
		if i == nil {
			c.failScaleIn(g)
			return
		}
		have := g.capacity()
		cause := g.cause("an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity from %d to %d", have, have-i.weight()) +
			"  " + c.sentence("instance %s was selected for termination", i.ID)
		surplus -= i.weight()
		c.leave(g, i, cause, true)
	}
}

// failScaleIn records, once until something changes, that all are protected.
func (c *Cloud) failScaleIn(g *group) {
	if !slices.ContainsFunc(g.counting(), func(i *instance) bool { return i.Protected }) {
		return // weights: what is left is bigger than the surplus
	}
	for _, a := range slices.Backward(c.activities) {
		if a.Group != g.spec.Name {
			continue
		}
		if a.StatusMessage == protectedMessage {
			return
		}
		break
	}
	a := c.startActivity(g, g.spec.Zones[0], "Terminating EC2 instance.  Status Reason: "+protectedMessage, g.cause("a difference between desired and actual capacity"), statusFailed)
	c.endActivity(a, statusFailed, protectedMessage)
}

// victim chooses who leaves, as Auto Scaling does: unhealthy ones first, then one of the zone with the most instances, by the termination policies.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
func (g *group) victim(surplus int) *instance {
	free := slices.DeleteFunc(g.counting(), func(i *instance) bool { return i.Protected || i.weight() > surplus })
	if len(free) == 0 {
		return nil
	}
	for _, i := range free {
		if i.Health == "Unhealthy" {
			return i
		}
	}
	zone := g.fullestZone(free)
	free = slices.DeleteFunc(free, func(i *instance) bool { return i.Zone != zone })
	return slices.MinFunc(free, g.byPolicies)
}

// fullestZone is that with the most instances among the zones of the candidates; of two equal ones, that with the oldest template, then the first named.
func (g *group) fullestZone(candidates []*instance) string {
	counts := g.zoneCounts()
	return slices.MinFunc(candidates, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(counts[b.Zone], counts[a.Zone]), g.byPolicies(a, b), cmp.Compare(a.Zone, b.Zone))
	}).Zone
}

// byPolicies orders instances, the first to leave first.
func (g *group) byPolicies(a, b *instance) int {
	policies := g.spec.TerminationPolicies
	if len(policies) == 0 {
		policies = []string{"Default"}
	}
	for _, p := range policies {
		if n := comparePolicy(p, a, b); n != 0 {
			return n
		}
	}
	return cmp.Or(a.LaunchedAt.Compare(b.LaunchedAt), cmp.Compare(a.ID, b.ID))
}

func comparePolicy(policy string, a, b *instance) int {
	switch policy {
	case "NewestInstance":
		return cmp.Or(b.LaunchedAt.Compare(a.LaunchedAt), cmp.Compare(b.ID, a.ID))
	case "OldestInstance", "ClosestToNextInstanceHour":
		return a.LaunchedAt.Compare(b.LaunchedAt)
	case "OldestLaunchConfiguration":
		return compareBool(a.LaunchConfiguration != "", b.LaunchConfiguration != "")
	}
	// Default, OldestLaunchTemplate: those of a launch configuration first, then the oldest version of the template.
	return cmp.Or(compareBool(a.LaunchConfiguration != "", b.LaunchConfiguration != ""), cmp.Compare(a.LaunchTemplateVersion, b.LaunchTemplateVersion))
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	if a == b {
		return 0
	}
	if a {
		return -1
	}
	return 1
}

// replaceUnhealthy takes unhealthy instances out of service; the group launches others in their place.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-health-checks.html
func (c *Cloud) replaceUnhealthy(g *group) {
	if g.isSuspended("ReplaceUnhealthy") {
		return
	}
	for _, i := range g.members() {
		if i.Health != "Unhealthy" || i.LifecycleState.Leaving() {
			continue
		}
		why := "a user health-check"
		if i.dead {
			why = "an EC2 health check indicating it has been terminated or stopped"
		}
		c.leave(g, i, c.sentence("an instance was taken out of service in response to %s", why), false)
	}
}
