package api

import (
	"context"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

func setDesiredCapacity(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "DesiredCapacity"); err != nil {
		return nil, err
	}
	desired, err := v.Int("DesiredCapacity", 0)
	if err != nil {
		return nil, err
	}
	return nil, c.SetDesiredCapacity(v.Get("AutoScalingGroupName"), desired, v.Bool("HonorCooldown", false), now)
}

// launchInstances answers when the instances are launched, which takes a while.
func launchInstances(ctx context.Context, b Backend, v wire.Values) (any, error) {
	if err := required(v, "AutoScalingGroupName", "ClientToken", "RequestedCapacity"); err != nil {
		return nil, err
	}
	capacity, err := v.Int("RequestedCapacity", 0)
	if err != nil {
		return nil, err
	}
	r := cloud.LaunchRequest{
		Group: v.Get("AutoScalingGroupName"), Token: v.Get("ClientToken"), Capacity: capacity, Retry: v.Get("RetryStrategy"),
		Zones: v.List("AvailabilityZones.member"), ZoneIDs: v.List("AvailabilityZoneIds.member"), SubnetIDs: v.List("SubnetIds.member"),
	}
	var (
		earlier *cloud.LaunchResult
		takes   time.Duration
	)
	err = b.With(func(c *cloud.Cloud, now time.Time) error {
		takes = c.LaunchTakes()
		earlier, err = c.StartLaunch(r, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if earlier != nil {
		return launchShape(*earlier), nil
	}
	// The launch goes on also when the caller goes away, as it does on AWS: that is what the token is for.
	_ = b.Sleep(context.WithoutCancel(ctx), takes)
	var result cloud.LaunchResult
	err = b.With(func(c *cloud.Cloud, now time.Time) error {
		result, err = c.FinishLaunch(r, now)
		return err
	})
	return launchShape(result), err
}

type asgLaunched struct {
	AutoScalingGroupName string
	ClientToken          string
	Instances            []asgLaunchedInstances `xml:"Instances>member"`
	Errors               []asgLaunchError       `xml:"Errors>member"`
}

type asgLaunchedInstances struct {
	InstanceType       string
	MarketType         string
	AvailabilityZone   string
	AvailabilityZoneID string   `xml:"AvailabilityZoneId"`
	SubnetID           string   `xml:"SubnetId"`
	InstanceIDs        []string `xml:"InstanceIds>member"`
}

type asgLaunchError struct {
	InstanceType       string
	MarketType         string
	AvailabilityZone   string
	AvailabilityZoneID string `xml:"AvailabilityZoneId"`
	SubnetID           string `xml:"SubnetId"`
	ErrorCode          string
	ErrorMessage       string
}

func launchShape(r cloud.LaunchResult) asgLaunched {
	shape := asgLaunched{AutoScalingGroupName: r.Group, ClientToken: r.Token}
	for _, l := range r.Launched {
		shape.Instances = append(shape.Instances, asgLaunchedInstances{
			InstanceType: l.Type, MarketType: l.Market, AvailabilityZone: l.Zone, AvailabilityZoneID: cloud.ZoneID(l.Zone), SubnetID: l.Subnet, InstanceIDs: l.IDs,
		})
	}
	for _, s := range r.Shortages {
		shape.Errors = append(shape.Errors, asgLaunchError{
			InstanceType: s.Type, MarketType: s.Market, AvailabilityZone: s.Zone, AvailabilityZoneID: cloud.ZoneID(s.Zone), SubnetID: s.Subnet,
			ErrorCode: s.Code, ErrorMessage: s.Message,
		})
	}
	return shape
}

func terminateInstances(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "ShouldDecrementDesiredCapacity"); err != nil {
		return nil, err
	}
	one, several, group := v.Get("InstanceId"), v.List("InstanceIds.member"), v.Get("AutoScalingGroupName")
	decrement := v.Bool("ShouldDecrementDesiredCapacity", false)
	switch {
	case one != "" && len(several) > 0:
		return nil, cloud.Errorf(400, "ValidationError", "You cannot specify both InstanceId and InstanceIds")
	case len(several) > 0 && group == "":
		return nil, cloud.Errorf(400, "ValidationError", "AutoScalingGroupName is required when using InstanceIds")
	case len(several) > 0:
		activities, err := c.Terminate(group, several, decrement, now)
		if err != nil {
			return nil, err
		}
		return activitiesShape(activities), nil
	}
	if err := required(v, "InstanceId"); err != nil {
		return nil, err
	}
	activities, err := c.Terminate(group, []string{one}, decrement, now)
	if err != nil {
		return nil, err
	}
	return struct{ Activity asgActivity }{activityShape(activities[0])}, nil
}

type asgActivities struct {
	Activities []asgActivity `xml:"Activities>member"`
}

func activitiesShape(activities []cloud.Activity) asgActivities {
	var shape asgActivities
	for _, a := range activities {
		shape.Activities = append(shape.Activities, activityShape(a))
	}
	return shape
}

func completeAction(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "LifecycleHookName", "LifecycleActionResult"); err != nil {
		return nil, err
	}
	return nil, c.CompleteLifecycleAction(v.Get("AutoScalingGroupName"), v.Get("LifecycleHookName"), v.Get("InstanceId"), v.Get("LifecycleActionToken"), v.Get("LifecycleActionResult"), now)
}

func recordHeartbeat(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "LifecycleHookName"); err != nil {
		return nil, err
	}
	return nil, c.Heartbeat(v.Get("AutoScalingGroupName"), v.Get("LifecycleHookName"), v.Get("InstanceId"), v.Get("LifecycleActionToken"), now)
}

