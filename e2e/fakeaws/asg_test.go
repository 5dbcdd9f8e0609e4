package fakeaws_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

type counts = map[fakeaws.LifecycleState]int

func desired(n int) *int { return &n }

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
func TestSetDesiredCapacity(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Min: 1, Max: 3, Type: "m5.large", Zones: []string{"eu-west-1a", "eu-west-1b"}})
	set := func(group string, n int32, cooldown bool) error {
		_, err := b.asg.SetDesiredCapacity(b.ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: &group, DesiredCapacity: &n, HonorCooldown: &cooldown})
		return err
	}
	if err := set("web", 3, false); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{fakeaws.InService: 3})
	wantError(t, set("web", 4, false), 400, "ValidationError", "New SetDesiredCapacity value 4 is above max value 3 for the AutoScalingGroup.")
	wantError(t, set("web", 0, false), 400, "ValidationError", "New SetDesiredCapacity value 0 is below min value 1 for the AutoScalingGroup.")
	wantError(t, set("none", 1, false), 400, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup 'none' not found")
	wantError(t, set("web", 2, true), 400, "ScalingActivityInProgress", "Scaling activity "+b.lastActivity("web").ID+" is in progress and blocks this action")
	var typed *types.ScalingActivityInProgressFault
	if !errors.As(set("web", 2, true), &typed) {
		t.Error("the SDK does not know the error as ScalingActivityInProgressFault")
	}
}

