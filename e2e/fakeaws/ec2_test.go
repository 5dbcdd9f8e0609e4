package fakeaws_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
)

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
func TestDescribeInstanceTypes(t *testing.T) {
	b := start(t)
	seen := map[types.InstanceType]types.InstanceTypeInfo{}
	p := ec2.NewDescribeInstanceTypesPaginator(b.ec2, &ec2.DescribeInstanceTypesInput{})
	for p.HasMorePages() {
		for _, info := range must(p.NextPage(b.ctx))(t).InstanceTypes {
			seen[info.InstanceType] = info
		}
	}
	if len(seen) < 40 {
		t.Fatalf("%d types, want at least forty", len(seen))
	}
	m5 := seen["m5.large"]
	if *m5.VCpuInfo.DefaultVCpus != 2 || *m5.VCpuInfo.DefaultCores != 1 || *m5.MemoryInfo.SizeInMiB != 8192 || m5.ProcessorInfo.SupportedArchitectures[0] != types.ArchitectureTypeX8664 ||
		*m5.NetworkInfo.MaximumNetworkInterfaces != 3 || *m5.NetworkInfo.Ipv4AddressesPerInterface != 10 || *m5.InstanceStorageSupported || m5.GpuInfo != nil {
		t.Errorf("m5.large: %+v", m5)
	}
	if g := seen["g4dn.xlarge"].GpuInfo; *g.Gpus[0].Count != 1 || *g.Gpus[0].Name != "T4" || *g.TotalGpuMemoryInMiB != 16384 {
		t.Errorf("g4dn.xlarge: %+v", g)
	}
	if d := seen["m5d.4xlarge"].InstanceStorageInfo; *d.TotalSizeInGB != 600 || *d.Disks[0].Count != 2 {
		t.Errorf("m5d.4xlarge: %+v", d)
	}
	if a := seen["m7g.large"].ProcessorInfo.SupportedArchitectures; a[0] != types.ArchitectureTypeArm64 {
		t.Errorf("m7g.large: %v", a)
	}
	out := must(b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"t3.micro", "r5.large"}}))(t)
	if len(out.InstanceTypes) != 2 {
		t.Errorf("two by name: %d", len(out.InstanceTypes))
	}
	out = must(b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{
		{Name: ptr("processor-info.supported-architecture"), Values: []string{"arm64"}}, {Name: ptr("instance-type"), Values: []string{"m*.large"}}}}))(t)
	var names []string
	for _, i := range out.InstanceTypes {
		names = append(names, string(i.InstanceType))
	}
	if diff := cmp.Diff([]string{"m6g.large", "m6gd.large", "m7g.large", "m8g.large"}, names); diff != "" {
		t.Errorf("filtered (-want +got):\n%s", diff)
	}
	_, err := b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"x9.huge"}})
	wantError(t, err, 400, "InvalidInstanceType", "The following supplied instance types do not exist: [x9.huge]")
	_, err = b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{MaxResults: ptr(int32(4))})
	wantError(t, err, 400, "InvalidParameterValue", "Value ( 4 ) for parameter maxResults is invalid. Expecting a value greater than 5.")
	_, err = b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{NextToken: ptr("none")})
	wantError(t, err, 400, "InvalidParameterValue", "Value (none) for parameter nextToken is invalid. Unable to parse pagination token.")
	_, err = b.ec2.DescribeInstanceTypes(b.ctx, &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{{Name: ptr("colour"), Values: []string{"red"}}}})
	wantError(t, err, 400, "InvalidParameterValue", "The filter 'colour' is invalid")
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetInstanceTypesFromInstanceRequirements.html
func TestGetInstanceTypesFromInstanceRequirements(t *testing.T) {
	b := start(t)
	out := must(b.ec2.GetInstanceTypesFromInstanceRequirements(b.ctx, &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes: []types.ArchitectureType{types.ArchitectureTypeX8664}, VirtualizationTypes: []types.VirtualizationType{types.VirtualizationTypeHvm},
		InstanceRequirements: &types.InstanceRequirementsRequest{
			VCpuCount: &types.VCpuCountRangeRequest{Min: ptr(int32(2)), Max: ptr(int32(2))}, MemoryMiB: &types.MemoryMiBRequest{Min: ptr(int32(8192)), Max: ptr(int32(8192))},
			CpuManufacturers: []types.CpuManufacturer{types.CpuManufacturerIntel}, ExcludedInstanceTypes: []string{"m5d.*"},
		},
	}))(t)
	var names []string
	for _, i := range out.InstanceTypes {
		names = append(names, *i.InstanceType)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"m5.large", "m6i.large", "m7i.large"}, names); diff != "" { // t3.large is burstable: left out unless asked for.
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := b.ec2.GetInstanceTypesFromInstanceRequirements(b.ctx, &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes: []types.ArchitectureType{}, VirtualizationTypes: []types.VirtualizationType{}, InstanceRequirements: &types.InstanceRequirementsRequest{
			VCpuCount: &types.VCpuCountRangeRequest{Min: ptr(int32(2))}, MemoryMiB: &types.MemoryMiBRequest{Min: ptr(int32(2))}}})
	wantError(t, err, 400, "MissingParameter", "The request must contain the parameters ArchitectureType and VirtualizationType")
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
func TestDescribeSpotPriceHistory(t *testing.T) {
	b := start(t)
	now := time.Now()
	out := must(b.ec2.DescribeSpotPriceHistory(b.ctx, &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []types.InstanceType{"m5.large"}, ProductDescriptions: []string{"Linux/UNIX"}, AvailabilityZone: ptr("eu-west-1b"), StartTime: ptr(now.Add(-24 * time.Hour)), EndTime: &now,
	}))(t).SpotPriceHistory
	if len(out) < 4 || len(out) > 6 {
		t.Fatalf("%d prices of a day", len(out))
	}
	for n, p := range out {
		price, err := strconv.ParseFloat(*p.SpotPrice, 64)
		if err != nil || price <= 0 || price >= .096 || *p.AvailabilityZone != "eu-west-1b" || p.InstanceType != "m5.large" {
			t.Errorf("%+v, %v", p, err)
		}
		if n > 0 && !p.Timestamp.Before(*out[n-1].Timestamp) {
			t.Errorf("not newest first: %v", out)
		}
	}
	current := must(b.ec2.DescribeSpotPriceHistory(b.ctx, &ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []types.InstanceType{"m5.large"}, StartTime: &now, EndTime: &now}))(t)
	if len(current.SpotPriceHistory) != 3 {
		t.Errorf("current prices of three zones: %+v", current.SpotPriceHistory)
	}
	in := &ec2.DescribeSpotPriceHistoryInput{StartTime: &now, EndTime: &now, MaxResults: ptr(int32(1)), Filters: []types.Filter{
		{Name: ptr("instance-type"), Values: []string{"m5.large", "x9.huge"}}, {Name: ptr("availability-zone"), Values: []string{"eu-west-1a", "eu-west-1c"}},
	}}
	var zones []string
	for {
		out := must(b.ec2.DescribeSpotPriceHistory(b.ctx, in))(t)
		for _, p := range out.SpotPriceHistory {
			zones = append(zones, *p.AvailabilityZone)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil || len(zones) > 9 {
			break
		}
	}
	if diff := cmp.Diff([]string{"eu-west-1a", "eu-west-1c"}, zones); diff != "" {
		t.Errorf("pages of what filters let through (-want +got):\n%s", diff)
	}
	in.NextToken, in.ProductDescriptions = nil, []string{"Windows"}
	if out := must(b.ec2.DescribeSpotPriceHistory(b.ctx, in))(t); len(out.SpotPriceHistory) > 0 {
		t.Errorf("prices of another product: %+v", out.SpotPriceHistory)
	}
	in.Filters = []types.Filter{{Name: ptr("colour"), Values: []string{"red"}}}
	in.ProductDescriptions = nil
	_, err := b.ec2.DescribeSpotPriceHistory(b.ctx, in)
	wantError(t, err, 400, "InvalidParameterValue", "The filter 'colour' is invalid")
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func TestDescribeInstances(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Desired: desired(7), Type: "m5.large", Tags: map[string]string{"team": "a"}}, fakeaws.Group{Name: "spot", Max: 3, Desired: desired(1), Type: "c7g.large", Spot: true})
	b.waitStates("web", counts{fakeaws.InService: 7})
	i := b.waitStates("spot", counts{fakeaws.InService: 1})[0]
	out := must(b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{i.ID}}))(t)
	got := out.Reservations[0].Instances[0]
	tags := map[string]string{}
	for _, tag := range got.Tags {
		tags[*tag.Key] = *tag.Value
	}
	if got.State.Name != types.InstanceStateNameRunning || *got.PrivateDnsName != i.PrivateDNSName || *got.PrivateIpAddress != i.PrivateIP || got.InstanceLifecycle != types.InstanceLifecycleTypeSpot ||
		*got.Placement.AvailabilityZone != "eu-west-1a" || got.Architecture != types.ArchitectureValuesArm64 || tags["aws:autoscaling:groupName"] != "spot" ||
		*got.MetadataOptions.HttpPutResponseHopLimit != 2 || got.MetadataOptions.HttpTokens != types.HttpTokensStateRequired {
		t.Errorf("%+v", got)
	}
	if want := fmt.Sprintf("ip-%s.eu-west-1.compute.internal", dashes(i.PrivateIP)); i.PrivateDNSName != want {
		t.Errorf("name %s, want %s", i.PrivateDNSName, want)
	}
	byTag := must(b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: ptr("tag:team"), Values: []string{"a"}}, {Name: ptr("instance-state-name"), Values: []string{"running"}}}, MaxResults: ptr(int32(5))}))(t)
	if len(byTag.Reservations) != 5 || byTag.NextToken == nil {
		t.Errorf("%d by tag on the first page, token %v", len(byTag.Reservations), byTag.NextToken)
	}
	if err := b.Kill(i.ID); err != nil {
		t.Fatal(err)
	}
	dead := must(b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{i.ID}}))(t).Reservations[0].Instances[0]
	if dead.State.Name != types.InstanceStateNameTerminated || *dead.PrivateDnsName != "" || dead.StateReason == nil {
		t.Errorf("terminated: %+v", dead)
	}
	_, err := b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"i-0000000000000dead"}})
	wantError(t, err, 400, "InvalidInstanceID.NotFound", "The instance ID 'i-0000000000000dead' does not exist")
	_, err = b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"node-1"}})
	wantError(t, err, 400, "InvalidInstanceID.Malformed", "Invalid id: \"node-1\"")
	_, err = b.ec2.DescribeInstances(b.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{i.ID}, MaxResults: ptr(int32(5))})
	wantError(t, err, 400, "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	web, _ := b.Group("web")
	ended := must(b.ec2.TerminateInstances(b.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{web.Instances[0].ID}}))(t).TerminatingInstances
	if len(ended) != 1 || ended[0].PreviousState.Name != types.InstanceStateNameRunning {
		t.Errorf("%+v", ended)
	}
}

