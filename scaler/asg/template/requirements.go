package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// matching asks EC2 which types meet the requirements of an attribute-based
// group.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-mixed-instances-group-attribute-based-instance-type-selection.html
func (b *launchBook) matching(ctx context.Context, r *ec2types.InstanceRequirements) ([]string, error) {
	question, err := asked(r)
	if err != nil {
		return nil, err
	}
	types, err := b.aws.MatchingTypes(ctx, architectures(r), question)
	if err != nil {
		return nil, fmt.Errorf("types that meet the group's requirements: %w", err)
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

// carried copies requirements from one API's type to another's, whose fields bear
// the same names: Auto Scaling's, EC2's in a launch template, EC2's in a question.
// Each field counts. One that got lost would let in types that will never come, and the node
// template would promise less than any real node has.
func carried[To any](requirements any) (*To, error) {
	raw, err := json.Marshal(requirements)
	if err != nil {
		return nil, fmt.Errorf("requirements of instance types: %w", err)
	}
	to := new(To)
	if err := json.Unmarshal(raw, to); err != nil {
		return nil, fmt.Errorf("requirements of instance types: %w", err)
	}
	return to, nil
}

// asked is the question for requirements. EC2 wants the least number of CPUs and
// memory even where there is none.
func asked(r *ec2types.InstanceRequirements) (*ec2types.InstanceRequirementsRequest, error) {
	out, err := carried[ec2types.InstanceRequirementsRequest](r)
	if err != nil {
		return nil, err
	}
	if out.VCpuCount == nil {
		out.VCpuCount = &ec2types.VCpuCountRangeRequest{Min: aws.Int32(0)}
	}
	if out.MemoryMiB == nil {
		out.MemoryMiB = &ec2types.MemoryMiBRequest{Min: aws.Int32(0)}
	}
	return out, nil
}
