package cloud

import (
	"maps"
	"slices"
	"time"
)

// group is an Auto Scaling group.
type group struct {
	cloud   *Cloud
	spec    Group
	arn     string
	created time.Time

	min, max, desired int
	suspended         map[string]string // process → why
	causes            []string          // why desired is what it is, until the group has got there
	lastActivity      time.Time         // end of the last one, for the cooldown
	retrying          bool              // a launch failed and will be tried again
	reconciling       bool              // reconcile is due
	deleting          bool              // it is gone with its last instance

	replacing []replacement
	refreshes []*refresh // oldest first
}

func newGroup(c *Cloud, spec Group) *group {
	g := &group{cloud: c, spec: spec, created: c.now, min: spec.Min, max: spec.Max, desired: *spec.Desired, suspended: map[string]string{}}
	g.arn = "arn:aws:autoscaling:" + c.spec.Region + ":" + c.spec.Account + ":autoScalingGroup:" + uuidOf("group"+spec.Name) + ":autoScalingGroupName/" + spec.Name
	for _, p := range spec.Suspended {
		g.suspended[p] = suspendedByUser(c.now)
	}
	return g
}

func suspendedByUser(now time.Time) string {
	return "User suspended at " + now.UTC().Format(time.RFC3339)
}

// GroupStatus is a group as it was at one moment.
type GroupStatus struct {
	// Spec is the completed declaration; Min, Max and Desired below are what holds now.
	Spec    Group     `json:"spec"`
	ARN     string    `json:"arn"`
	Created time.Time `json:"created"`
	Min     int       `json:"min"`
	Max     int       `json:"max"`
	Desired int       `json:"desired"`
	// Instances are those of the group, without its warm pool, which is Warm.
	Instances []Instance        `json:"instances,omitempty"`
	Warm      []Instance        `json:"warm,omitempty"`
	Suspended map[string]string `json:"suspended,omitempty"`
	Refreshes []Refresh         `json:"refreshes,omitempty"` // newest first
	Deleting  bool              `json:"deleting,omitempty"`
}

// Groups lists all groups, in the order of their making.
func (c *Cloud) Groups() []GroupStatus {
	list := make([]GroupStatus, 0, len(c.groups))
	for _, g := range c.groups {
		list = append(list, c.status(g))
	}
	return list
}

// Group finds a group by name.
func (c *Cloud) Group(name string) (GroupStatus, error) {
	g := c.findGroup(name)
	if g == nil {
		return GroupStatus{}, noGroup(name)
	}
	return c.status(g), nil
}

func (c *Cloud) status(g *group) GroupStatus {
	s := GroupStatus{
		Spec: g.spec, ARN: g.arn, Created: g.created, Min: g.min, Max: g.max, Desired: g.desired, Suspended: maps.Clone(g.suspended), Deleting: g.deleting,
	}
	for _, i := range g.members() {
		if i.LifecycleState.Warm() {
			s.Warm = append(s.Warm, i.snapshot())
			continue
		}
		s.Instances = append(s.Instances, i.snapshot())
	}
	for _, r := range slices.Backward(g.refreshes) {
		s.Refreshes = append(s.Refreshes, r.Refresh)
	}
	return s
}

// members are the instances of the group and of its warm pool, oldest first.
func (g *group) members() []*instance {
	var list []*instance
	for _, i := range g.cloud.instances {
		if i.Group == g.spec.Name && !i.Gone {
			list = append(list, i)
		}
	}
	return list
}

// counting are the members that count towards the desired capacity.
func (g *group) counting() []*instance {
	return slices.DeleteFunc(g.members(), func(i *instance) bool { return !i.LifecycleState.Counts() })
}

// capacity is what the group has, in the unit of its desired capacity.
func (g *group) capacity() int {
	sum := 0
	for _, i := range g.counting() {
		sum += i.weight()
	}
	return sum
}

// SetDesiredCapacity is the call of that name.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
func (c *Cloud) SetDesiredCapacity(name string, desired int, honorCooldown bool, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	if desired > g.max {
		return invalid("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", desired, g.max)
	}
	if desired < g.min {
		return invalid("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", desired, g.min)
	}
	if honorCooldown && c.now.Before(g.lastActivity.Add(time.Duration(g.spec.CooldownSeconds)*time.Second)) {
		return inProgress(c.lastActivityOf(g))
	}
	c.setDesired(g, desired, "a user request explicitly set group desired capacity")
	return nil
}

// Resize changes the limits, and the desired capacity where it would lie outside.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
func (c *Cloud) Resize(name string, minSize, maxSize int, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	if minSize < 0 || minSize > maxSize {
		return invalid("Min size (%d) must not exceed max size (%d)", minSize, maxSize)
	}
	g.min, g.max = minSize, maxSize
	c.setDesired(g, max(minSize, min(maxSize, g.desired)), "a user request update of AutoScalingGroup constraints")
	return nil
}

// UpdateGroup makes another declaration of a group hold; a nil Desired is what there is, within the new limits. Where it fails nothing changes.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
func (c *Cloud) UpdateGroup(spec Group, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(spec.Name)
	if g == nil {
		return noGroup(spec.Name)
	}
	if g.deleting {
		return inProgress(c.lastActivityOf(g))
	}
	if spec.Desired == nil {
		desired := max(spec.Min, min(spec.Max, g.desired))
		spec.Desired = &desired
	}
	if err := c.checkGroup(spec); err != nil {
		return err
	}
	g.spec, g.min, g.max = spec, spec.Min, spec.Max
	c.setDesired(g, *spec.Desired, "a user request update of AutoScalingGroup constraints")
	return nil
}

