package fakeaws_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// refused checks the code of an error, and that its text has a word that names the culprit.
func refused(t *testing.T, err error, code, word string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), word) {
		t.Errorf("got %v\nwant the error %s with the word %q", err, code, word)
	}
}

func (b *bed) group(name string) types.AutoScalingGroup {
	b.t.Helper()
	out := must(b.asg.DescribeAutoScalingGroups(b.ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}}))(b.t)
	if len(out.AutoScalingGroups) != 1 {
		b.t.Fatalf("%d groups named %s", len(out.AutoScalingGroups), name)
	}
	return out.AutoScalingGroups[0]
}

// Minimum, maximum and desired capacity are judged together, and a call that fails changes nothing.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
func TestUpdateAutoScalingGroup(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "big", Versions: []fakeaws.TemplateVersion{{Type: "m5.4xlarge"}}}},
		Groups:          []fakeaws.Group{{Name: "web", Min: 1, Max: 4, Desired: desired(2), Type: "m5.large"}},
	})
	b.waitStates("web", counts{fakeaws.InService: 2})
	update := func(in autoscaling.UpdateAutoScalingGroupInput) error {
		in.AutoScalingGroupName = ptr("web")
		_, err := b.asg.UpdateAutoScalingGroup(b.ctx, &in)
		return err
	}
	declared := func() fakeaws.GroupStatus { // Without instances: they go on booting.
		g := must(b.Group("web"))(t)
		g.Instances = nil
		return g
	}
	before := declared()
	for _, c := range []struct {
		in   autoscaling.UpdateAutoScalingGroupInput
		word string
	}{
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), DesiredCapacity: ptr(int32(10))}, "Desired capacity:10 must be between the specified min size:1 and max size:9"},
		{autoscaling.UpdateAutoScalingGroupInput{MinSize: ptr(int32(3)), DesiredCapacity: ptr(int32(2))}, "Desired capacity:2 must be between"},
		{autoscaling.UpdateAutoScalingGroupInput{MinSize: ptr(int32(5))}, "Max bound, 4, must be greater than or equal to min bound, 5"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), PlacementGroup: ptr("together")}, "PlacementGroup"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), HealthCheckType: ptr("ELB")}, "HealthCheckType"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), DefaultInstanceWarmup: ptr(int32(9))}, "DefaultInstanceWarmup"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), AvailabilityZones: []string{"us-east-1a"}}, "us-east-1a"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), VPCZoneIdentifier: ptr("subnet-1")}, "subnet-1"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), TerminationPolicies: []string{"Youngest"}}, "Youngest"},
		{autoscaling.UpdateAutoScalingGroupInput{MaxSize: ptr(int32(9)), LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: ptr("none")}}, "launch template"},
	} {
		err := update(c.in)
		var api smithy.APIError
		if !errors.As(err, &api) || !strings.Contains(api.ErrorMessage(), c.word) {
			t.Errorf("got %v, want an error with %q", err, c.word)
		}
		if diff := cmp.Diff(before, declared()); diff != "" {
			t.Errorf("%s: the call failed, and the group is another (-before +after):\n%s", c.word, diff)
		}
	}
	if err := update(autoscaling.UpdateAutoScalingGroupInput{
		MinSize: ptr(int32(5)), MaxSize: ptr(int32(6)), DefaultCooldown: ptr(int32(60)), AvailabilityZones: []string{"eu-west-1a", "eu-west-1b"}, TerminationPolicies: []string{"NewestInstance"},
		NewInstancesProtectedFromScaleIn: ptr(true), CapacityRebalance: ptr(true), MaxInstanceLifetime: ptr(int32(86400)), HealthCheckType: ptr("EC2"), LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: ptr("big"), Version: ptr("1")},
	}); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{fakeaws.InService: 5}) // To the new minimum.
	g := b.group("web")
	if *g.MinSize != 5 || *g.MaxSize != 6 || *g.DefaultCooldown != 60 || len(g.AvailabilityZones) != 2 || g.TerminationPolicies[0] != "NewestInstance" || !*g.NewInstancesProtectedFromScaleIn ||
		!*g.CapacityRebalance || *g.MaxInstanceLifetime != 86400 || *g.LaunchTemplate.LaunchTemplateName != "big" {
		t.Errorf("%+v", g)
	}
	if i := g.Instances[4]; *i.InstanceType != "m5.4xlarge" || !*i.ProtectedFromScaleIn {
		t.Errorf("launched from the new template: %+v", i)
	}
	if err := update(autoscaling.UpdateAutoScalingGroupInput{MinSize: ptr(int32(0)), MaxSize: ptr(int32(0)), DesiredCapacity: ptr(int32(0)), NewInstancesProtectedFromScaleIn: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	if g := b.group("web"); *g.DesiredCapacity != 0 || *g.DefaultCooldown != 60 {
		t.Errorf("what is not named is not kept: %+v", g)
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
func TestPutLifecycleHook(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 1, Type: "m5.large", Hooks: []fakeaws.Hook{{Name: "short", Transition: "launch", HeartbeatSeconds: 5}}})
	put := func(in autoscaling.PutLifecycleHookInput) error {
		in.AutoScalingGroupName = ptr("web")
		_, err := b.asg.PutLifecycleHook(b.ctx, &in)
		return err
	}
	refused(t, put(autoscaling.PutLifecycleHookInput{LifecycleHookName: ptr("down")}), "ValidationError", "LifecycleTransition")
	whole := autoscaling.PutLifecycleHookInput{
		LifecycleHookName: ptr("down"), LifecycleTransition: ptr(cloud.OnTerminate), HeartbeatTimeout: ptr(int32(300)), DefaultResult: ptr("CONTINUE"),
		NotificationMetadata: ptr("m"), NotificationTargetARN: ptr("arn:aws:sqs:eu-west-1:123456789012:q"), RoleARN: ptr("arn:aws:iam::123456789012:role/r"),
	}
	if err := put(whole); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int32{-1, 0, 29, 7201} {
		refused(t, put(autoscaling.PutLifecycleHookInput{LifecycleHookName: ptr("down"), HeartbeatTimeout: &seconds}), "ValidationError", "heartbeatTimeout")
	}
	refused(t, put(autoscaling.PutLifecycleHookInput{LifecycleHookName: ptr("down"), DefaultResult: ptr("GIVE UP")}), "ValidationError", "GIVE UP")
	if err := put(autoscaling.PutLifecycleHookInput{LifecycleHookName: ptr("down"), HeartbeatTimeout: ptr(int32(30))}); err != nil {
		t.Fatal(err)
	}
	if err := put(autoscaling.PutLifecycleHookInput{LifecycleHookName: ptr("down"), NotificationTargetARN: ptr("")}); err != nil {
		t.Fatal(err)
	}
	hooks := must(b.asg.DescribeLifecycleHooks(b.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: ptr("web")}))(t).LifecycleHooks
	short, down := hooks[0], hooks[1]
	if *short.HeartbeatTimeout != 5 {
		t.Errorf("a spec may have shorter heartbeats: %+v", short)
	}
	if *down.HeartbeatTimeout != 30 || *down.GlobalTimeout != 3000 || *down.DefaultResult != "CONTINUE" || *down.NotificationMetadata != "m" || *down.LifecycleTransition != cloud.OnTerminate ||
		down.NotificationTargetARN != nil || *down.RoleARN != *whole.RoleARN {
		t.Errorf("%+v", down)
	}
}

