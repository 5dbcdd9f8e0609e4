package cloud

import (
	"slices"
	"strings"
	"time"
)

// SetHealth is SetInstanceHealth: an unhealthy instance is replaced after the health check's time.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetInstanceHealth.html
func (c *Cloud) SetHealth(id, health string, now time.Time) error {
	c.Advance(now)
	i, g, err := c.managed(id)
	if err != nil {
		return err
	}
	if health != "Healthy" && health != "Unhealthy" {
		return invalid("Value '%s' at 'healthStatus' failed to satisfy constraint: Member must be Healthy or Unhealthy", health)
	}
	i.Health = health
	c.emit(i)
	c.after(c.scaled(c.spec.Timing.HealthCheck), func() { c.reconcile(g) })
	return nil
}

// Protect is SetInstanceProtection.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetInstanceProtection.html
func (c *Cloud) Protect(group string, ids []string, protected bool, now time.Time) error {
	c.Advance(now)
	var list []*instance
	for _, id := range ids {
		i, g, err := c.managed(id)
		if err != nil {
			return err
		}
		if group != "" && g.spec.Name != group {
			return noManagedInstance(id)
		}
		list = append(list, i)
	}
	for _, i := range list {
		i.Protected = protected
		c.emit(i)
		c.reconcile(c.groupOf(i))
	}
	return nil
}

// Kill ends an instance without a word, as TerminateInstances of EC2, or a failing host, does. Its group notices by its health check.
func (c *Cloud) Kill(id string, now time.Time) error {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return err
	}
	c.lose(i, false)
	return nil
}

// lose takes an instance away: stopped, or terminated. The group notices after the time of the health check; lifecycle hooks do not hold it up, but they
// are run, on an instance that is no more.
func (c *Cloud) lose(i *instance, stopped bool) {
	if i.Gone || i.dead {
		return
	}
	i.dead = true
	i.powerOff()
	i.EC2State = "terminated"
	if stopped {
		i.EC2State = "stopped"
	}
	g := c.groupOf(i)
	if g == nil {
		i.Gone = true
		c.emit(i)
		c.forget(i)
		return
	}
	c.emit(i)
	c.after(c.scaled(c.spec.Timing.HealthCheck), func() {
		if g.isSuspended("HealthCheck") || i.Gone {
			return
		}
		i.Health = "Unhealthy"
		c.emit(i)
		c.reconcile(g)
	})
}

// Reboot restarts the operating system: it is up again after the boot time, with another boot id.
func (c *Cloud) Reboot(id string, now time.Time) error {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return err
	}
	if i.OS != OSUp {
		return Errorf(400, "IncorrectInstanceState", "The instance '%s' is not in the 'running' state.", id)
	}
	i.powerOff()
	c.emit(i)
	boot := c.scaled(c.spec.Timing.Boot)
	if g := c.groupOf(i); g != nil {
		boot = c.bootTime(g)
	}
	c.bootUp(i, boot)
	c.emit(i)
	return nil
}