// lastActivity is the one that began last.
func (b *bed) lastActivity(group string) fakeaws.Activity {
	return slices.MaxFunc(b.Activities(group), func(x, y fakeaws.Activity) int { return x.Start.Compare(y.Start) })
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingGroups.html
func TestDescribeAutoScalingGroups(t *testing.T) {
	const key = "k8s.io/cluster-autoscaler/enabled"
	percent := 25
	b := startSpec(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "base", ID: "lt-0123456789abcdef0", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}}}},
		Groups: []fakeaws.Group{
			{Name: "web", Min: 1, Max: 5, Desired: desired(2), Type: "m5.large", Zones: []string{"eu-west-1a", "eu-west-1b"}, Tags: map[string]string{key: "true", "team": "a"}, Suspended: []string{"AZRebalance"}},
			{Name: "mixed", Max: 5, Tags: map[string]string{key: "true", "team": "b"}, MixedInstances: &fakeaws.MixedInstances{
				LaunchTemplate: fakeaws.TemplateRef{Name: "base", Version: "$Latest"}, OnDemandBase: 1, OnDemandPercentAbove: &percent,
				Overrides: []fakeaws.Override{{Type: "m5.large", Weight: 2}, {Requirements: &fakeaws.Requirements{VCPUs: fakeaws.Range{Min: ptr(2.)}, MemoryMiB: fakeaws.Range{Min: ptr(8192.), Max: ptr(16384.)}}}},
			}},
			{Name: "warm", Max: 2, Type: "t3.micro", WarmPool: &fakeaws.WarmPool{MinSize: 1, State: "Running"}},
		},
	})
	b.waitStates("web", counts{fakeaws.InService: 2})
	b.waitStates("warm", counts{cloud.WarmedRunning: 2})

	names := func(in autoscaling.DescribeAutoScalingGroupsInput) []string {
		t.Helper()
		var names []string
		for _, g := range must(b.asg.DescribeAutoScalingGroups(b.ctx, &in))(t).AutoScalingGroups {
			names = append(names, *g.AutoScalingGroupName)
		}
		return names
	}
	filter := func(name string, values ...string) types.Filter { return types.Filter{Name: &name, Values: values} }
	for _, c := range []struct {
		in   autoscaling.DescribeAutoScalingGroupsInput
		want []string
	}{
		{autoscaling.DescribeAutoScalingGroupsInput{}, []string{"web", "mixed", "warm"}},
		{autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"web", "none"}}, []string{"web"}},
		{autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{filter("tag:"+key, "true")}}, []string{"web", "mixed"}},
		{autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{filter("tag-key", key), filter("tag:team", "b", "c")}}, []string{"mixed"}},
		{autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{filter("tag-value", "a")}}, []string{"web"}},
	} {
		if diff := cmp.Diff(c.want, names(c.in)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.in, diff)
		}
	}
	_, err := b.asg.DescribeAutoScalingGroups(b.ctx, &autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{filter("name", "web")}})
	wantError(t, err, 400, "ValidationError", "Filter type name is not correct. Allowed Filter types are: tag-key tag-value tag:<tag-key>")

	all := must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t).AutoScalingGroups
	web, mixed, warm := all[0], all[1], all[2]
	if *web.MinSize != 1 || *web.MaxSize != 5 || *web.DesiredCapacity != 2 || *web.LaunchTemplate.LaunchTemplateName != "web" || *web.LaunchTemplate.Version != "$Latest" ||
		len(web.AvailabilityZones) != 2 || *web.SuspendedProcesses[0].ProcessName != "AZRebalance" || len(web.Tags) != 2 || *web.Tags[0].Key != key || web.CreatedTime == nil {
		t.Errorf("web: %+v", web)
	}
	i := web.Instances[0]
	if i.LifecycleState != types.LifecycleStateInService || *i.HealthStatus != "Healthy" || *i.InstanceType != "m5.large" || *i.AvailabilityZone != "eu-west-1a" ||
		*i.LaunchTemplate.Version != "1" || *i.ProtectedFromScaleIn || *i.AvailabilityZoneId != "euw1-az1" {
		t.Errorf("instance: %+v", i)
	}
	d, o := mixed.MixedInstancesPolicy.InstancesDistribution, mixed.MixedInstancesPolicy.LaunchTemplate.Overrides
	if *d.OnDemandBaseCapacity != 1 || *d.OnDemandPercentageAboveBaseCapacity != 25 || *o[0].WeightedCapacity != "2" || *o[0].InstanceType != "m5.large" ||
		*o[1].InstanceRequirements.VCpuCount.Min != 2 || *o[1].InstanceRequirements.MemoryMiB.Max != 16384 ||
		*mixed.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateId != "lt-0123456789abcdef0" {
		t.Errorf("mixed: %+v", mixed.MixedInstancesPolicy)
	}
	if *warm.WarmPoolSize != 2 || warm.WarmPoolConfiguration.PoolState != types.WarmPoolStateRunning || len(warm.Instances) != 0 {
		t.Errorf("warm: %+v", warm)
	}
	none := must(b.asg.DescribeAutoScalingGroups(b.ctx, &autoscaling.DescribeAutoScalingGroupsInput{IncludeInstances: ptr(false)}))(t)
	if len(none.AutoScalingGroups[0].Instances) != 0 {
		t.Error("IncludeInstances=false has instances")
	}
}

// Pages of 50, and of 100 at most; every group comes once.
func TestPaging(t *testing.T) {
	var groups []fakeaws.Group
	for n := range 120 {
		groups = append(groups, fakeaws.Group{Name: fmt.Sprintf("g%03d", n), Max: 1, Type: "t3.micro"})
	}
	b := start(t, groups...)
	pages, seen := 0, map[string]bool{}
	p := autoscaling.NewDescribeAutoScalingGroupsPaginator(b.asg, &autoscaling.DescribeAutoScalingGroupsInput{})
	for p.HasMorePages() {
		page := must(p.NextPage(b.ctx))(t)
		pages++
		for _, g := range page.AutoScalingGroups {
			seen[*g.AutoScalingGroupName] = true
		}
	}
	if pages != 3 || len(seen) != 120 {
		t.Errorf("%d groups on %d pages, want 120 on 3", len(seen), pages)
	}
	_, err := b.asg.DescribeAutoScalingGroups(b.ctx, &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: ptr(int32(101))})
	wantError(t, err, 400, "ValidationError", "1 validation error detected: Value '101' at 'maxRecords' failed to satisfy constraint: Member must have value less than or equal to 100")
	_, err = b.asg.DescribeAutoScalingGroups(b.ctx, &autoscaling.DescribeAutoScalingGroupsInput{NextToken: ptr("none")})
	wantError(t, err, 400, "InvalidNextToken", "The NextToken value is not valid.")
	_, err = b.asg.DescribeAutoScalingInstances(b.ctx, &autoscaling.DescribeAutoScalingInstancesInput{MaxRecords: ptr(int32(51))})
	wantError(t, err, 400, "ValidationError", "1 validation error detected: Value '51' at 'maxRecords' failed to satisfy constraint: Member must have value less than or equal to 50")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingInstances.html