// putHook writes what the call names; a hook that exists keeps the rest. A spec may declare heartbeats that are shorter than AWS takes; this call may not.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
func putHook(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "LifecycleHookName"); err != nil {
		return nil, err
	}
	group, name := v.Get("AutoScalingGroupName"), v.Get("LifecycleHookName")
	g, err := c.Group(group)
	if err != nil {
		return nil, err
	}
	h := cloud.Hook{Name: name}
	for _, old := range g.Spec.Hooks {
		if old.Name == name {
			h = old
		}
	}
	if h, err = hookOf(h, v); err != nil {
		return nil, err
	}
	return nil, c.PutHook(group, h, now)
}

// hookOf is a hook with what the parameters name.
func hookOf(h cloud.Hook, v wire.Values) (cloud.Hook, error) {
	if err := only(v, "AutoScalingGroupName", "LifecycleHookName", "LifecycleTransition", "HeartbeatTimeout", "DefaultResult", "NotificationMetadata", "NotificationTargetARN", "RoleARN"); err != nil {
		return h, err
	}
	for name, field := range map[string]*string{
		"LifecycleTransition": &h.Transition, "DefaultResult": &h.Default, "NotificationMetadata": &h.Metadata, "NotificationTargetARN": &h.Target, "RoleARN": &h.Role,
	} {
		if v.Has(name) {
			*field = v.Get(name)
		}
	}
	if h.Transition == "" {
		return h, cloud.Errorf(400, "ValidationError", "LifecycleTransition is required for a new lifecycle hook")
	}
	if !v.Has("HeartbeatTimeout") {
		return h, nil
	}
	heartbeat, err := within(v, "HeartbeatTimeout", 30, 7200)
	h.HeartbeatSeconds, h.GlobalSeconds = heartbeat, 0 // which follows from the heartbeat
	return h, err
}

func deleteHook(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "LifecycleHookName"); err != nil {
		return nil, err
	}
	return nil, c.DeleteHook(v.Get("AutoScalingGroupName"), v.Get("LifecycleHookName"), now)
}

// putTags writes tags of one group, which is all that anybody here asks for.
func putTags(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	tags, group, err := groupTags(v)
	if err != nil {
		return nil, err
	}
	return nil, c.PutTags(group, tags, now)
}

func deleteTags(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	tags, group, err := groupTags(v)
	if err != nil {
		return nil, err
	}
	return nil, c.DeleteTags(group, tags, now)
}

// groupTags are the tags that a call names, and the group.
func groupTags(v wire.Values) (tags map[string]cloud.Tag, group string, err error) {
	tags = map[string]cloud.Tag{}
	for n, tag := range v.Structs("Tags.member") {
		if err := required(tag, "Key", "ResourceId"); err != nil {
			return nil, "", err
		}
		if group = tag.Get("ResourceId"); n > 0 && group != v.Get("Tags.member.1.ResourceId") {
			return nil, "", cloud.Errorf(400, "ValidationError", "Tags of several groups in one call are not simulated")
		}
		tags[tag.Get("Key")] = cloud.Tag{Value: tag.Get("Value"), Propagate: tag.Bool("PropagateAtLaunch", false)}
	}
	return tags, group, nil
}

func suspendProcesses(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	return nil, c.Suspend(v.Get("AutoScalingGroupName"), v.List("ScalingProcesses.member"), now)
}

func resumeProcesses(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	return nil, c.Resume(v.Get("AutoScalingGroupName"), v.List("ScalingProcesses.member"), now)
}

func setProtection(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "ProtectedFromScaleIn"); err != nil {
		return nil, err
	}
	return nil, c.Protect(v.Get("AutoScalingGroupName"), v.List("InstanceIds.member"), v.Bool("ProtectedFromScaleIn", false), now)
}

func setHealth(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "InstanceId", "HealthStatus"); err != nil {
		return nil, err
	}
	return nil, c.SetHealth(v.Get("InstanceId"), v.Get("HealthStatus"), now)
}

// moved are the group and the instances of a call that moves instances.
func moved(v wire.Values, names ...string) (group string, ids []string, err error) {
	names = append(names, "AutoScalingGroupName", "InstanceIds")
	if err := only(v, names...); err != nil {
		return "", nil, err
	}
	if ids = v.List("InstanceIds.member"); len(ids) == 0 {
		return "", nil, null("InstanceIds")
	}
	return v.Get("AutoScalingGroupName"), ids, required(v, slices.DeleteFunc(names, func(name string) bool { return name == "InstanceIds" })...)
}