// Who names a group that is not the instance's, or does not say whether the capacity shrinks, moves nothing; nor do several of which one may not be moved.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_EnterStandby.html, …/API_ExitStandby.html, …/API_DetachInstances.html
func TestMovesNameTheirGroup(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Min: 1, Max: 4, Desired: desired(2), Type: "m5.large"}, fakeaws.Group{Name: "other", Max: 4, Type: "m5.large"})
	all := b.waitStates("web", counts{fakeaws.InService: 2})
	ids := []string{all[0].ID}
	enter := func(group *string, ids []string, decrement *bool) error {
		_, err := b.asg.EnterStandby(b.ctx, &autoscaling.EnterStandbyInput{AutoScalingGroupName: group, InstanceIds: ids, ShouldDecrementDesiredCapacity: decrement})
		return err
	}
	detach := func(group *string, ids []string, decrement *bool) error {
		_, err := b.asg.DetachInstances(b.ctx, &autoscaling.DetachInstancesInput{AutoScalingGroupName: group, InstanceIds: ids, ShouldDecrementDesiredCapacity: decrement})
		return err
	}
	exit := func(group *string, ids []string) error {
		_, err := b.asg.ExitStandby(b.ctx, &autoscaling.ExitStandbyInput{AutoScalingGroupName: group, InstanceIds: ids})
		return err
	}
	no := ptr(false)
	for _, move := range []func(group *string, ids []string, decrement *bool) error{enter, detach} {
		refused(t, move(ptr("other"), ids, no), "ValidationError", ids[0])
		refused(t, move(ptr("none"), ids, no), "ValidationError", "none")
		refused(t, move(ptr("web"), nil, no), "ValidationError", "instanceIds")
		refused(t, move(ptr("web"), []string{all[0].ID, all[1].ID}, ptr(true)), "ValidationError", "2 instance")
		refused(t, move(ptr("web"), []string{all[0].ID, "i-0000000000000dead"}, no), "ValidationError", "i-0000000000000dead")
	}
	for operation, query := range map[string]string{"EnterStandby": "", "DetachInstances": ""} { // The SDK itself does not send these.
		query = "/?Version=2011-01-01&Action=" + operation + "&InstanceIds.member.1=" + ids[0]
		for extra, word := range map[string]string{"&AutoScalingGroupName=web": "shouldDecrementDesiredCapacity", "&ShouldDecrementDesiredCapacity=false": "autoScalingGroupName"} {
			if status, body := b.send(b.ctx, "POST", b.URL()+query+extra, "", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIATEST/20260101/eu-west-1/autoscaling/aws4_request"); status != 400 || !contains(body, word) {
				t.Errorf("%s%s: %d %s", operation, extra, status, body)
			}
		}
	}
	if now := b.waitStates("web", counts{fakeaws.InService: 2}); now[0].ID != all[0].ID {
		t.Errorf("moved: %+v", now)
	}
	if err := enter(ptr("web"), ids, ptr(true)); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{fakeaws.InService: 1, fakeaws.Standby: 1})
	refused(t, exit(ptr("other"), ids), "ValidationError", ids[0])
	if err := exit(ptr("web"), ids); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{fakeaws.InService: 2})
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
func TestRefreshPreferences(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 1, Type: "m5.large"})
	refresh := func(p types.RefreshPreferences) error {
		_, err := b.asg.StartInstanceRefresh(b.ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: ptr("web"), Preferences: &p})
		return err
	}
	refused(t, refresh(types.RefreshPreferences{MinHealthyPercentage: ptr(int32(101))}), "ValidationError", "minHealthyPercentage")
	refused(t, refresh(types.RefreshPreferences{MinHealthyPercentage: ptr(int32(-1))}), "ValidationError", "minHealthyPercentage")
	refused(t, refresh(types.RefreshPreferences{MaxHealthyPercentage: ptr(int32(201)), MinHealthyPercentage: ptr(int32(100))}), "ValidationError", "maxHealthyPercentage")
	refused(t, refresh(types.RefreshPreferences{MaxHealthyPercentage: ptr(int32(99)), MinHealthyPercentage: ptr(int32(50))}), "ValidationError", "maxHealthyPercentage")
	refused(t, refresh(types.RefreshPreferences{MaxHealthyPercentage: ptr(int32(100))}), "ValidationError", "MinHealthyPercentage")
	refused(t, refresh(types.RefreshPreferences{MaxHealthyPercentage: ptr(int32(200)), MinHealthyPercentage: ptr(int32(90))}), "ValidationError", "difference")
	refused(t, refresh(types.RefreshPreferences{ScaleInProtectedInstances: "Hide"}), "ValidationError", "Hide")
	refused(t, refresh(types.RefreshPreferences{InstanceWarmup: ptr(int32(5))}), "ValidationError", "InstanceWarmup")
	if err := refresh(types.RefreshPreferences{MinHealthyPercentage: ptr(int32(100)), MaxHealthyPercentage: ptr(int32(100))}); err != nil {
		t.Error(err)
	}
}