func TestDescribeAutoScalingInstances(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 3, Desired: desired(2), Type: "m5.large"})
	i := b.waitStates("web", counts{fakeaws.InService: 2})[1]
	out := must(b.asg.DescribeAutoScalingInstances(b.ctx, &autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{i.ID, "i-0000000000000dead"}}))(t)
	if len(out.AutoScalingInstances) != 1 {
		t.Fatalf("%+v", out.AutoScalingInstances)
	}
	if got := out.AutoScalingInstances[0]; *got.AutoScalingGroupName != "web" || *got.InstanceId != i.ID || *got.LifecycleState != "InService" || *got.HealthStatus != "HEALTHY" {
		t.Errorf("%+v", got)
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func TestDescribeScalingActivities(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 3, Desired: desired(1), Type: "m5.large"}, fakeaws.Group{Name: "other", Max: 3, Desired: desired(1), Type: "m5.large", Hooks: []fakeaws.Hook{{Name: "up", Transition: "launch"}}})
	b.waitStates("web", counts{fakeaws.InService: 1})
	b.waitStates("other", counts{fakeaws.PendingWait: 1})
	if err := b.SetShortages(fakeaws.Shortage{}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetDesired("web", 2); err != nil {
		t.Fatal(err)
	}
	describe := func(in autoscaling.DescribeScalingActivitiesInput) []types.Activity {
		t.Helper()
		return must(b.asg.DescribeScalingActivities(b.ctx, &in))(t).Activities
	}
	var web []types.Activity
	for len(web) < 2 { // Nothing tells of a failed launch but its activity; each look brings the cloud up to now.
		web = describe(autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: ptr("web")})
	}
	if web[0].StatusCode != types.ScalingActivityStatusCodeFailed || web[1].StatusCode != types.ScalingActivityStatusCodeSuccessful || web[1].EndTime == nil || *web[1].Progress != 100 || web[0].Details == nil {
		t.Errorf("newest first: %+v", web)
	}
	all := describe(autoscaling.DescribeScalingActivitiesInput{})
	if all[0].StatusCode != types.ScalingActivityStatusCodeMidLifecycleAction || *all[0].AutoScalingGroupName != "other" || all[0].EndTime != nil {
		t.Errorf("those in progress do not come first: %+v", all[0])
	}
	status := types.Filter{Name: ptr("Status"), Values: []string{"Successful"}}
	if got := describe(autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: ptr("web"), Filters: []types.Filter{status}}); len(got) != 1 || *got[0].ActivityId != *web[1].ActivityId {
		t.Errorf("by status: %+v", got)
	}
	from := types.Filter{Name: ptr("StartTimeLowerBound"), Values: []string{time.Now().Add(time.Hour).Format(time.RFC3339)}}
	if got := describe(autoscaling.DescribeScalingActivitiesInput{Filters: []types.Filter{from}}); len(got) != 0 {
		t.Errorf("from an hour on: %+v", got)
	}
	if got := describe(autoscaling.DescribeScalingActivitiesInput{ActivityIds: []string{*web[1].ActivityId, "none"}}); len(got) != 1 {
		t.Errorf("by id: %+v", got)
	}
	_, err := b.asg.DescribeScalingActivities(b.ctx, &autoscaling.DescribeScalingActivitiesInput{Filters: []types.Filter{status}})
	wantError(t, err, 400, "ValidationError", "The Status filter can only be used in combination with the AutoScalingGroupName parameter")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeLaunchConfigurations.html
