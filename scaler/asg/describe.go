package asg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// describer makes the calls of template.Describer.
type describer struct{ *Account }

func (d describer) InstanceTypes(ctx context.Context, names []string) ([]ec2types.InstanceTypeInfo, error) {
	in := &ec2.DescribeInstanceTypesInput{}
	for _, name := range names {
		in.InstanceTypes = append(in.InstanceTypes, ec2types.InstanceType(name))
	}
	var described []ec2types.InstanceTypeInfo
	for {
		out, err := d.compute.DescribeInstanceTypes(ctx, in)
		if err != nil {
			return nil, typesError(names, explain("ec2:DescribeInstanceTypes", err))
		}
		described = append(described, out.InstanceTypes...)
		if aws.ToString(out.NextToken) == "" {
			return described, nil
		}
		in.NextToken = out.NextToken
	}
}

func typesError(names []string, err error) error {
	var call *CallError
	if errors.As(err, &call) && call.Code == "InvalidInstanceType" {
		return fmt.Errorf("instance type %s: %w: %s", strings.Join(names, ", "), ErrMissing, call.Message)
	}
	return err
}

func (d describer) MatchingTypes(ctx context.Context, of []ec2types.ArchitectureType, requirements *ec2types.InstanceRequirementsRequest) ([]string, error) {
	in := &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes:    of,
		VirtualizationTypes:  []ec2types.VirtualizationType{ec2types.VirtualizationTypeHvm},
		InstanceRequirements: requirements,
	}
	var names []string
	for {
		out, err := d.compute.GetInstanceTypesFromInstanceRequirements(ctx, in)
		if err != nil {
			return nil, explain("ec2:GetInstanceTypesFromInstanceRequirements", err)
		}
		for _, t := range out.InstanceTypes {
			names = append(names, aws.ToString(t.InstanceType))
		}
		if aws.ToString(out.NextToken) == "" {
			return names, nil
		}
		in.NextToken = out.NextToken
	}
}

func (d describer) Image(ctx context.Context, id string) (*ec2types.Image, error) {
	out, err := d.compute.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil {
		return nil, explain("ec2:DescribeImages", err)
	}
	return first(out.Images), nil
}

func (d describer) TemplateVersion(ctx context.Context, id, name, version string) (*ec2types.LaunchTemplateVersion, error) {
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{version}}
	if id == "" {
		in.LaunchTemplateId, in.LaunchTemplateName = nil, &name
	}
	out, err := d.compute.DescribeLaunchTemplateVersions(ctx, in)
	if err != nil {
		return nil, explain("ec2:DescribeLaunchTemplateVersions", err)
	}
	return first(out.LaunchTemplateVersions), nil
}

// versionsPerPage is the most that AWS gives at once.
const versionsPerPage = 200

func (d describer) TemplateVersions(ctx context.Context, versions []string, page string) (described []ec2types.LaunchTemplateVersion, next string, err error) {
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: versions, MaxResults: aws.Int32(versionsPerPage)}
	if page != "" {
		in.NextToken = &page
	}
	out, err := d.compute.DescribeLaunchTemplateVersions(ctx, in)
	if err != nil {
		return nil, "", explain("ec2:DescribeLaunchTemplateVersions", err)
	}
	return out.LaunchTemplateVersions, aws.ToString(out.NextToken), nil
}

func (d describer) LaunchConfiguration(ctx context.Context, name string) (*astypes.LaunchConfiguration, error) {
	out, err := d.scaling.DescribeLaunchConfigurations(ctx, &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{name}})
	if err != nil {
		return nil, explain("autoscaling:DescribeLaunchConfigurations", err)
	}
	return first(out.LaunchConfigurations), nil
}

// first is nil where there is none.
func first[T any](of []T) *T {
	if len(of) == 0 {
		return nil
	}
	return &of[0]
}

func (d describer) Nodegroup(ctx context.Context, cluster, name string) (*ekstypes.Nodegroup, error) {
	out, err := d.managed.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
	if err != nil {
		return nil, explain("eks:DescribeNodegroup", err)
	}
	return out.Nodegroup, nil
}

func (d describer) Zones(ctx context.Context) ([]ec2types.AvailabilityZone, error) {
	out, err := d.compute.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, explain("ec2:DescribeAvailabilityZones", err)
	}
	return out.AvailabilityZones, nil
}
