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
	i.notices.Scheduled = append(slices.DeleteFunc(slices.Clone(i.notices.Scheduled), func(o MaintenanceEvent) bool { return o.ID == e.ID }), e) // it may be moved
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