func TestDescribeLaunchConfigurations(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{
		LaunchConfigurations: []fakeaws.LaunchConfiguration{{Name: "old", Type: "m5.large", Image: "ami-1", UserData: "#!/bin/sh", Volumes: []fakeaws.Volume{{Device: "/dev/xvda", SizeGiB: 50, Type: "gp3"}}}},
		Images:               []fakeaws.Image{{ID: "ami-1"}},
		Groups:               []fakeaws.Group{{Name: "web", Max: 1, Desired: desired(1), LaunchConfiguration: "old"}},
	})
	out := must(b.asg.DescribeLaunchConfigurations(b.ctx, &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{"old"}}))(t)
	lc := out.LaunchConfigurations[0]
	if *lc.InstanceType != "m5.large" || *lc.ImageId != "ami-1" || *lc.UserData != "IyEvYmluL3No" || *lc.BlockDeviceMappings[0].Ebs.VolumeSize != 50 {
		t.Errorf("%+v", lc)
	}
	b.waitStates("web", counts{fakeaws.InService: 1})
	_, err := b.asg.LaunchInstances(b.ctx, &autoscaling.LaunchInstancesInput{AutoScalingGroupName: ptr("web"), RequestedCapacity: ptr(int32(1))})
	wantError(t, err, 400, "ValidationError", "LaunchInstances is not supported for Auto Scaling groups that use launch configurations")
}

