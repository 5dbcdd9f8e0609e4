package api

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// autoScaling are the operations of EC2 Auto Scaling.
var autoScaling = map[string]Handler{
	"DescribeAutoScalingGroups":    describing(describeGroups),
	"DescribeAutoScalingInstances": describing(describeGroupInstances),
	"DescribeScalingActivities":    describing(describeActivities),
	"DescribeLaunchConfigurations": describing(describeConfigurations),
	"DescribeLifecycleHooks":       describing(describeHooks),
	"DescribeWarmPool":             describing(describeWarmPool),
	"DescribeInstanceRefreshes":    describing(describeRefreshes),
	"DescribeTags":                 describing(describeTags),

	"SetDesiredCapacity":                  changing(setDesiredCapacity),
	"CreateAutoScalingGroup":              changing(createGroup),
	"UpdateAutoScalingGroup":              changing(updateGroup),
	"DeleteAutoScalingGroup":              changing(deleteGroup),
	"LaunchInstances":                     launchInstances,
	"TerminateInstanceInAutoScalingGroup": changing(terminateInstances),
	"CompleteLifecycleAction":             changing(completeAction),
	"RecordLifecycleActionHeartbeat":      changing(recordHeartbeat),
	"PutLifecycleHook":                    changing(putHook),
	"DeleteLifecycleHook":                 changing(deleteHook),
	"PutWarmPool":                         changing(putPool),
	"DeleteWarmPool":                      changing(deletePool),
	"CreateOrUpdateTags":                  changing(putTags),
	"DeleteTags":                          changing(deleteTags),
	"SuspendProcesses":                    changing(suspendProcesses),
	"ResumeProcesses":                     changing(resumeProcesses),
	"SetInstanceProtection":               changing(setProtection),
	"SetInstanceHealth":                   changing(setHealth),
	"EnterStandby":                        changing(enterStandby),
	"ExitStandby":                         changing(exitStandby),
	"DetachInstances":                     changing(detachInstances),
	"StartInstanceRefresh":                changing(startRefresh),
	"CancelInstanceRefresh":               changing(cancelRefresh),
}