// together finds the instances that a call means, all of one group ("" is that of the first) and each in one of the states: nothing is moved if one cannot be.
func (c *Cloud) together(name string, ids []string, states ...LifecycleState) (*group, []*instance, error) {
	g := c.findGroup(name)
	if name != "" && g == nil {
		return nil, nil, noGroup(name)
	}
	var list []*instance
	for _, id := range ids {
		i, of, err := c.managed(id)
		if err != nil {
			return nil, nil, err
		}
		if g == nil {
			g = of
		}
		if g != of || slices.Contains(list, i) {
			return nil, nil, noManagedInstance(id)
		}
		if !slices.Contains(states, i.LifecycleState) {
			return nil, nil, invalid("The instance %s is not in %s.", id, words(states))
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		return nil, nil, invalid("At least one instance must be specified")
	}
	return g, list, nil
}

func words(states []LifecycleState) string {
	var list []string
	for _, s := range states {
		list = append(list, string(s))
	}
	return strings.Join(list, " or ")
}

// outOfSize says that a group cannot do without, or with, so many.
func (g *group) outOfSize(move string, n int) error {
	return invalid("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To %s %d instance, please update the AutoScalingGroup sizes appropriately.", g.spec.Name, g.min, g.max, g.desired, move, n)
}

// EnterStandby takes instances out of service but keeps them; without decrement the group launches others.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnterStandby.html
func (c *Cloud) EnterStandby(name string, ids []string, decrement bool, now time.Time) ([]Activity, error) {
	c.Advance(now)
	g, list, err := c.together(name, ids, InService)
	if err != nil {
		return nil, err
	}
	if g.mayShrink(list, decrement) != nil {
		return nil, g.outOfSize("place into standby", len(list))
	}
	var activities []Activity
	for _, i := range list {
		if decrement {
			g.desired -= i.weight()
		}
		a := c.startActivity(g, i.Zone, "Moving EC2 instance to Standby: "+i.ID, c.sentence("instance %s was moved to standby in response to a user request", i.ID), statusInProgress)
		c.enter(i, EnteringStandby)
		c.afterIn(i, c.scaled(c.spec.Timing.Reconcile), func() {
			c.endActivity(a, statusSuccessful, "")
			c.enter(i, Standby)
		})
		activities = append(activities, a.Activity)
	}
	c.reconcile(g)
	return activities, nil
}

// ExitStandby brings instances back into service and raises the desired capacity.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ExitStandby.html
func (c *Cloud) ExitStandby(name string, ids []string, now time.Time) ([]Activity, error) {
	c.Advance(now)
	g, list, err := c.together(name, ids, Standby)
	if err != nil {
		return nil, err
	}
	by := 0
	for _, i := range list {
		by += i.weight()
	}
	if g.desired+by > g.max {
		return nil, g.outOfSize("remove from standby", len(list))
	}
	g.desired += by
	var activities []Activity
	for _, i := range list {
		i.activity = c.startActivity(g, i.Zone, "Moving EC2 instance out of Standby: "+i.ID, c.sentence("instance %s was moved out of standby in response to a user request", i.ID), statusPreInService)
		c.run(i, launching, "", c.scaled(c.spec.Timing.Pending), func() { c.inService(g, i) })
		activities = append(activities, i.activity.Activity)
	}
	return activities, nil
}

// Detach takes instances out of their group; they run on.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DetachInstances.html
func (c *Cloud) Detach(name string, ids []string, decrement bool, now time.Time) ([]Activity, error) {
	c.Advance(now)
	g, list, err := c.together(name, ids, InService, Standby)
	if err != nil {
		return nil, err
	}
	if g.mayShrink(list, decrement) != nil {
		return nil, g.outOfSize("detach", len(list))
	}
	var activities []Activity
	for _, i := range list {
		if decrement && i.LifecycleState.Counts() {
			g.desired -= i.weight()
		}
		a := c.startActivity(g, i.Zone, "Detaching EC2 instance: "+i.ID, c.sentence("instance %s was detached in response to a user request", i.ID), statusInProgress)
		c.enter(i, Detaching)
		c.afterIn(i, c.scaled(c.spec.Timing.Reconcile), func() {
			c.endActivity(a, statusSuccessful, "")
			c.enter(i, Detached)
			i.Group = ""
			delete(i.Tags, "aws:autoscaling:groupName")
		})
		activities = append(activities, a.Activity)
	}
	c.reconcile(g)
	return activities, nil
}

// Force puts an instance into any lifecycle state and leaves it there until something acts on it. Lifecycle actions under way are forgotten.
func (c *Cloud) Force(id string, s LifecycleState, now time.Time) error {
	c.Advance(now)
	if !slices.Contains(States, s) {
		return invalid("lifecycle state %q is not one of %v", s, States)
	}
	i, g, err := c.managed(id)
	if err != nil {
		return err
	}
	i.actions = nil
	c.enter(i, s)
	c.reconcile(g)
	return nil
}

// ForceHook starts the lifecycle actions of a forced Pending:Wait or Terminating:Wait, as if the instance had come there by itself.
func (c *Cloud) ForceHook(id string, now time.Time) error {
	c.Advance(now)
	i, g, err := c.managed(id)
	if err != nil {
		return err
	}
	p, transition, then := leaving, OnTerminate, func() { c.shutDown(i) }
	switch i.LifecycleState {
	case TerminatingWait:
	case PendingWait:
		p, transition, then = launching, OnLaunch, func() { c.inService(g, i) }
	default:
		return invalid("instance %s is in %s, not in Pending:Wait or Terminating:Wait", id, i.LifecycleState)
	}
	i.phase, i.then, i.actions = p, then, nil
	for _, h := range g.hooks(transition) {
		c.startAction(i, h)
	}
	c.emit(i)
	return nil
}