// Hooks over the wire: described, too early, waited for, beaten, completed, too late.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeLifecycleHooks.html
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RecordLifecycleActionHeartbeat.html
func TestLifecycleHooks(t *testing.T) {
	timing := quick
	timing.Terminating = fakeaws.Seconds(1)
	b := startSpec(t, fakeaws.Spec{Timing: timing, Groups: []fakeaws.Group{{Name: "web", Max: 3, Desired: desired(1), Type: "m5.large", Hooks: []fakeaws.Hook{
		{Name: "windlass", Transition: "terminate", HeartbeatSeconds: 300, Default: "CONTINUE", Metadata: "x"}, {Name: "up", Transition: "launch"},
	}}}})
	hooks := must(b.asg.DescribeLifecycleHooks(b.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: ptr("web")}))(t).LifecycleHooks
	if h := hooks[0]; len(hooks) != 2 || *h.LifecycleHookName != "windlass" || *h.HeartbeatTimeout != 300 || *h.GlobalTimeout != 30000 || *h.DefaultResult != "CONTINUE" ||
		*h.LifecycleTransition != "autoscaling:EC2_INSTANCE_TERMINATING" || *h.NotificationMetadata != "x" {
		t.Errorf("%+v", hooks)
	}
	if up := hooks[1]; *up.HeartbeatTimeout != 3600 || *up.GlobalTimeout != 172800 || *up.DefaultResult != "ABANDON" {
		t.Errorf("defaults: %+v", up)
	}
	id := b.waitStates("web", counts{fakeaws.PendingWait: 1})[0].ID
	complete := func(hook string) error {
		_, err := b.asg.CompleteLifecycleAction(b.ctx, &autoscaling.CompleteLifecycleActionInput{AutoScalingGroupName: ptr("web"), LifecycleHookName: &hook, InstanceId: &id, LifecycleActionResult: ptr("CONTINUE")})
		return err
	}
	if err := complete("up"); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{fakeaws.InService: 1})
	must(b.asg.TerminateInstanceInAutoScalingGroup(b.ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &id, ShouldDecrementDesiredCapacity: ptr(true)}))(t)
	none := "No active Lifecycle Action found with instance ID " + id
	b.waitStates("web", counts{fakeaws.Terminating: 1})
	wantError(t, complete("windlass"), 400, "ValidationError", none)
	i := b.waitStates("web", counts{fakeaws.TerminatingWait: 1})[0]
	must(b.asg.RecordLifecycleActionHeartbeat(b.ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: ptr("web"), LifecycleHookName: ptr("windlass"), LifecycleActionToken: &i.Waiting[0].Token,
	}))(t)
	if now, err := b.Instance(id); err != nil || now.Waiting[0].Beats != 1 || !now.Waiting[0].Until.After(i.Waiting[0].Until) {
		t.Errorf("after a heartbeat: %+v, %v", now.Waiting, err)
	}
	if err := complete("windlass"); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{})
	wantError(t, complete("windlass"), 400, "ValidationError", none)
	_, err := b.asg.RecordLifecycleActionHeartbeat(b.ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: ptr("web"), LifecycleHookName: ptr("windlass"), InstanceId: &id})
	wantError(t, err, 400, "ValidationError", none)
	must(b.asg.PutLifecycleHook(b.ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: ptr("web"), LifecycleHookName: ptr("late"), LifecycleTransition: ptr("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: ptr(int32(60))}))(t)
	must(b.asg.DeleteLifecycleHook(b.ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: ptr("web"), LifecycleHookName: ptr("windlass")}))(t)
	hooks = must(b.asg.DescribeLifecycleHooks(b.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: ptr("web"), LifecycleHookNames: []string{"late", "windlass"}}))(t).LifecycleHooks
	if len(hooks) != 1 || *hooks[0].GlobalTimeout != 6000 {
		t.Errorf("%+v", hooks)
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
func TestTerminateInstanceInAutoScalingGroup(t *testing.T) {
	timing := quick
	timing.Terminating = fakeaws.Seconds(30)
	b := startSpec(t, fakeaws.Spec{Timing: timing, Groups: []fakeaws.Group{{Name: "web", Min: 1, Max: 5, Desired: desired(4), Type: "m5.large", ProtectNewInstances: true}}})
	all := b.waitStates("web", counts{fakeaws.InService: 4})
	end := func(in autoscaling.TerminateInstanceInAutoScalingGroupInput) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
		return b.asg.TerminateInstanceInAutoScalingGroup(b.ctx, &in)
	}
	one := must(end(autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &all[0].ID, ShouldDecrementDesiredCapacity: ptr(true)}))(t)
	if a := one.Activity; a == nil || a.StatusCode != types.ScalingActivityStatusCodeInProgress || *a.Description != "Terminating EC2 instance: "+all[0].ID || *a.AutoScalingGroupName != "web" || a.Cause == nil {
		t.Errorf("%+v", a)
	}
	_, err := end(autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &all[0].ID, ShouldDecrementDesiredCapacity: ptr(true)})
	wantError(t, err, 400, "ScalingActivityInProgress", "Scaling activity "+*one.Activity.ActivityId+" is in progress and blocks this action")
	several := must(end(autoscaling.TerminateInstanceInAutoScalingGroupInput{AutoScalingGroupName: ptr("web"), InstanceIds: []string{all[1].ID, all[2].ID}, ShouldDecrementDesiredCapacity: ptr(true)}))(t)
	if len(several.Activities) != 2 || several.Activity != nil {
		t.Errorf("%+v", several)
	}
	_, err = end(autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &all[3].ID, ShouldDecrementDesiredCapacity: ptr(true)})
	wantError(t, err, 400, "ValidationError", "Currently, desiredSize equals minSize (1). Terminating instance without replacement will violate group's min size constraint. "+
		"Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.")
	_, err = end(autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceIds: []string{all[3].ID}, ShouldDecrementDesiredCapacity: ptr(false)})
	wantError(t, err, 400, "ValidationError", "AutoScalingGroupName is required when using InstanceIds")
	_, err = end(autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: ptr("i-0000000000000dead"), ShouldDecrementDesiredCapacity: ptr(false)})
	wantError(t, err, 400, "ValidationError", "Instance Id not found - No managed instance found for instance ID: i-0000000000000dead")
	_, err = end(autoscaling.TerminateInstanceInAutoScalingGroupInput{AutoScalingGroupName: ptr("web"), InstanceIds: make([]string, 101), ShouldDecrementDesiredCapacity: ptr(false)})
	wantError(t, err, 400, "ValidationError", "1 validation error detected: Value at 'instanceIds' failed to satisfy constraint: Member must have length less than or equal to 100")
	// Without decrement another one is launched.
	must(end(autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &all[3].ID, ShouldDecrementDesiredCapacity: ptr(false)}))(t)
	b.waitStates("web", counts{fakeaws.Terminating: 4, fakeaws.InService: 1})
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchInstances.html
func TestLaunchInstances(t *testing.T) {
	timing := quick
	timing.LaunchInstances = fakeaws.Seconds(.2)
	b := startSpec(t, fakeaws.Spec{Timing: timing, Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large", Zones: []string{"eu-west-1a", "eu-west-1b"}}}})
	in := &autoscaling.LaunchInstancesInput{
		AutoScalingGroupName: ptr("web"), ClientToken: ptr("0123456789abcdef0123456789abcdef"), RequestedCapacity: ptr(int32(3)), AvailabilityZones: []string{"eu-west-1b"}, RetryStrategy: types.RetryStrategyNone,
	}
	if err := b.SetShortages(fakeaws.Shortage{Zone: "eu-west-1b", Left: 2}); err != nil {
		t.Fatal(err)
	}
	var (
		first *autoscaling.LaunchInstancesOutput
		err   error
		calls sync.WaitGroup
	)
	calls.Go(func() { first, err = b.asg.LaunchInstances(b.ctx, in) })
	var busy error
	for busy == nil { // Until the first call has come in, ours would be the first: ask with another capacity, which never launches.
		var mismatch *types.IdempotentParameterMismatchError
		other := *in
		other.RequestedCapacity = ptr(int32(6))
		if _, err := b.asg.LaunchInstances(b.ctx, &other); errors.As(err, &mismatch) {
			_, busy = b.asg.LaunchInstances(b.ctx, in)
		}
	}
	wantError(t, busy, 500, "IdempotentCallInProgress", "A request with the client token '0123456789abcdef0123456789abcdef' is in progress")
	calls.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if l := first.Instances[0]; len(first.Instances) != 1 || len(l.InstanceIds) != 2 || *l.AvailabilityZone != "eu-west-1b" || *l.AvailabilityZoneId != "euw1-az2" || *l.InstanceType != "m5.large" || *l.MarketType != "OnDemand" {
		t.Errorf("launched %+v", first.Instances)
	}
	if e := first.Errors[0]; len(first.Errors) != 1 || *e.ErrorCode != "InsufficientInstanceCapacity" || *e.AvailabilityZone != "eu-west-1b" || *e.ErrorMessage == "" {
		t.Errorf("errors %+v", first.Errors)
	}
	again := must(b.asg.LaunchInstances(b.ctx, in))(t)
	if diff := cmp.Diff(first.Instances[0].InstanceIds, again.Instances[0].InstanceIds); diff != "" {
		t.Errorf("the same token (-first +again):\n%s", diff)
	}
	if g, _ := b.Group("web"); g.Desired != 2 {
		t.Errorf("desired %d, want 2", g.Desired)
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeWarmPool.html
func TestDescribeWarmPool(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 3, Type: "m5.large", WarmPool: &fakeaws.WarmPool{ReuseOnScaleIn: true}})
	b.waitStates("web", counts{cloud.WarmedStopped: 3})
	out := must(b.asg.DescribeWarmPool(b.ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: ptr("web"), MaxRecords: ptr(int32(2))}))(t)
	if len(out.Instances) != 2 || out.NextToken == nil || out.Instances[0].LifecycleState != types.LifecycleStateWarmedStopped ||
		out.WarmPoolConfiguration.PoolState != types.WarmPoolStateStopped || !*out.WarmPoolConfiguration.InstanceReusePolicy.ReuseOnScaleIn {
		t.Errorf("%+v", out)
	}
	id := *out.Instances[0].InstanceId
	_, err := b.asg.TerminateInstanceInAutoScalingGroup(b.ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &id, ShouldDecrementDesiredCapacity: ptr(false)})
	wantError(t, err, 400, "ValidationError", "The instance "+id+" is in the warm pool of the group: this operation is not supported for instances in a warm pool.")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeInstanceRefreshes.html
func TestInstanceRefresh(t *testing.T) {
	timing := quick
	timing.Shutdown = fakeaws.Seconds(.3)
	b := startSpec(t, fakeaws.Spec{Timing: timing, Groups: []fakeaws.Group{{Name: "web", Max: 3, Desired: desired(2), Type: "m5.large"}}})
	b.waitStates("web", counts{fakeaws.InService: 2})
	id := must(b.asg.StartInstanceRefresh(b.ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: ptr("web"), Preferences: &types.RefreshPreferences{MinHealthyPercentage: ptr(int32(50))}}))(t).InstanceRefreshId
	_, err := b.asg.StartInstanceRefresh(b.ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: ptr("web")})
	wantError(t, err, 400, "InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	describe := func() types.InstanceRefresh {
		return must(b.asg.DescribeInstanceRefreshes(b.ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: ptr("web"), InstanceRefreshIds: []string{*id}}))(t).InstanceRefreshes[0]
	}
	r := describe()
	if r.Status != types.InstanceRefreshStatusInProgress || *r.Preferences.MinHealthyPercentage != 50 || r.EndTime != nil {
		t.Errorf("%+v", r)
	}
	for r.Status == types.InstanceRefreshStatusInProgress && b.ctx.Err() == nil {
		r = describe()
	}
	if r.Status != types.InstanceRefreshStatusSuccessful || *r.PercentageComplete != 100 || *r.InstancesToUpdate != 0 {
		t.Errorf("%+v", r)
	}
	_, err = b.asg.CancelInstanceRefresh(b.ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: ptr("web")})
	wantError(t, err, 400, "ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group web")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SuspendProcesses.html, …/API_ResumeProcesses.html