// A filter that does not exist is refused also where there is nothing that it could let through.
func TestUnknownFilters(t *testing.T) {
	b := start(t)
	one := []ec2types.Filter{{Name: ptr("colour"), Values: []string{"red"}}}
	asked := map[string]error{}
	_, asked["DescribeInstances"] = b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{Filters: one})
	_, asked["DescribeInstanceTypes"] = b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{Filters: append([]ec2types.Filter{{Name: ptr("instance-type"), Values: []string{"none"}}}, one...)})
	_, asked["DescribeImages"] = b.ec2.DescribeImages(b.ctx, &ec2.DescribeImagesInput{Filters: one})
	_, asked["DescribeLaunchTemplateVersions"] = b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"$Latest"}, Filters: one})
	_, asked["DescribeLaunchTemplates"] = b.ec2.DescribeLaunchTemplates(b.ctx, &ec2.DescribeLaunchTemplatesInput{Filters: one})
	_, asked["DescribeAvailabilityZones"] = b.ec2.DescribeAvailabilityZones(b.ctx, &ec2.DescribeAvailabilityZonesInput{Filters: one})
	_, asked["DescribeSubnets"] = b.ec2.DescribeSubnets(b.ctx, &ec2.DescribeSubnetsInput{Filters: one})
	for operation, err := range asked {
		t.Run(operation, func(t *testing.T) { refused(t, err, "InvalidParameterValue", "colour") })
	}
	_, err := b.asg.DescribeTags(b.ctx, &autoscaling.DescribeTagsInput{Filters: []types.Filter{{Name: ptr("colour"), Values: []string{"red"}}}})
	refused(t, err, "ValidationError", "colour")
	_, err = b.asg.DescribeAutoScalingGroups(b.ctx, &autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{{Name: ptr("colour"), Values: []string{"red"}}}})
	refused(t, err, "ValidationError", "colour")
}