// upTo are the limits of a paged Auto Scaling operation.
func upTo(usual, most int) wire.Limits {
	return wire.Limits{Param: "MaxRecords", Default: usual, Min: 1, Max: most, BadToken: wire.InvalidNextToken}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingGroups.html
func describeGroups(c *cloud.Cloud, v wire.Values) (any, error) {
	limits := upTo(50, 100)
	names := v.List("AutoScalingGroupNames.member")
	if size, err := v.Int("MaxRecords", limits.Default); err != nil {
		return nil, err
	} else if len(names) > size {
		return nil, cloud.Errorf(400, "ValidationError", "The number of group names that may be passed in is limited to %d", size)
	}
	filters := v.Filters("Filters.member", "Values.member")
	if _, err := matchesTags(nil, filters); err != nil {
		return nil, err
	}
	var matching []cloud.GroupStatus
	for _, g := range c.Groups() {
		if len(names) > 0 && !slices.Contains(names, g.Spec.Name) {
			continue
		}
		ok, err := matchesTags(g.Spec.Tags, filters)
		if err != nil {
			return nil, err
		}
		if ok {
			matching = append(matching, g)
		}
	}
	page, next, err := wire.Page(v, "DescribeAutoScalingGroups", limits, matching)
	if err != nil {
		return nil, err
	}
	var answer struct {
		AutoScalingGroups []asgGroup `xml:"AutoScalingGroups>member"`
		NextToken         string     `xml:",omitempty"`
	}
	answer.NextToken = next
	for _, g := range page {
		answer.AutoScalingGroups = append(answer.AutoScalingGroups, groupShape(c, g, v.Bool("IncludeInstances", true)))
	}
	return answer, nil
}

// matchesTags: filters are ANDed, the values of one are ORed.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Filter.html
func matchesTags(tags map[string]string, filters []wire.Filter) (bool, error) {
	all := true
	for _, f := range filters { // each is read, so that an unknown one is refused whatever the others say
		ok, err := matchesTag(tags, f)
		if err != nil {
			return false, err
		}
		all = all && ok
	}
	return all, nil
}

func matchesTag(tags map[string]string, f wire.Filter) (bool, error) {
	if key, ok := strings.CutPrefix(f.Name, "tag:"); ok {
		value, has := tags[key]
		return has && slices.Contains(f.Values, value), nil
	}
	switch f.Name {
	case "tag-key":
		return slices.ContainsFunc(f.Values, func(k string) bool { _, has := tags[k]; return has }), nil
	case "tag-value":
		for _, value := range tags {
			if slices.Contains(f.Values, value) {
				return true, nil
			}
		}
		return false, nil
	}
	return false, cloud.Errorf(400, "ValidationError", "Filter type %s is not correct. Allowed Filter types are: tag-key tag-value tag:<tag-key>", f.Name)
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingInstances.html
func describeGroupInstances(c *cloud.Cloud, v wire.Values) (any, error) {
	ids := v.List("InstanceIds.member")
	if len(ids) > 50 {
		return nil, cloud.Errorf(400, "ValidationError", "The number of instance ids that may be passed in is limited to 50")
	}
	var matching []cloud.Instance
	for _, i := range c.Instances() {
		if i.Group != "" && !i.Gone && (len(ids) == 0 || slices.Contains(ids, i.ID)) {
			matching = append(matching, i)
		}
	}
	page, next, err := wire.Page(v, "DescribeAutoScalingInstances", upTo(50, 50), matching)
	if err != nil {
		return nil, err
	}
	var answer struct {
		AutoScalingInstances []asgInstance `xml:"AutoScalingInstances>member"`
		NextToken            string        `xml:",omitempty"`
	}
	answer.NextToken = next
	for _, i := range page {
		shape := instanceShape(i)
		shape.AutoScalingGroupName = i.Group
		shape.HealthStatus = strings.ToUpper(shape.HealthStatus) // This call writes HEALTHY, DescribeAutoScalingGroups Healthy.
		answer.AutoScalingInstances = append(answer.AutoScalingInstances, shape)
	}
	return answer, nil
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func describeActivities(c *cloud.Cloud, v wire.Values) (any, error) {
	group := v.Get("AutoScalingGroupName")
	if group != "" {
		if _, err := c.Group(group); err != nil {
			return nil, err
		}
	}
	keep, err := activityFilter(group, v.List("ActivityIds.member"), v.Filters("Filters.member", "Values.member"))
	if err != nil {
		return nil, err
	}
	matching := slices.DeleteFunc(c.Activities(group), func(a cloud.Activity) bool { return !keep(a) })
	page, next, err := wire.Page(v, "DescribeScalingActivities", upTo(100, 100), matching)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Activities []asgActivity `xml:"Activities>member"`
		NextToken  string        `xml:",omitempty"`
	}
	answer.NextToken = next
	for _, a := range page {
		answer.Activities = append(answer.Activities, activityShape(a))
	}
	return answer, nil
}

func activityFilter(group string, ids []string, filters []wire.Filter) (func(cloud.Activity) bool, error) {
	var (
		from, to time.Time
		statuses []string
	)
	for _, f := range filters {
		var err error
		switch {
		case len(f.Values) == 0:
			err = cloud.Errorf(400, "ValidationError", "Filter %s has no values", f.Name)
		case f.Name == "StartTimeLowerBound":
			from, err = filterTime(f)
		case f.Name == "StartTimeUpperBound":
			to, err = filterTime(f)
		case f.Name == "Status" && group != "":
			statuses = f.Values
		case f.Name == "Status":
			err = cloud.Errorf(400, "ValidationError", "The Status filter can only be used in combination with the AutoScalingGroupName parameter")
		default:
			err = cloud.Errorf(400, "ValidationError", "Filter type %s is not correct. Allowed Filter types are: StartTimeLowerBound StartTimeUpperBound Status", f.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return func(a cloud.Activity) bool {
		return (len(ids) == 0 || slices.Contains(ids, a.ID)) &&
			(len(statuses) == 0 || slices.Contains(statuses, a.StatusCode)) &&
			!a.Start.Before(from) && (to.IsZero() || !a.Start.After(to))
	}, nil
}

func filterTime(f wire.Filter) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, f.Values[0]); err == nil {
			return t, nil
		}
	}
	return time.Time{}, cloud.Errorf(400, "ValidationError", "Value %s of filter %s is not an ISO 8601 timestamp", f.Values[0], f.Name)
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeLaunchConfigurations.html
func describeConfigurations(c *cloud.Cloud, v wire.Values) (any, error) {
	names := v.List("LaunchConfigurationNames.member")
	var matching []cloud.LaunchConfiguration
	for _, lc := range c.Spec().LaunchConfigurations {
		if len(names) == 0 || slices.Contains(names, lc.Name) {
			matching = append(matching, lc)
		}
	}
	page, next, err := wire.Page(v, "DescribeLaunchConfigurations", upTo(50, 100), matching)
	if err != nil {
		return nil, err
	}
	var answer struct {
		LaunchConfigurations []asgConfiguration `xml:"LaunchConfigurations>member"`
		NextToken            string             `xml:",omitempty"`
	}
	answer.NextToken = next
	for _, lc := range page {
		answer.LaunchConfigurations = append(answer.LaunchConfigurations, configurationShape(c, lc))
	}
	return answer, nil
}

func configurationShape(c *cloud.Cloud, lc cloud.LaunchConfiguration) asgConfiguration {
	shape := asgConfiguration{
		LaunchConfigurationName: lc.Name,
		LaunchConfigurationARN:  "arn:aws:autoscaling:" + c.Region() + ":" + c.Account() + ":launchConfiguration:launchConfigurationName/" + lc.Name,
		ImageID:                 lc.Image, InstanceType: lc.Type, UserData: base64Of(lc.UserData), SpotPrice: lc.SpotPrice,
		CreatedTime: wire.Time{Time: c.Started()},
	}
	for _, d := range lc.Volumes {
		shape.BlockDeviceMappings = append(shape.BlockDeviceMappings,
			asgDevice{DeviceName: d.Device, Ebs: asgEBS{VolumeSize: d.SizeGiB, VolumeType: d.Type, DeleteOnTermination: true}})
	}
	return shape
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeLifecycleHooks.html
func describeHooks(c *cloud.Cloud, v wire.Values) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	g, err := c.Group(v.Get("AutoScalingGroupName"))
	if err != nil {
		return nil, err
	}
	names := v.List("LifecycleHookNames.member")
	var answer struct {
		LifecycleHooks []asgHook `xml:"LifecycleHooks>member"`
	}
	for _, h := range g.Spec.Hooks {
		if len(names) == 0 || slices.Contains(names, h.Name) {
			answer.LifecycleHooks = append(answer.LifecycleHooks, hookShape(g.Spec.Name, h))
		}
	}
	return answer, nil
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeWarmPool.html
func describeWarmPool(c *cloud.Cloud, v wire.Values) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	g, err := c.Group(v.Get("AutoScalingGroupName"))
	if err != nil {
		return nil, err
	}
	page, next, err := wire.Page(v, "DescribeWarmPool", upTo(50, 50), g.Warm)
	if err != nil {
		return nil, err
	}
	var answer struct {
		WarmPoolConfiguration *asgPool      `xml:",omitempty"`
		Instances             []asgInstance `xml:"Instances>member"`
		NextToken             string        `xml:",omitempty"`
	}
	answer.NextToken = next
	if g.Spec.WarmPool != nil {
		answer.WarmPoolConfiguration = poolShape(*g.Spec.WarmPool)
	}
	for _, i := range page {
		answer.Instances = append(answer.Instances, instanceShape(i))
	}
	return answer, nil
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeInstanceRefreshes.html
func describeRefreshes(c *cloud.Cloud, v wire.Values) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	g, err := c.Group(v.Get("AutoScalingGroupName"))
	if err != nil {
		return nil, err
	}
	ids := v.List("InstanceRefreshIds.member")
	matching := slices.DeleteFunc(g.Refreshes, func(r cloud.Refresh) bool { return len(ids) > 0 && !slices.Contains(ids, r.ID) })
	page, next, err := wire.Page(v, "DescribeInstanceRefreshes", upTo(50, 100), matching)
	if err != nil {
		return nil, err
	}
	var answer struct {
		InstanceRefreshes []asgRefresh `xml:"InstanceRefreshes>member"`
		NextToken         string       `xml:",omitempty"`
	}
	answer.NextToken = next
	for _, r := range page {
		answer.InstanceRefreshes = append(answer.InstanceRefreshes, refreshShape(g.Spec.Name, r))
	}
	return answer, nil
}

func refreshShape(group string, r cloud.Refresh) asgRefresh {
	healthy := 90
	if r.Preferences.MinHealthyPercentage != nil {
		healthy = *r.Preferences.MinHealthyPercentage
	}
	return asgRefresh{
		InstanceRefreshID: r.ID, AutoScalingGroupName: group, Status: r.Status, StatusReason: r.Reason, StartTime: wire.Time{Time: r.Start},
		EndTime: wire.At(r.End), PercentageComplete: r.Percent(), InstancesToUpdate: r.Left, Strategy: "Rolling",
		Preferences: asgPreferences{MinHealthyPercentage: healthy, ScaleInProtectedInstances: r.Preferences.Protected, SkipMatching: r.Preferences.SkipMatching},
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeTags.html
func describeTags(c *cloud.Cloud, v wire.Values) (any, error) {
	filters := v.Filters("Filters.member", "Values.member")
	for _, f := range filters {
		if _, known := tagFields(asgTag{})[f.Name]; !known {
			return nil, cloud.Errorf(400, "ValidationError", "Filter type %s is not correct. Allowed Filter types are: auto-scaling-group key value propagate-at-launch", f.Name)
		}
	}
	var matching []asgTag
	for _, g := range c.Groups() {
		for _, t := range groupShape(c, g, false).Tags {
			if tagMatches(t, filters) {
				matching = append(matching, t)
			}
		}
	}
	page, next, err := wire.Page(v, "DescribeTags", upTo(50, 100), matching)
	if err != nil {
		return nil, err
	}
	return struct {
		Tags      []asgTag `xml:"Tags>member"`
		NextToken string   `xml:",omitempty"`
	}{page, next}, nil
}

func tagMatches(t asgTag, filters []wire.Filter) bool {
	for _, f := range filters {
		if !slices.Contains(f.Values, tagFields(t)[f.Name]) {
			return false
		}
	}
	return true
}

func tagFields(t asgTag) map[string]string {
	return map[string]string{"auto-scaling-group": t.ResourceID, "key": t.Key, "value": t.Value, "propagate-at-launch": strconv.FormatBool(t.PropagateAtLaunch)}
}