func TestSuspendAndResume(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 3, Type: "m5.large"})
	suspended := func() int {
		return len(must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t).AutoScalingGroups[0].SuspendedProcesses)
	}
	must(b.asg.SuspendProcesses(b.ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: ptr("web"), ScalingProcesses: []string{"Launch", "AZRebalance"}}))(t)
	if n := suspended(); n != 2 {
		t.Errorf("%d suspended, want 2", n)
	}
	must(b.asg.ResumeProcesses(b.ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: ptr("web")}))(t)
	if n := suspended(); n != 0 {
		t.Errorf("%d suspended, want none", n)
	}
	_, err := b.asg.SuspendProcesses(b.ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: ptr("web"), ScalingProcesses: []string{"Sleep"}})
	wantError(t, err, 400, "ValidationError", "Invalid scaling process: Sleep")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateOrUpdateTags.html
func TestTags(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 3, Type: "m5.large", Tags: map[string]string{"team": "a", "kept": "b"}})
	put := func(group, key, value string, propagate bool) error {
		_, err := b.asg.CreateOrUpdateTags(b.ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []types.Tag{{
			ResourceId: ptr(group), ResourceType: ptr("auto-scaling-group"), Key: ptr(key), Value: ptr(value), PropagateAtLaunch: &propagate}}})
		return err
	}
	for _, err := range []error{put("web", "team", "c", true), put("web", "owner", "me", false), put("web", "owner", "you", false)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, tag := range must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t).AutoScalingGroups[0].Tags {
		got[*tag.Key] = fmt.Sprint(*tag.Value, " ", *tag.PropagateAtLaunch)
	}
	if diff := cmp.Diff(map[string]string{"team": "c true", "kept": "b true", "owner": "you false"}, got); diff != "" {
		t.Error(diff)
	}
	wantError(t, put("gone", "owner", "me", false), 400, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup 'gone' not found")
}

