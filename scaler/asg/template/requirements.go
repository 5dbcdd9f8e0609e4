package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// matching asks EC2 which types meet the requirements of an attribute-based
// group, of those that the template's image can boot.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-mixed-instances-group-attribute-based-instance-type-selection.html
func (b *launchBook) matching(ctx context.Context, r *ec2types.InstanceRequirements, t launchTemplate) ([]offer, error) {
	question, err := asked(r)
	if err != nil {
		return nil, err
	}
	var of ec2types.ArchitectureType
	if of, t.doubt, err = b.architecture(ctx, r, t.image); err != nil {
		return nil, err
	}
	types, err := b.aws.MatchingTypes(ctx, []ec2types.ArchitectureType{of}, question)
	if err != nil {
		return nil, fmt.Errorf("types that meet the group's requirements: %w", err)
	}
	if len(types) == 0 {
		return nil, errors.New("no instance type meets the group's requirements")
	}
	offers := make([]offer, 0, len(types))
	for _, name := range types {
		offers = append(offers, offer{name, t})
	}
	return offers, nil
}

// architecture is that of an image. It needs no question where the makers of the processors that may
// come tell it, or the path of a parameter that names the image. Without the right to ask, and where such
// a path does not tell it, it is x86_64, as most are, with doubt.
func (b *launchBook) architecture(ctx context.Context, r *ec2types.InstanceRequirements, image string) (of ec2types.ArchitectureType, doubt, err error) {
	graviton := slices.Contains(r.CpuManufacturers, ec2types.CpuManufacturerAmazonWebServices)
	parameter, isParameter := strings.CutPrefix(image, imageParameter)
	switch {
	case len(r.CpuManufacturers) == 1 && graviton:
		return ec2types.ArchitectureTypeArm64, nil, nil
	case len(r.CpuManufacturers) > 0 && !graviton, image == "":
		return ec2types.ArchitectureTypeX8664, nil, nil
	case isParameter:
		of, doubt = architectureIn(parameter)
		return of, doubt, nil
	}
	b.mu.Lock()
	of, known := b.architectures[image]
	b.mu.Unlock()
	if known {
		return of, nil, nil
	}
	described, err := b.aws.Image(ctx, image)
	if err == nil && described == nil {
		err = errMissing
	}
	var right interface{ Denied() bool }
	switch {
	case errors.As(err, &right) && right.Denied():
		return ec2types.ArchitectureTypeX8664, fmt.Errorf("the types that may come are taken to be of %s, as image %s is not known: %w", ec2types.ArchitectureTypeX8664, image, err), nil
	case err != nil:
		return "", nil, fmt.Errorf("the architecture of image %s: %w", image, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	of = ec2types.ArchitectureType(described.Architecture)
	b.architectures[image] = of
	return of, nil, nil
}

// architectureIn is the one that the path of a parameter names. Of AWS's own those for arm64 do, and
// not all of the others.
// https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
func architectureIn(parameter string) (of ec2types.ArchitectureType, doubt error) {
	names := func(some ...string) bool {
		return slices.ContainsFunc(some, func(name string) bool { return strings.Contains(strings.ToLower(parameter), name) })
	}
	switch {
	case names("arm64", "aarch64", "graviton"):
		return ec2types.ArchitectureTypeArm64, nil
	case !names("x86_64", "amd64") && !strings.HasPrefix(parameter, "/aws/service/"):
		doubt = fmt.Errorf("the types that may come are taken to be of %s, as the path of parameter %s tells no architecture: have it name arm64 or x86_64, or the group's requirements a maker of processors", ec2types.ArchitectureTypeX8664, parameter)
	}
	return ec2types.ArchitectureTypeX8664, doubt
}

// imageParameter begins the name of an image that a parameter of Systems Manager has.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/using-systems-manager-parameters.html
const imageParameter = "resolve:ssm:"

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