// Each attribute chooses, or is refused by name.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceRequirementsRequest.html
func TestInstanceRequirements(t *testing.T) {
	b := start(t)
	match := func(r ec2types.InstanceRequirementsRequest) ([]string, error) {
		r.VCpuCount, r.MemoryMiB = &ec2types.VCpuCountRangeRequest{Min: ptr(int32(4)), Max: ptr(int32(4))}, &ec2types.MemoryMiBRequest{Min: ptr(int32(0))}
		out, err := b.ec2.GetInstanceTypesFromInstanceRequirements(b.ctx, &ec2.GetInstanceTypesFromInstanceRequirementsInput{
			ArchitectureTypes: []ec2types.ArchitectureType{"x86_64", "arm64"}, VirtualizationTypes: []ec2types.VirtualizationType{"hvm"}, InstanceRequirements: &r})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, i := range out.InstanceTypes {
			names = append(names, *i.InstanceType)
		}
		slices.Sort(names)
		return names, nil
	}
	some := []string{"c5d.xlarge", "g4dn.xlarge", "g5.xlarge", "g5g.xlarge", "g6.xlarge", "m5.xlarge", "m6gd.xlarge"}
	with := func(r ec2types.InstanceRequirementsRequest) ec2types.InstanceRequirementsRequest {
		r.AllowedInstanceTypes = some
		return r
	}
	any := &ec2types.AcceleratorCountRequest{Min: ptr(int32(0))}
	for name, c := range map[string]struct {
		r    ec2types.InstanceRequirementsRequest
		want []string
	}{
		"plain":                    {with(ec2types.InstanceRequirementsRequest{}), []string{"c5d.xlarge", "m5.xlarge", "m6gd.xlarge"}},
		"accelerators":             {with(ec2types.InstanceRequirementsRequest{AcceleratorCount: &ec2types.AcceleratorCountRequest{Min: ptr(int32(1))}}), []string{"g4dn.xlarge", "g5.xlarge", "g5g.xlarge", "g6.xlarge"}},
		"accelerator names":        {with(ec2types.InstanceRequirementsRequest{AcceleratorNames: []ec2types.AcceleratorName{"t4", "a10g"}}), []string{"g4dn.xlarge", "g5.xlarge"}},
		"accelerator makers":       {with(ec2types.InstanceRequirementsRequest{AcceleratorManufacturers: []ec2types.AcceleratorManufacturer{"amd"}}), nil},
		"accelerator types":        {with(ec2types.InstanceRequirementsRequest{AcceleratorTypes: []ec2types.AcceleratorType{"fpga"}}), nil},
		"accelerator memory":       {with(ec2types.InstanceRequirementsRequest{AcceleratorTotalMemoryMiB: &ec2types.AcceleratorTotalMemoryMiBRequest{Min: ptr(int32(24000))}}), []string{"g5.xlarge"}},
		"no accelerators":          {with(ec2types.InstanceRequirementsRequest{AcceleratorCount: &ec2types.AcceleratorCountRequest{Max: ptr(int32(0))}}), []string{"c5d.xlarge", "m5.xlarge", "m6gd.xlarge"}},
		"bare metal":               {with(ec2types.InstanceRequirementsRequest{BareMetal: "required"}), nil},
		"generation":               {with(ec2types.InstanceRequirementsRequest{InstanceGenerations: []ec2types.InstanceGeneration{"previous"}}), nil},
		"this generation":          {with(ec2types.InstanceRequirementsRequest{InstanceGenerations: []ec2types.InstanceGeneration{"current"}}), []string{"c5d.xlarge", "m5.xlarge", "m6gd.xlarge"}},
		"interfaces":               {with(ec2types.InstanceRequirementsRequest{NetworkInterfaceCount: &ec2types.NetworkInterfaceCountRequest{Min: ptr(int32(5))}}), nil},
		"storage":                  {with(ec2types.InstanceRequirementsRequest{LocalStorage: "required"}), []string{"c5d.xlarge", "m6gd.xlarge"}},
		"storage size":             {with(ec2types.InstanceRequirementsRequest{TotalLocalStorageGB: &ec2types.TotalLocalStorageGBRequest{Min: ptr(150.)}}), []string{"m6gd.xlarge"}},
		"storage kind":             {with(ec2types.InstanceRequirementsRequest{LocalStorage: "required", LocalStorageTypes: []ec2types.LocalStorageType{"hdd"}}), nil},
		"burstable, no hibernates": {ec2types.InstanceRequirementsRequest{BurstablePerformance: "required", RequireHibernateSupport: ptr(false), AcceleratorCount: any}, []string{"t3.xlarge", "t3a.xlarge", "t4g.xlarge"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := match(c.r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for word, r := range map[string]ec2types.InstanceRequirementsRequest{
		"BaselineEbsBandwidthMbps":                       {BaselineEbsBandwidthMbps: &ec2types.BaselineEbsBandwidthMbpsRequest{Min: ptr(int32(1))}},
		"NetworkBandwidthGbps":                           {NetworkBandwidthGbps: &ec2types.NetworkBandwidthGbpsRequest{Min: ptr(1.)}},
		"RequireHibernateSupport":                        {RequireHibernateSupport: ptr(true)},
		"OnDemandMaxPricePercentageOverLowestPrice":      {OnDemandMaxPricePercentageOverLowestPrice: ptr(int32(20))},
		"SpotMaxPricePercentageOverLowestPrice":          {SpotMaxPricePercentageOverLowestPrice: ptr(int32(20))},
		"MaxSpotPriceAsPercentageOfOptimalOnDemandPrice": {MaxSpotPriceAsPercentageOfOptimalOnDemandPrice: ptr(int32(20))},
		"BaselinePerformanceFactors":                     {BaselinePerformanceFactors: &ec2types.BaselinePerformanceFactorsRequest{Cpu: &ec2types.CpuPerformanceFactorRequest{References: []ec2types.PerformanceFactorReferenceRequest{{InstanceFamily: ptr("m5")}}}}},
		"BareMetal":                                      {BareMetal: "sometimes"},
		"AcceleratorName":                                {AcceleratorNames: []ec2types.AcceleratorName{"abacus"}},
		"AllowedInstanceType":                            {AllowedInstanceTypes: []string{"m5.*"}, ExcludedInstanceTypes: []string{"m5.large"}},
	} {
		t.Run(word, func(t *testing.T) {
			_, err := match(r)
			refused(t, err, "InvalidParameterValue", word)
		})
	}
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeLaunchTemplates.html, …/API_DescribeSubnets.html
func TestTemplatesAndSubnets(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{LaunchTemplates: []fakeaws.LaunchTemplate{
		{Name: "base", Default: 2, Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}, {Type: "m5.large"}, {Type: "m5.xlarge"}}}, {Name: "other", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}}},
	}})
	describe := func(in ec2.DescribeLaunchTemplatesInput) ([]ec2types.LaunchTemplate, error) {
		out, err := b.ec2.DescribeLaunchTemplates(b.ctx, &in)
		if err != nil {
			return nil, err
		}
		return out.LaunchTemplates, nil
	}
	all := must(describe(ec2.DescribeLaunchTemplatesInput{}))(t)
	if len(all) != 2 || *all[0].LaunchTemplateName != "base" || *all[0].DefaultVersionNumber != 2 || *all[0].LatestVersionNumber != 3 {
		t.Errorf("%+v", all)
	}
	for _, in := range []ec2.DescribeLaunchTemplatesInput{{LaunchTemplateIds: []string{*all[1].LaunchTemplateId}}, {LaunchTemplateNames: []string{"other"}}, {Filters: []ec2types.Filter{{Name: ptr("launch-template-name"), Values: []string{"oth*"}}}}} {
		if one := must(describe(in))(t); len(one) != 1 || *one[0].LaunchTemplateName != "other" {
			t.Errorf("%+v: %+v", in, one)
		}
	}
	_, err := describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"none"}})
	refused(t, err, "InvalidLaunchTemplateName.NotFoundException", "")
	_, err = describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-x"}})
	refused(t, err, "InvalidLaunchTemplateId.Malformed", "lt-x")
	_, err = b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: ptr("lt-x")})
	refused(t, err, "InvalidLaunchTemplateId.Malformed", "lt-x")
	if _, err := fakeaws.Start(fakeaws.Config{Spec: fakeaws.Spec{LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "bad", ID: "lt-x", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}}}}}}); err == nil || !contains(err.Error(), "lt-x") {
		t.Errorf("a spec with an id that AWS does not make: %v", err)
	}

	subnets := must(b.ec2.DescribeSubnets(b.ctx, nil))(t).Subnets
	if len(subnets) != 3 || *subnets[1].AvailabilityZone != "eu-west-1b" || subnets[1].State != ec2types.SubnetStateAvailable || *subnets[1].VpcId == "" {
		t.Errorf("%+v", subnets)
	}
	one := must(b.ec2.DescribeSubnets(b.ctx, &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{{Name: ptr("availability-zone"), Values: []string{"eu-west-1c"}}}}))(t).Subnets
	if len(one) != 1 || *one[0].SubnetId != *subnets[2].SubnetId {
		t.Errorf("%+v", one)
	}
	_, err = b.ec2.DescribeSubnets(b.ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0123456789abcdef0"}})
	refused(t, err, "InvalidSubnetID.NotFound", "subnet-0123456789abcdef0")
	_, err = b.ec2.DescribeAvailabilityZones(b.ctx, &ec2.DescribeAvailabilityZonesInput{ZoneNames: []string{"eu-west-1x"}})
	refused(t, err, "InvalidParameterValue", "eu-west-1x")
}

// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html, https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
func TestClusterAndRole(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "g", Max: 1, Type: "m5.large", EKS: &fakeaws.Nodegroup{Cluster: "prod", Name: "n", Version: "1.35"}})
	c := must(b.eks.DescribeCluster(b.ctx, &eks.DescribeClusterInput{Name: ptr("prod")}))(t).Cluster
	if *c.Name != "prod" || *c.Version != "1.35" || c.Status != "ACTIVE" || *c.Arn != "arn:aws:eks:eu-west-1:123456789012:cluster/prod" || len(c.ResourcesVpcConfig.SubnetIds) == 0 {
		t.Errorf("%+v", c)
	}
	_, err := b.eks.DescribeCluster(b.ctx, &eks.DescribeClusterInput{Name: ptr("none")})
	refused(t, err, "ResourceNotFoundException", "none")
	out := must(b.sts.AssumeRole(b.ctx, &sts.AssumeRoleInput{RoleArn: ptr("arn:aws:iam::123456789012:role/r"), RoleSessionName: ptr("s"), DurationSeconds: ptr(int32(900))}))(t)
	if *out.Credentials.AccessKeyId == "" || *out.AssumedRoleUser.Arn != "arn:aws:sts::123456789012:assumed-role/r/s" {
		t.Errorf("%+v", out)
	}
	_, err = b.sts.AssumeRole(b.ctx, &sts.AssumeRoleInput{RoleArn: ptr("arn:aws:iam::123456789012:role/r"), RoleSessionName: ptr("s"), DurationSeconds: ptr(int32(899))})
	refused(t, err, "ValidationError", "durationSeconds")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html, …/API_DeleteAutoScalingGroup.html
