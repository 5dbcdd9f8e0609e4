package cloud

import (
	"slices"
	"time"
)

// MaintenanceEvent is a scheduled event of an instance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
type MaintenanceEvent struct {
	ID   string `json:"id,omitempty"`   // "" makes one
	Code string `json:"code,omitempty"` // system-reboot, instance-reboot, system-maintenance, instance-stop or instance-retirement (also if empty)
	// State is active (also if empty), completed or canceled.
	State             string    `json:"state,omitempty"`
	Description       string    `json:"description,omitempty"`
	NotBefore         time.Time `json:"notBefore,omitzero"`
	NotAfter          time.Time `json:"notAfter,omitzero"`
	NotBeforeDeadline time.Time `json:"notBeforeDeadline,omitzero"`
}

// Notices are what AWS has announced about an instance, as its metadata service shows it.
type Notices struct {
	// SpotAction is terminate, stop or hibernate from the notice to the end, and SpotTime when it will be done.
	SpotAction string
	SpotTime   time.Time
	// Rebalance is when the rebalance recommendation was given; it never goes away.
	Rebalance time.Time
	Scheduled []MaintenanceEvent
	History   []MaintenanceEvent
	// Target is autoscaling/target-lifecycle-state; "" outside of a group.
	Target string
	NoIMDS bool
	// UserData, HopLimit and MetadataTags are as the launch template says.
	UserData     string
	HopLimit     int
	MetadataTags bool
	Profile      string
}

// Metadata is what the metadata service of an instance shows.
func (c *Cloud) Metadata(id string) (Instance, Notices, bool) {
	i := c.byID[id]
	if i == nil {
		return Instance{}, Notices{}, false
	}
	n := i.notices
	if g := c.groupOf(i); g != nil {
		n.Target = i.LifecycleState.target(g.poolState())
	}
	if i.LifecycleState == Detached {
		n.Target = string(Detached)
	}
	n.UserData, n.HopLimit, n.MetadataTags, n.Profile = i.data.UserData, i.data.HopLimit, i.data.MetadataTags, i.data.Profile
	n.Scheduled, n.History = slices.Clone(n.Scheduled), slices.Clone(n.History)
	return i.snapshot(), n, true
}

// running finds an instance that has not ended.
func (c *Cloud) running(id string) (*instance, error) {
	i := c.byID[id]
	if i == nil || i.EC2State == "terminated" {
		return nil, Errorf(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	return i, nil
}

// SpotNotice announces that the instance will be reclaimed after in (0: two minutes, scaled), and reclaims it then. A hibernate action gives no time.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
func (c *Cloud) SpotNotice(id, action string, in time.Duration, now time.Time) error {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return err
	}
	if action == "" {
		action = "terminate"
	}
	if !slices.Contains([]string{"terminate", "stop", "hibernate"}, action) {
		return Errorf(400, "InvalidParameterValue", "spot action %q: want terminate, stop or hibernate", action)
	}
	if in == 0 {
		in = c.scaled(c.spec.Timing.SpotNotice)
	}
	i.notices.SpotAction, i.notices.SpotTime = action, c.now.Add(in)
	due := i.notices.SpotTime
	c.emit(i)
	c.after(in, func() {
		if i.notices.SpotTime.Equal(due) {
			c.lose(i, action != "terminate")
		}
	})
	return nil
}

// CancelSpotNotice takes a notice back, which AWS does not do; a test of clients that must not trust the notice alone.
func (c *Cloud) CancelSpotNotice(id string, now time.Time) error {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return err
	}
	i.notices.SpotAction, i.notices.SpotTime = "", time.Time{}
	return nil
}

// Rebalance recommends to rebalance. In a group with capacity rebalancing a successor is launched, and the instance leaves when that serves.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-capacity-rebalancing.html
func (c *Cloud) Rebalance(id string, now time.Time) error {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return err
	}
	i.notices.Rebalance = c.now
	g := c.groupOf(i)
	if g == nil || !g.spec.CapacityRebalance || i.LifecycleState != InService || g.isReplacing(i) {
		return nil
	}
	why := "an EC2 instance rebalance recommendation"
	cause := c.sentence("an instance was launched in response to %s", why)
	c.launchInPlaceOf(g, i, g.spec.Zones, cause, why)
	return nil
}

// Maintenance announces a maintenance event and answers its id.
func (c *Cloud) Maintenance(id string, e MaintenanceEvent, now time.Time) (string, error) {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return "", err
	}
	if e.ID == "" {
		e.ID = c.hexID("instance-event")
	}
	if e.Code == "" {
		e.Code = "instance-retirement"
	}
	if e.State == "" {
		e.State = "active"
	}
	if e.NotBefore.IsZero() {
		e.NotBefore = c.now.Add(24 * time.Hour)
	}
	if e.Description == "" {
		e.Description = map[string]string{
			"instance-retirement": "The instance is running on degraded hardware",
			"instance-stop":       "The instance is running on degraded hardware",
			"system-maintenance":  "The instance will lose network connectivity or power",
		}[e.Code]
	}
	if e.Description == "" {
		e.Description = "scheduled reboot"
	}
	i.notices.Scheduled = append(i.notices.Scheduled, e)
	return e.ID, nil
}