func dashes(ip string) string {
	return string(slices.Collect(func(yield func(byte) bool) {
		for _, c := range []byte(ip) {
			if c == '.' {
				c = '-'
			}
			if !yield(c) {
				return
			}
		}
	}))
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeLaunchTemplateVersions.html
func TestDescribeLaunchTemplateVersions(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "base", Default: 2, Versions: []fakeaws.TemplateVersion{
		{Type: "m5.large"},
		{Type: "m5.xlarge", UserData: "#!/bin/sh", Image: "ami-1", Volumes: []fakeaws.Volume{{SizeGiB: 80}}, Tags: map[string]string{"k": "v"}, Spot: true, Profile: "node"},
		{Requirements: &fakeaws.Requirements{VCPUs: fakeaws.Range{Min: ptr(4.)}, MemoryMiB: fakeaws.Range{Min: ptr(1024.)}}},
	}}}})
	describe := func(versions ...string) []types.LaunchTemplateVersion {
		t.Helper()
		return must(b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: ptr("base"), Versions: versions}))(t).LaunchTemplateVersions
	}
	d := describe("$Default")[0]
	data := d.LaunchTemplateData
	if *d.VersionNumber != 2 || !*d.DefaultVersion || data.InstanceType != "m5.xlarge" || *data.UserData != "IyEvYmluL3No" || *data.ImageId != "ami-1" || *data.BlockDeviceMappings[0].Ebs.VolumeSize != 80 ||
		*data.BlockDeviceMappings[0].DeviceName != "/dev/xvda" || data.InstanceMarketOptions.MarketType != types.MarketTypeSpot || *data.TagSpecifications[0].Tags[0].Key != "k" || *data.IamInstanceProfile.Name != "node" {
		t.Errorf("$Default: %+v", data)
	}
	if l := describe("$Latest")[0]; *l.VersionNumber != 3 || *l.LaunchTemplateData.InstanceRequirements.VCpuCount.Min != 4 {
		t.Errorf("$Latest: %+v", l)
	}
	if all := describe(); len(all) != 3 || *all[0].VersionNumber != 3 {
		t.Errorf("all: %+v", all)
	}
	if one := describe("1"); *one[0].LaunchTemplateId != *d.LaunchTemplateId || one[0].LaunchTemplateData.InstanceMarketOptions != nil {
		t.Errorf("1: %+v", one)
	}
	_, err := b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: ptr("none")})
	wantError(t, err, 400, "InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
	_, err = b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: ptr("lt-0123456789abcdef0")})
	wantError(t, err, 400, "InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID lt-0123456789abcdef0, does not exist.")
	_, err = b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: ptr("base"), Versions: []string{"9"}})
	wantError(t, err, 400, "InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version 9 for the launch template with ID "+*d.LaunchTemplateId+".")
	_, err = b.ec2.DescribeLaunchTemplateVersions(b.ctx, &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"1"}})
	wantError(t, err, 400, "MissingParameter", "The parameter launch template ID or launch template name must be specified.")
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html
func TestDescribeImages(t *testing.T) {
	b := startSpec(t, fakeaws.Spec{Images: []fakeaws.Image{{ID: "ami-mine", Name: "mine", Arch: "arm64", Volume: fakeaws.Volume{SizeGiB: 40}}}})
	out := must(b.ec2.DescribeImages(b.ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-mine"}}))(t).Images
	if i := out[0]; i.Architecture != types.ArchitectureValuesArm64 || *i.BlockDeviceMappings[0].Ebs.VolumeSize != 40 || i.State != types.ImageStateAvailable || *i.Name != "mine" {
		t.Errorf("%+v", i)
	}
	if all := must(b.ec2.DescribeImages(b.ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: ptr("architecture"), Values: []string{"x86_64"}}}}))(t).Images; len(all) != 1 {
		t.Errorf("%d images of x86", len(all))
	}
	_, err := b.ec2.DescribeImages(b.ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-none"}})
	wantError(t, err, 400, "InvalidAMIID.NotFound", "The image id '[ami-none]' does not exist")
}