// DeleteGroup deletes a group. By force its instances end with it, and no hook holds them up.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteAutoScalingGroup.html
func (c *Cloud) DeleteGroup(name string, force bool, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	switch {
	case g == nil:
		return noGroup(name)
	case len(g.members()) > 0 && !force:
		return Errorf(400, "ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
	}
	g.min, g.max, g.desired, g.deleting, g.spec.WarmPool = 0, 0, 0, true, nil
	for _, i := range g.members() {
		if i.LifecycleState.Warm() {
			c.endNow(g, i, cooling, "the deletion of the group")
			continue
		}
		c.endNow(g, i, leaving, "the deletion of the group")
	}
	c.dropDeleted(g)
	return nil
}

// dropDeleted forgets a deleted group when its last instance has ended.
func (c *Cloud) dropDeleted(g *group) {
	if g.deleting && len(g.members()) == 0 {
		c.groups = slices.DeleteFunc(slices.Clone(c.groups), func(o *group) bool { return o == g })
	}
}

// ScaleIn lowers the desired capacity as a scaling policy does; Auto Scaling chooses who leaves.
func (c *Cloud) ScaleIn(name string, by int, now time.Time) error {
	return c.scale(name, -by, now)
}

// ScaleOut raises the desired capacity as a scaling policy does.
func (c *Cloud) ScaleOut(name string, by int, now time.Time) error {
	return c.scale(name, by, now)
}

func (c *Cloud) scale(name string, by int, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	to := max(g.min, min(g.max, g.desired+by))
	c.setDesired(g, to, "a monitor alarm test-alarm in state ALARM triggered policy test-policy")
	return nil
}

func (c *Cloud) setDesired(g *group, to int, why string) {
	if to != g.desired {
		g.because("%s changing the desired capacity from %d to %d", why, g.desired, to)
	}
	g.desired = to
	c.reconcile(g)
}

// Tag is a tag of a group; Propagate gives it to instances that are launched from now on.
type Tag struct {
	Value     string
	Propagate bool
}

// PutTags writes tags of a group, over those of the same keys.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateOrUpdateTags.html
func (c *Cloud) PutTags(name string, tags map[string]Tag, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	all, own := maps.Clone(g.spec.Tags), slices.Clone(g.spec.OwnTags)
	if all == nil {
		all = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all[key] = tags[key].Value
		own = slices.DeleteFunc(own, func(k string) bool { return k == key })
		if !tags[key].Propagate {
			own = append(own, key)
		}
	}
	if len(all) > mostTags {
		return invalid("A group has at most %d tags", mostTags)
	}
	g.spec.Tags, g.spec.OwnTags = all, own
	return nil
}

// DeleteTags takes tags off a group, whatever their values; instances keep theirs.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteTags.html
func (c *Cloud) DeleteTags(name string, tags map[string]Tag, now time.Time) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	all := maps.Clone(g.spec.Tags)
	maps.DeleteFunc(all, func(key, _ string) bool { _, goes := tags[key]; return goes })
	g.spec.Tags = all
	g.spec.OwnTags = slices.DeleteFunc(slices.Clone(g.spec.OwnTags), func(key string) bool { _, goes := tags[key]; return goes })
	return nil
}

// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html#tag_restrictions
const mostTags = 50

// Suspend stops processes of a group; none named means all.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SuspendProcesses.html
func (c *Cloud) Suspend(name string, processes []string, now time.Time) error {
	return c.eachProcess(name, processes, now, func(g *group, p string) { g.suspended[p] = suspendedByUser(c.now) })
}

// Resume starts suspended processes of a group again; none named means all.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ResumeProcesses.html
func (c *Cloud) Resume(name string, processes []string, now time.Time) error {
	return c.eachProcess(name, processes, now, func(g *group, p string) { delete(g.suspended, p) })
}

func (c *Cloud) eachProcess(name string, processes []string, now time.Time, do func(*group, string)) error {
	c.Advance(now)
	g := c.findGroup(name)
	if g == nil {
		return noGroup(name)
	}
	if len(processes) == 0 {
		processes = Processes
	}
	for _, p := range processes {
		if !slices.Contains(Processes, p) {
			return invalid("Invalid scaling process: %s", p)
		}
	}
	for _, p := range processes {
		do(g, p)
	}
	c.reconcile(g)
	return nil
}

func (g *group) isSuspended(process string) bool {
	_, ok := g.suspended[process]
	return ok
}

// reconcile lets the group look, after a moment, at what it has and what it wants.
func (c *Cloud) reconcile(g *group) {
	if g == nil || g.reconciling {
		return
	}
	g.reconciling = true
	c.after(c.scaled(c.spec.Timing.Reconcile), func() { c.reconcileNow(g) })
}

func (c *Cloud) reconcileNow(g *group) {
	g.reconciling = false
	if g.deleting {
		return
	}
	c.replaceUnhealthy(g)
	c.finishReplacements(g)
	want := g.desired + g.overlap()
	have := g.capacity()
	switch {
	case have < want && !g.isSuspended("Launch"):
		c.launchMissing(g, want-have)
	case have > want && !g.isSuspended("Terminate"):
		c.scaleInSurplus(g, have-want)
	}
	if g.capacity() == g.desired {
		g.causes = nil
	}
	c.stepRefresh(g)
	c.keepWarmPool(g)
}

func (c *Cloud) lastActivityOf(g *group) string {
	for _, a := range slices.Backward(c.activities) {
		if a.Group == g.spec.Name {
			return a.ID
		}
	}
	return c.uuid()
}
