package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// launch is what a group launches.
type launch struct {
	// types are the names of all instance types that may come.
	types []string
	// volume is the size of the root volume in bytes.
	volume int64
}

// launchBook reads launch templates and configurations. A numbered version of
// a template and a launch configuration never change and are read once;
// $Latest and $Default are asked for again after floatingFor.
type launchBook struct {
	account *Account
	now     func() time.Time

	mu    sync.Mutex
	known map[string]template
}

// floatingFor is how long $Latest and $Default are taken to mean what they
// meant. A group that launches from a new version meanwhile has the new
// version on its instances, but the shape is only needed for the next ones.
const floatingFor = 10 * time.Minute

// template is what we need of a launch template or configuration.
type template struct {
	instanceType string
	requirements *ec2types.InstanceRequirements
	volume       int64
	// until is when to ask again; zero for what never changes.
	until time.Time
}

// of returns what a group launches. It fails where that cannot be known, with
// a sentence that names what is missing.
func (b *launchBook) of(ctx context.Context, g *astypes.AutoScalingGroup) (launch, error) {
	if unit := aws.ToString(g.DesiredCapacityType); unit != "" && unit != "units" {
		return launch{}, fmt.Errorf("the group's capacity is counted in %s and not in instances, which is not supported", unit)
	}
	switch {
	case g.MixedInstancesPolicy != nil && g.MixedInstancesPolicy.LaunchTemplate != nil:
		return b.mixed(ctx, g.MixedInstancesPolicy.LaunchTemplate)
	case g.LaunchTemplate != nil:
		t, err := b.template(ctx, g.LaunchTemplate)
		if err != nil {
			return launch{}, err
		}
		return b.plain(ctx, t)
	case aws.ToString(g.LaunchConfigurationName) != "":
		t, err := b.configuration(ctx, *g.LaunchConfigurationName)
		if err != nil {
			return launch{}, err
		}
		return b.plain(ctx, t)
	}
	return launch{}, errors.New("the group has neither a launch template nor a launch configuration")
}

func (b *launchBook) plain(ctx context.Context, t template) (launch, error) {
	if t.instanceType != "" {
		return launch{types: []string{t.instanceType}, volume: t.volume}, nil
	}
	if t.requirements != nil {
		types, err := b.matching(ctx, t.requirements)
		return launch{types: types, volume: t.volume}, err
	}
	return launch{}, errors.New("the launch template names no instance type")
}

// mixed gathers the types of all overrides; without one, the template's own.
func (b *launchBook) mixed(ctx context.Context, lt *astypes.LaunchTemplate) (launch, error) {
	if lt.LaunchTemplateSpecification == nil {
		return launch{}, errors.New("the mixed instances policy has no launch template")
	}
	t, err := b.template(ctx, lt.LaunchTemplateSpecification)
	if err != nil {
		return launch{}, err
	}
	if len(lt.Overrides) == 0 {
		return b.plain(ctx, t)
	}
	out := launch{volume: t.volume}
	for _, o := range lt.Overrides {
		if w := aws.ToString(o.WeightedCapacity); w != "" && w != "1" {
			return launch{}, fmt.Errorf("the mixed instances policy gives %s the weight %s: capacity is then not counted in instances, which is not supported", aws.ToString(o.InstanceType), w)
		}
		types, err := b.override(ctx, o)
		if err != nil {
			return launch{}, err
		}
		out.types = append(out.types, types...)
	}
	slices.Sort(out.types)
	out.types = slices.Compact(out.types)
	return out, nil
}

func (b *launchBook) override(ctx context.Context, o astypes.LaunchTemplateOverrides) ([]string, error) {
	if name := aws.ToString(o.InstanceType); name != "" {
		return []string{name}, nil
	}
	if o.InstanceRequirements != nil {
		return b.matching(ctx, requirements(o.InstanceRequirements))
	}
	if o.LaunchTemplateSpecification == nil {
		return nil, errors.New("an override of the mixed instances policy names no instance type")
	}
	t, err := b.template(ctx, o.LaunchTemplateSpecification)
	if err != nil {
		return nil, err
	}
	l, err := b.plain(ctx, t)
	return l.types, err
}

// template reads a launch template, by id where there is one.
func (b *launchBook) template(ctx context.Context, spec *astypes.LaunchTemplateSpecification) (template, error) {
	version := aws.ToString(spec.Version)
	if version == "" {
		version = "$Default" // https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchTemplateSpecification.html
	}
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{version}}
	name := aws.ToString(spec.LaunchTemplateName)
	if id := aws.ToString(spec.LaunchTemplateId); id != "" {
		in.LaunchTemplateId, name = &id, id
	} else {
		in.LaunchTemplateName = &name
	}
	return b.remembered("template/"+name+"/"+version, func() (template, error) {
		out, err := b.account.compute.DescribeLaunchTemplateVersions(ctx, in)
		if err != nil {
			return template{}, templateError(name, version, explain("ec2:DescribeLaunchTemplateVersions", err))
		}
		if len(out.LaunchTemplateVersions) == 0 || out.LaunchTemplateVersions[0].LaunchTemplateData == nil {
			return template{}, templateError(name, version, ErrMissing)
		}
		t := newTemplate(out.LaunchTemplateVersions[0].LaunchTemplateData)
		if _, err := strconv.Atoi(version); err != nil {
			t.until = b.now().Add(floatingFor)
		}
		return t, nil
	})
}

func templateError(name, version string, err error) error {
	return fmt.Errorf("launch template %s, version %s: %w", name, version, err)
}

func newTemplate(data *ec2types.ResponseLaunchTemplateData) template {
	t := template{instanceType: string(data.InstanceType), requirements: data.InstanceRequirements, volume: defaultVolume}
	for _, m := range data.BlockDeviceMappings {
		if m.Ebs != nil && aws.ToInt32(m.Ebs.VolumeSize) > 0 {
			t.volume = int64(*m.Ebs.VolumeSize) * gibi
			break // EKS images have their root, and what the kubelet uses, on the first
		}
	}
	return t
}

func (b *launchBook) configuration(ctx context.Context, name string) (template, error) {
	return b.remembered("configuration/"+name, func() (template, error) {
		out, err := b.account.scaling.DescribeLaunchConfigurations(ctx, &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{name}})
		if err != nil {
			return template{}, fmt.Errorf("launch configuration %s: %w", name, explain("autoscaling:DescribeLaunchConfigurations", err))
		}
		if len(out.LaunchConfigurations) == 0 {
			return template{}, fmt.Errorf("launch configuration %s: %w", name, ErrMissing)
		}
		lc := out.LaunchConfigurations[0]
		t := template{instanceType: aws.ToString(lc.InstanceType), volume: defaultVolume}
		for _, m := range lc.BlockDeviceMappings {
			if m.Ebs != nil && aws.ToInt32(m.Ebs.VolumeSize) > 0 {
				t.volume = int64(*m.Ebs.VolumeSize) * gibi
				break
			}
		}
		return t, nil
	})
}

// remembered reads what is not known, or not known any more. Failures are not
// remembered.
func (b *launchBook) remembered(key string, read func() (template, error)) (template, error) {
	b.mu.Lock()
	t, ok := b.known[key]
	b.mu.Unlock()
	if ok && (t.until.IsZero() || b.now().Before(t.until)) {
		return t, nil
	}
	t, err := read()
	if err != nil {
		return template{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[key] = t
	return t, nil
}

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
