package asg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// matching asks EC2 which types meet the requirements of an attribute-based
// group.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-mixed-instances-group-attribute-based-instance-type-selection.html
func (b *launchBook) matching(ctx context.Context, r *ec2types.InstanceRequirements) ([]string, error) {
	in := &ec2.GetInstanceTypesFromInstanceRequirementsInput{
		ArchitectureTypes:    architectures(r),
		VirtualizationTypes:  []ec2types.VirtualizationType{ec2types.VirtualizationTypeHvm},
		InstanceRequirements: requested(r),
	}
	var types []string
	for {
		out, err := b.account.compute.GetInstanceTypesFromInstanceRequirements(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("types that meet the group's requirements: %w", explain("ec2:GetInstanceTypesFromInstanceRequirements", err))
		}
		for _, t := range out.InstanceTypes {
			types = append(types, aws.ToString(t.InstanceType))
		}
		if aws.ToString(out.NextToken) == "" {
			break
		}
		in.NextToken = out.NextToken
	}
	if len(types) == 0 {
		return nil, errors.New("no instance type meets the group's requirements")
	}
	return types, nil
}

// architectures: Graviton alone is arm64; everything else is asked for as
// x86_64, because one image has one architecture.
func architectures(r *ec2types.InstanceRequirements) []ec2types.ArchitectureType {
	if len(r.CpuManufacturers) == 1 && r.CpuManufacturers[0] == ec2types.CpuManufacturerAmazonWebServices {
		return []ec2types.ArchitectureType{ec2types.ArchitectureTypeArm64}
	}
	return []ec2types.ArchitectureType{ec2types.ArchitectureTypeX8664}
}

// requirements and requested carry over what narrows the choice of types most.
// Prices and bandwidths do not: more types than will come make the shape's
// minimum smaller, never larger.
func requirements(r *astypes.InstanceRequirements) *ec2types.InstanceRequirements {
	out := &ec2types.InstanceRequirements{
		AllowedInstanceTypes:  r.AllowedInstanceTypes,
		ExcludedInstanceTypes: r.ExcludedInstanceTypes,
		BareMetal:             ec2types.BareMetal(strings.ToLower(string(r.BareMetal))),
		BurstablePerformance:  ec2types.BurstablePerformance(strings.ToLower(string(r.BurstablePerformance))),
	}
	for _, m := range r.CpuManufacturers {
		out.CpuManufacturers = append(out.CpuManufacturers, ec2types.CpuManufacturer(m))
	}
	for _, g := range r.InstanceGenerations {
		out.InstanceGenerations = append(out.InstanceGenerations, ec2types.InstanceGeneration(g))
	}
	for _, m := range r.AcceleratorManufacturers {
		out.AcceleratorManufacturers = append(out.AcceleratorManufacturers, ec2types.AcceleratorManufacturer(m))
	}
	if r.VCpuCount != nil {
		out.VCpuCount = &ec2types.VCpuCountRange{Min: r.VCpuCount.Min, Max: r.VCpuCount.Max}
	}
	if r.MemoryMiB != nil {
		out.MemoryMiB = &ec2types.MemoryMiB{Min: r.MemoryMiB.Min, Max: r.MemoryMiB.Max}
	}
	if r.AcceleratorCount != nil {
		out.AcceleratorCount = &ec2types.AcceleratorCount{Min: r.AcceleratorCount.Min, Max: r.AcceleratorCount.Max}
	}
	return out
}

func requested(r *ec2types.InstanceRequirements) *ec2types.InstanceRequirementsRequest {
	out := &ec2types.InstanceRequirementsRequest{
		AllowedInstanceTypes:     r.AllowedInstanceTypes,
		ExcludedInstanceTypes:    r.ExcludedInstanceTypes,
		BareMetal:                r.BareMetal,
		BurstablePerformance:     r.BurstablePerformance,
		CpuManufacturers:         r.CpuManufacturers,
		InstanceGenerations:      r.InstanceGenerations,
		AcceleratorManufacturers: r.AcceleratorManufacturers,
		VCpuCount:                &ec2types.VCpuCountRangeRequest{Min: aws.Int32(0)},
		MemoryMiB:                &ec2types.MemoryMiBRequest{Min: aws.Int32(0)},
	}
	if r.VCpuCount != nil {
		out.VCpuCount = &ec2types.VCpuCountRangeRequest{Min: r.VCpuCount.Min, Max: r.VCpuCount.Max}
	}
	if r.MemoryMiB != nil {
		out.MemoryMiB = &ec2types.MemoryMiBRequest{Min: r.MemoryMiB.Min, Max: r.MemoryMiB.Max}
	}
	if r.AcceleratorCount != nil {
		out.AcceleratorCount = &ec2types.AcceleratorCountRequest{Min: r.AcceleratorCount.Min, Max: r.AcceleratorCount.Max}
	}
	return out
}