func activitiesOr(activities []cloud.Activity, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return activitiesShape(activities), nil
}

func enterStandby(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	group, ids, err := moved(v, "ShouldDecrementDesiredCapacity")
	if err != nil {
		return nil, err
	}
	return activitiesOr(c.EnterStandby(group, ids, v.Bool("ShouldDecrementDesiredCapacity", false), now))
}

func exitStandby(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	group, ids, err := moved(v)
	if err != nil {
		return nil, err
	}
	return activitiesOr(c.ExitStandby(group, ids, now))
}

func detachInstances(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	group, ids, err := moved(v, "ShouldDecrementDesiredCapacity")
	if err != nil {
		return nil, err
	}
	return activitiesOr(c.Detach(group, ids, v.Bool("ShouldDecrementDesiredCapacity", false), now))
}

type asgRefreshID struct {
	InstanceRefreshID string `xml:"InstanceRefreshId"`
}

func startRefresh(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := only(v, "AutoScalingGroupName", "Preferences", "Strategy"); err != nil {
		return nil, err
	}
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	if err := oneOf(v, "Strategy", "Rolling"); err != nil {
		return nil, err
	}
	preferences, err := refreshPreferences(v.Sub("Preferences"))
	if err != nil {
		return nil, err
	}
	id, err := c.StartRefresh(v.Get("AutoScalingGroupName"), preferences, now)
	return asgRefreshID{id}, err
}

// refreshPreferences are those of which the fake knows what follows. A maximum above 100 percent, which launches before it terminates, is none of them.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
func refreshPreferences(v wire.Values) (cloud.RefreshPreferences, error) {
	p := cloud.RefreshPreferences{Protected: v.Get("ScaleInProtectedInstances"), SkipMatching: v.Bool("SkipMatching", false)}
	if err := only(v, "MinHealthyPercentage", "MaxHealthyPercentage", "ScaleInProtectedInstances", "SkipMatching"); err != nil {
		return p, err
	}
	if err := oneOf(v, "ScaleInProtectedInstances", "Refresh", "Ignore", "Wait"); err != nil {
		return p, err
	}
	if v.Has("MinHealthyPercentage") {
		percent, err := within(v, "MinHealthyPercentage", 0, 100)
		if err != nil {
			return p, err
		}
		p.MinHealthyPercentage = &percent
	}
	if !v.Has("MaxHealthyPercentage") {
		return p, nil
	}
	most, err := within(v, "MaxHealthyPercentage", 100, 200)
	switch {
	case err != nil:
		return p, err
	case p.MinHealthyPercentage == nil:
		return p, cloud.Errorf(400, "ValidationError", "You must specify MinHealthyPercentage when you specify MaxHealthyPercentage")
	case most-*p.MinHealthyPercentage > 100:
		return p, cloud.Errorf(400, "ValidationError", "The difference between MinHealthyPercentage and MaxHealthyPercentage must not be greater than 100")
	case most > 100:
		return p, notSimulated("MaxHealthyPercentage above 100")
	}
	return p, nil
}

func cancelRefresh(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	id, err := c.CancelRefresh(v.Get("AutoScalingGroupName"), now)
	return asgRefreshID{id}, err
}

// putPool makes a warm pool; one that exists keeps what the call does not name.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html
func putPool(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := only(v, "AutoScalingGroupName", "MaxGroupPreparedCapacity", "MinSize", "PoolState", "InstanceReusePolicy"); err != nil {
		return nil, err
	}
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	name := v.Get("AutoScalingGroupName")
	g, err := c.Group(name)
	if err != nil {
		return nil, err
	}
	var pool cloud.WarmPool
	if g.Spec.WarmPool != nil {
		pool = *g.Spec.WarmPool
	}
	if err := oneOf(v, "PoolState", "Stopped", "Running", "Hibernated"); err != nil {
		return nil, err
	}
	pool.State = or(v.Get("PoolState"), pool.State)
	pool.ReuseOnScaleIn = v.Sub("InstanceReusePolicy").Bool("ReuseOnScaleIn", pool.ReuseOnScaleIn)
	if v.Has("MinSize") {
		if pool.MinSize, err = within(v, "MinSize", 0, mostInstances); err != nil {
			return nil, err
		}
	}
	if v.Has("MaxGroupPreparedCapacity") {
		most, err := within(v, "MaxGroupPreparedCapacity", -1, mostInstances)
		if err != nil {
			return nil, err
		}
		if pool.MaxPrepared = &most; most < 0 {
			pool.MaxPrepared = nil
		}
	}
	return nil, c.PutWarmPool(name, pool, now)
}

func deletePool(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	return nil, c.DeleteWarmPool(v.Get("AutoScalingGroupName"), v.Bool("ForceDelete", false), now)
}