func TestCreateAndDeleteAutoScalingGroup(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "base", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}}}}})
	subnet := *must(b.ec2.DescribeSubnets(b.ctx, nil))(t).Subnets[1].SubnetId
	create := func(change func(in *autoscaling.CreateAutoScalingGroupInput)) error {
		in := &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: ptr("new"), MinSize: ptr(int32(1)), MaxSize: ptr(int32(3)), VPCZoneIdentifier: &subnet,
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: ptr("base"), Version: ptr("$Latest")},
			Tags:           []types.Tag{{Key: ptr("team"), Value: ptr("a"), PropagateAtLaunch: ptr(true)}, {Key: ptr("own"), Value: ptr("b"), PropagateAtLaunch: ptr(false)}},
			LifecycleHookSpecificationList: []types.LifecycleHookSpecification{
				{LifecycleHookName: ptr("down"), LifecycleTransition: ptr(cloud.OnTerminate), HeartbeatTimeout: ptr(int32(300)), DefaultResult: ptr("CONTINUE")}},
		}
		change(in)
		_, err := b.asg.CreateAutoScalingGroup(b.ctx, in)
		return err
	}
	for word, change := range map[string]func(in *autoscaling.CreateAutoScalingGroupInput){
		"Max bound":         func(in *autoscaling.CreateAutoScalingGroupInput) { in.MinSize = ptr(int32(4)) },
		"Availability Zone": func(in *autoscaling.CreateAutoScalingGroupInput) { in.VPCZoneIdentifier = nil },
		"LaunchTemplate":    func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = nil },
		"InstanceId":        func(in *autoscaling.CreateAutoScalingGroupInput) { in.InstanceId = ptr("i-0000000000000dead") },
		"LoadBalancerNames": func(in *autoscaling.CreateAutoScalingGroupInput) { in.LoadBalancerNames = []string{"lb"} },
		"heartbeatTimeout": func(in *autoscaling.CreateAutoScalingGroupInput) {
			in.LifecycleHookSpecificationList[0].HeartbeatTimeout = ptr(int32(5))
		},
	} {
		refused(t, create(change), "ValidationError", word)
	}
	if n := len(b.Groups()); n != 0 {
		t.Fatalf("%d groups after calls that failed", n)
	}
	if err := create(func(*autoscaling.CreateAutoScalingGroupInput) {}); err != nil {
		t.Fatal(err)
	}
	refused(t, create(func(*autoscaling.CreateAutoScalingGroupInput) {}), "AlreadyExists", "new")
	i := b.waitStates("new", counts{fakeaws.InService: 1})[0]
	if i.Zone != "eu-west-1b" || i.Tags["team"] != "a" || i.Tags["own"] != "" {
		t.Errorf("%+v", i)
	}
	if g := b.group("new"); *g.DesiredCapacity != 1 || len(g.Tags) != 2 {
		t.Errorf("%+v", g)
	}
	if hooks := must(b.asg.DescribeLifecycleHooks(b.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: ptr("new")}))(t).LifecycleHooks; len(hooks) != 1 || *hooks[0].HeartbeatTimeout != 300 {
		t.Errorf("%+v", hooks)
	}
	remove := func(force bool) error {
		_, err := b.asg.DeleteAutoScalingGroup(b.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: ptr("new"), ForceDelete: &force})
		return err
	}
	refused(t, remove(false), "ResourceInUse", "instances")
	gone := make(chan struct{}) // Its hook does not hold the instance up.
	b.OnInstance(func(now fakeaws.Instance) {
		if now.ID == i.ID && now.Gone {
			close(gone)
		}
	})
	if err := remove(true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-b.ctx.Done():
		t.Fatal("the instance of a deleted group stays")
	}
	if n := len(b.Groups()); n != 0 {
		t.Errorf("%d groups, want none", n)
	}
	refused(t, remove(true), "ValidationError", "new")
	if err := create(func(in *autoscaling.CreateAutoScalingGroupInput) {
		in.MinSize, in.LaunchTemplate = ptr(int32(0)), nil
		in.MixedInstancesPolicy = &types.MixedInstancesPolicy{
			InstancesDistribution: &types.InstancesDistribution{OnDemandBaseCapacity: ptr(int32(1)), OnDemandPercentageAboveBaseCapacity: ptr(int32(50)), SpotAllocationStrategy: ptr("capacity-optimized")},
			LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateName: ptr("base")}, Overrides: []types.LaunchTemplateOverrides{
				{InstanceType: ptr("m5.xlarge"), WeightedCapacity: ptr("2")},
				{InstanceRequirements: &types.InstanceRequirements{
					VCpuCount: &types.VCpuCountRequest{Min: ptr(int32(4))}, MemoryMiB: &types.MemoryMiBRequest{Min: ptr(int32(1024))}, AcceleratorNames: []types.AcceleratorName{"t4"},
					NetworkInterfaceCount: &types.NetworkInterfaceCountRequest{Min: ptr(int32(2))}, LocalStorageTypes: []types.LocalStorageType{"ssd"}}},
			}},
		}
	}); err != nil {
		t.Fatal(err)
	}
	p := b.group("new").MixedInstancesPolicy
	if o := p.LaunchTemplate.Overrides; *p.InstancesDistribution.OnDemandBaseCapacity != 1 || *p.InstancesDistribution.SpotAllocationStrategy != "capacity-optimized" || *o[0].WeightedCapacity != "2" ||
		o[1].InstanceRequirements.AcceleratorNames[0] != "t4" || *o[1].InstanceRequirements.NetworkInterfaceCount.Min != 2 || o[1].InstanceRequirements.LocalStorageTypes[0] != "ssd" {
		t.Errorf("%+v", p)
	}
	if err := remove(false); err != nil {
		t.Error(err)
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html, …/API_DeleteWarmPool.html
func TestWarmPoolOperations(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 3, Type: "m5.large", Hooks: []fakeaws.Hook{{Name: "down", Transition: "terminate", HeartbeatSeconds: 600}}})
	put := func(in autoscaling.PutWarmPoolInput) error {
		in.AutoScalingGroupName = ptr("web")
		_, err := b.asg.PutWarmPool(b.ctx, &in)
		return err
	}
	refused(t, put(autoscaling.PutWarmPoolInput{MinSize: ptr(int32(-1))}), "ValidationError", "minSize")
	refused(t, put(autoscaling.PutWarmPoolInput{PoolState: "Lukewarm"}), "ValidationError", "Lukewarm")
	if err := put(autoscaling.PutWarmPoolInput{MaxGroupPreparedCapacity: ptr(int32(2)), PoolState: types.WarmPoolStateRunning, InstanceReusePolicy: &types.InstanceReusePolicy{ReuseOnScaleIn: ptr(true)}}); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{cloud.WarmedRunning: 2})
	if err := put(autoscaling.PutWarmPoolInput{MaxGroupPreparedCapacity: ptr(int32(-1))}); err != nil { // As many as the maximum again.
		t.Fatal(err)
	}
	b.waitStates("web", counts{cloud.WarmedRunning: 3})
	if p := b.group("web").WarmPoolConfiguration; p.MaxGroupPreparedCapacity != nil || p.PoolState != types.WarmPoolStateRunning || !*p.InstanceReusePolicy.ReuseOnScaleIn {
		t.Errorf("%+v", p)
	}
	remove := func(force bool) error {
		_, err := b.asg.DeleteWarmPool(b.ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: ptr("web"), ForceDelete: &force})
		return err
	}
	refused(t, remove(false), "ResourceInUse", "warm pool")
	if err := remove(true); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", counts{})
	if g := b.group("web"); g.WarmPoolConfiguration != nil {
		t.Errorf("%+v", g.WarmPoolConfiguration)
	}
	refused(t, remove(true), "ValidationError", "warm pool")
}