// EndMaintenance moves an event to the history, completed or canceled.
func (c *Cloud) EndMaintenance(id, event, state string, now time.Time) error {
	c.Advance(now)
	i, err := c.running(id)
	if err != nil {
		return err
	}
	prefix, ok := map[string]string{"completed": "[Completed] ", "canceled": "[Canceled] "}[state]
	if !ok {
		return Errorf(400, "InvalidParameterValue", "state %q of a maintenance event: want completed or canceled", state)
	}
	n := slices.IndexFunc(i.notices.Scheduled, func(e MaintenanceEvent) bool { return e.ID == event })
	if n < 0 {
		return Errorf(400, "InvalidInstanceEventIDNotFound", "The event ID %s does not exist", event)
	}
	e := i.notices.Scheduled[n]
	e.State, e.Description = state, prefix+e.Description
	i.notices.Scheduled = slices.Delete(slices.Clone(i.notices.Scheduled), n, n+1)
	i.notices.History = append(i.notices.History, e)
	return nil
}

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

// EnterStandby takes an instance out of service but keeps it; without decrement the group launches another.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnterStandby.html
func (c *Cloud) EnterStandby(id string, decrement bool, now time.Time) (Activity, error) {
	c.Advance(now)
	i, g, err := c.managed(id)
	if err != nil {
		return Activity{}, err
	}
	if i.LifecycleState != InService {
		return Activity{}, invalid("The instance %s is not in InService.", id)
	}
	if err := g.mayShrink([]*instance{i}, decrement); err != nil {
		return Activity{}, invalid("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To place into standby 1 instance, please update the AutoScalingGroup sizes appropriately.", g.spec.Name, g.min, g.max, g.desired)
	}
	if decrement {
		g.desired -= i.weight()
	}
	a := c.startActivity(g, i.Zone, "Moving EC2 instance to Standby: "+id, c.sentence("instance %s was moved to standby in response to a user request", id), statusInProgress)
	c.enter(i, EnteringStandby)
	c.afterIn(i, c.scaled(c.spec.Timing.Reconcile), func() {
		c.endActivity(a, statusSuccessful, "")
		c.enter(i, Standby)
	})
	c.reconcile(g)
	return a.Activity, nil
}

// ExitStandby brings an instance back into service and raises the desired capacity.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ExitStandby.html
func (c *Cloud) ExitStandby(id string, now time.Time) (Activity, error) {
	c.Advance(now)
	i, g, err := c.managed(id)
	if err != nil {
		return Activity{}, err
	}
	if i.LifecycleState != Standby {
		return Activity{}, invalid("The instance %s is not in Standby.", id)
	}
	if g.desired+i.weight() > g.max {
		return Activity{}, invalid("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To remove from standby 1 instance, please update the AutoScalingGroup sizes appropriately.", g.spec.Name, g.min, g.max, g.desired)
	}
	g.desired += i.weight()
	i.activity = c.startActivity(g, i.Zone, "Moving EC2 instance out of Standby: "+id, c.sentence("instance %s was moved out of standby in response to a user request", id), statusPreInService)
	c.run(i, launching, "", c.scaled(c.spec.Timing.Pending), func() { c.inService(g, i) })
	return i.activity.Activity, nil
}

// Detach takes an instance out of its group; it runs on.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DetachInstances.html
func (c *Cloud) Detach(id string, decrement bool, now time.Time) (Activity, error) {
	c.Advance(now)
	i, g, err := c.managed(id)
	if err != nil {
		return Activity{}, err
	}
	if i.LifecycleState != InService && i.LifecycleState != Standby {
		return Activity{}, invalid("The instance %s is not in InService or Standby.", id)
	}
	if err := g.mayShrink([]*instance{i}, decrement); err != nil {
		return Activity{}, invalid("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To detach 1 instance, please update the AutoScalingGroup sizes appropriately.", g.spec.Name, g.min, g.max, g.desired)
	}
	if decrement && i.LifecycleState.Counts() {
		g.desired -= i.weight()
	}
	a := c.startActivity(g, i.Zone, "Detaching EC2 instance: "+id, c.sentence("instance %s was detached in response to a user request", id), statusInProgress)
	c.enter(i, Detaching)
	c.afterIn(i, c.scaled(c.spec.Timing.Reconcile), func() {
		c.endActivity(a, statusSuccessful, "")
		c.enter(i, Detached)
		i.Group = ""
		delete(i.Tags, "aws:autoscaling:groupName")
	})
	c.reconcile(g)
	return a.Activity, nil
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