// Operations around protection, health, standby and detaching.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnterStandby.html and its neighbours
func TestInstanceOperations(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 4, Desired: desired(2), Type: "m5.large", Tags: map[string]string{"k": "v"}})
	all := b.waitStates("web", counts{fakeaws.InService: 2})
	id := []string{all[0].ID}
	must(b.asg.SetInstanceProtection(b.ctx, &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: ptr("web"), InstanceIds: id, ProtectedFromScaleIn: ptr(true)}))(t)
	if i, _ := b.Instance(id[0]); !i.Protected {
		t.Error("not protected")
	}
	must(b.asg.EnterStandby(b.ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: ptr("web"), InstanceIds: id, ShouldDecrementDesiredCapacity: ptr(true)}))(t)
	b.waitStates("web", counts{fakeaws.InService: 1, fakeaws.Standby: 1})
	must(b.asg.ExitStandby(b.ctx, &autoscaling.ExitStandbyInput{AutoScalingGroupName: ptr("web"), InstanceIds: id}))(t)
	b.waitStates("web", counts{fakeaws.InService: 2})
	must(b.asg.SetInstanceHealth(b.ctx, &autoscaling.SetInstanceHealthInput{InstanceId: &all[1].ID, HealthStatus: ptr("Unhealthy")}))(t)
	must(b.asg.DetachInstances(b.ctx, &autoscaling.DetachInstancesInput{AutoScalingGroupName: ptr("web"), InstanceIds: id, ShouldDecrementDesiredCapacity: ptr(true)}))(t)
	left := b.waitStates("web", counts{fakeaws.InService: 1})
	if left[0].ID == all[0].ID || left[0].ID == all[1].ID {
		t.Errorf("%s is still there", left[0].ID)
	}
	must(b.asg.UpdateAutoScalingGroup(b.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: ptr("web"), MaxSize: ptr(int32(9)), DesiredCapacity: ptr(int32(3))}))(t)
	b.waitStates("web", counts{fakeaws.InService: 3})
	tags := must(b.asg.DescribeTags(b.ctx, &autoscaling.DescribeTagsInput{Filters: []types.Filter{{Name: ptr("auto-scaling-group"), Values: []string{"web"}}}}))(t).Tags
	if len(tags) != 1 || *tags[0].Key != "k" || *tags[0].ResourceId != "web" {
		t.Errorf("%+v", tags)
	}
}

// A required parameter, an unknown operation and a missing signature.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
func TestCommonErrors(t *testing.T) {
	b := start(t)
	_, err := b.asg.DescribePolicies(b.ctx, nil)
	wantError(t, err, 400, "InvalidAction", "Could not find operation DescribePolicies for version 2011-01-01")
	_, err = b.asg.SetDesiredCapacity(b.ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: ptr(""), DesiredCapacity: ptr(int32(1))})
	wantError(t, err, 400, "ValidationError", "1 validation error detected: Value null at 'autoScalingGroupName' failed to satisfy constraint: Member must not be null")
	status, body := b.get(context.Background(), b.URL()+"/?Action=DescribeAutoScalingGroups&Version=2011-01-01")
	if status != 403 || !contains(body, "<Code>MissingAuthenticationToken</Code>") {
		t.Errorf("unsigned: %d %s", status, body)
	}
}