// A command of the control endpoint takes a tag off a group; so does DeleteTags.
func TestTagsAreTakenAway(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 1, Type: "m5.large", Tags: map[string]string{"a": "1", "b": "2", "c": "3"}})
	if status, body := b.send(b.ctx, "POST", b.ControlURL()+"/delete-tag", `{"group":"web","name":"a"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := b.send(b.ctx, "POST", b.ControlURL()+"/delete-tag", `{"group":"web","name":"a"}`); status != 422 || !contains(body, "a") {
		t.Errorf("a tag that is not there: %d %s", status, body)
	}
	must(b.asg.DeleteTags(b.ctx, &autoscaling.DeleteTagsInput{Tags: []types.Tag{{ResourceId: ptr("web"), ResourceType: ptr("auto-scaling-group"), Key: ptr("b")}}}))(t)
	if diff := cmp.Diff([]string{"c"}, slices.Sorted(maps.Keys(must(b.Group("web"))(t).Spec.Tags))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	own := must(b.asg.CreateOrUpdateTags(b.ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []types.Tag{{ResourceId: ptr("web"), ResourceType: ptr("auto-scaling-group"), Key: ptr("own"), Value: ptr("1"), PropagateAtLaunch: ptr(false)}}}))
	own(t)
	out := must(b.asg.DescribeTags(b.ctx, &autoscaling.DescribeTagsInput{Filters: []types.Filter{{Name: ptr("propagate-at-launch"), Values: []string{"false"}}}}))(t).Tags
	if len(out) != 1 || *out[0].Key != "own" {
		t.Errorf("those that instances do not get: %s", fmt.Sprint(out))
	}
}