// https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeNodegroup.html
func TestDescribeNodegroup(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "eks-web", Max: 3, Min: 1, Type: "m7g.large", VolumeGiB: 30, Spot: true, EKS: &fakeaws.Nodegroup{
		Cluster: "prod", Name: "web", Labels: map[string]string{"tier": "web"},
		Taints: []fakeaws.Taint{{Key: "dedicated", Value: ptr("web"), Effect: "NO_SCHEDULE"}, {Key: "bare", Effect: "NO_EXECUTE"}},
	}})
	n := must(b.eks.DescribeNodegroup(b.ctx, &eks.DescribeNodegroupInput{ClusterName: ptr("prod"), NodegroupName: ptr("web")}))(t).Nodegroup
	if n.Labels["tier"] != "web" || *n.Taints[0].Value != "web" || n.Taints[0].Effect != ekstypes.TaintEffectNoSchedule || n.Taints[1].Value != nil || n.CapacityType != ekstypes.CapacityTypesSpot ||
		n.AmiType != ekstypes.AMITypesAl2023Arm64Standard || *n.DiskSize != 30 || n.InstanceTypes[0] != "m7g.large" || *n.Resources.AutoScalingGroups[0].Name != "eks-web" || *n.ScalingConfig.MinSize != 1 || n.CreatedAt == nil {
		t.Errorf("%+v", n)
	}
	g, _ := b.Group("eks-web")
	if g.Spec.Tags["eks:nodegroup-name"] != "web" || g.Spec.Tags["eks:cluster-name"] != "prod" {
		t.Errorf("tags %v", g.Spec.Tags)
	}
	_, err := b.eks.DescribeNodegroup(b.ctx, &eks.DescribeNodegroupInput{ClusterName: ptr("prod"), NodegroupName: ptr("none")})
	wantError(t, err, 404, "ResourceNotFoundException", "No node group found for name: none.")
	_, err = b.eks.DescribeNodegroup(b.ctx, &eks.DescribeNodegroupInput{ClusterName: ptr("none"), NodegroupName: ptr("web")})
	wantError(t, err, 404, "ResourceNotFoundException", "No cluster found for name: none.")
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html, …/API_AssumeRoleWithWebIdentity.html (not signed)
func TestSTS(t *testing.T) {
	b := start(t)
	if me := must(b.sts.GetCallerIdentity(b.ctx, nil))(t); *me.Account != "123456789012" || *me.Arn == "" {
		t.Errorf("%+v", me)
	}
	out := must(b.sts.AssumeRoleWithWebIdentity(b.ctx, &sts.AssumeRoleWithWebIdentityInput{RoleArn: ptr("arn:aws:iam::123456789012:role/r"), RoleSessionName: ptr("s"), WebIdentityToken: ptr("jwt")}))(t)
	if *out.Credentials.AccessKeyId == "" || !out.Credentials.Expiration.After(time.Now()) {
		t.Errorf("%+v", out.Credentials)
	}
}
