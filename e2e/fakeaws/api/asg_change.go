package api

import (
	"context"
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

// updateGroup changes sizes only.
func updateGroup(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	name := v.Get("AutoScalingGroupName")
	g, err := c.Group(name)
	if err != nil {
		return nil, err
	}
	minSize, err := v.Int("MinSize", g.Min)
	if err != nil {
		return nil, err
	}
	maxSize, err := v.Int("MaxSize", g.Max)
	if err != nil {
		return nil, err
	}
	desired, err := v.Int("DesiredCapacity", max(minSize, min(maxSize, g.Desired)))
	if err != nil {
		return nil, err
	}
	if err := c.Resize(name, minSize, maxSize, now); err != nil {
		return nil, err
	}
	return nil, c.SetDesiredCapacity(name, desired, false, now)
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

func putHook(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName", "LifecycleHookName"); err != nil {
		return nil, err
	}
	heartbeat, err := v.Int("HeartbeatTimeout", 0)
	if err != nil {
		return nil, err
	}
	return nil, c.PutHook(v.Get("AutoScalingGroupName"), cloud.Hook{
		Name: v.Get("LifecycleHookName"), Transition: v.Get("LifecycleTransition"), HeartbeatSeconds: heartbeat, Default: v.Get("DefaultResult"),
		Metadata: v.Get("NotificationMetadata"), Target: v.Get("NotificationTargetARN"),
	}, now)
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

// each does something with every instance of a call and answers the activities.
func each(v wire.Values, do func(id string) (cloud.Activity, error)) (any, error) {
	var activities []cloud.Activity
	for _, id := range v.List("InstanceIds.member") {
		a, err := do(id)
		if err != nil {
			return nil, err
		}
		activities = append(activities, a)
	}
	return activitiesShape(activities), nil
}

func enterStandby(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	return each(v, func(id string) (cloud.Activity, error) {
		return c.EnterStandby(id, v.Bool("ShouldDecrementDesiredCapacity", false), now)
	})
}

func exitStandby(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	return each(v, func(id string) (cloud.Activity, error) { return c.ExitStandby(id, now) })
}

func detachInstances(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	return each(v, func(id string) (cloud.Activity, error) {
		return c.Detach(id, v.Bool("ShouldDecrementDesiredCapacity", false), now)
	})
}

type asgRefreshID struct {
	InstanceRefreshID string `xml:"InstanceRefreshId"`
}

func startRefresh(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	p := v.Sub("Preferences")
	preferences := cloud.RefreshPreferences{Protected: p.Get("ScaleInProtectedInstances"), SkipMatching: p.Bool("SkipMatching", false)}
	if p.Has("MinHealthyPercentage") {
		percent, err := p.Int("MinHealthyPercentage", 0)
		if err != nil {
			return nil, err
		}
		preferences.MinHealthyPercentage = &percent
	}
	id, err := c.StartRefresh(v.Get("AutoScalingGroupName"), preferences, now)
	return asgRefreshID{id}, err
}

func cancelRefresh(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	id, err := c.CancelRefresh(v.Get("AutoScalingGroupName"), now)
	return asgRefreshID{id}, err
}
