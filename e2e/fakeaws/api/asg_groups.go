package api

import (
	"errors"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// mostInstances bounds sizes, so that a slip of the pen is not simulated.
const mostInstances = 100_000

// groupParameters are those that CreateAutoScalingGroup and UpdateAutoScalingGroup share.
var groupParameters = []string{
	"AutoScalingGroupName", "LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy", "MinSize", "MaxSize", "DesiredCapacity", "DefaultCooldown",
	"AvailabilityZones", "VPCZoneIdentifier", "HealthCheckType", "HealthCheckGracePeriod", "TerminationPolicies", "NewInstancesProtectedFromScaleIn",
	"MaxInstanceLifetime", "CapacityRebalance",
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html
func createGroup(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := only(v, append([]string{"Tags", "LifecycleHookSpecificationList"}, groupParameters...)...); err != nil {
		return nil, err
	}
	if err := required(v, "AutoScalingGroupName", "MinSize", "MaxSize"); err != nil {
		return nil, err
	}
	spec, err := groupOf(c, v, cloud.Group{Name: v.Get("AutoScalingGroupName"), Tags: map[string]string{}})
	if err != nil {
		return nil, err
	}
	if len(spec.Zones) == 0 {
		return nil, cloud.Errorf(400, "ValidationError", "At least one Availability Zone or VPC Subnet is required.")
	}
	for _, tag := range v.Structs("Tags.member") {
		spec.Tags[tag.Get("Key")] = tag.Get("Value")
		if !tag.Bool("PropagateAtLaunch", true) {
			spec.OwnTags = append(spec.OwnTags, tag.Get("Key"))
		}
	}
	for _, hook := range v.Structs("LifecycleHookSpecificationList.member") {
		h, err := hookOf(cloud.Hook{Name: hook.Get("LifecycleHookName")}, hook)
		if err != nil {
			return nil, err
		}
		spec.Hooks = append(spec.Hooks, h)
	}
	return nil, asValidation(c.AddGroup(spec, now))
}

// updateGroup judges the whole before it changes anything.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
func updateGroup(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := only(v, groupParameters...); err != nil {
		return nil, err
	}
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	g, err := c.Group(v.Get("AutoScalingGroupName"))
	if err != nil {
		return nil, err
	}
	spec := g.Spec
	spec.Min, spec.Max, spec.Desired = g.Min, g.Max, nil
	if spec, err = groupOf(c, v, spec); err != nil {
		return nil, err
	}
	return nil, asValidation(c.UpdateGroup(spec, now))
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteAutoScalingGroup.html
func deleteGroup(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "AutoScalingGroupName"); err != nil {
		return nil, err
	}
	return nil, c.DeleteGroup(v.Get("AutoScalingGroupName"), v.Bool("ForceDelete", false), now)
}

// asValidation words what the checks of a spec find as Auto Scaling does.
func asValidation(err error) error {
	if e := (*cloud.Error)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	return cloud.Errorf(400, "ValidationError", "%v", err)
}

// groupOf is a group with what the parameters name.
func groupOf(c *cloud.Cloud, v wire.Values, g cloud.Group) (cloud.Group, error) {
	for name, size := range map[string]*int{"MinSize": &g.Min, "MaxSize": &g.Max, "DefaultCooldown": &g.CooldownSeconds, "MaxInstanceLifetime": &g.MaxInstanceLifetimeSec} {
		if !v.Has(name) {
			continue
		}
		n, err := within(v, name, 0, 365*24*3600)
		if err != nil {
			return g, err
		}
		*size = n
	}
	if v.Has("DesiredCapacity") {
		n, err := within(v, "DesiredCapacity", 0, mostInstances)
		if err != nil {
			return g, err
		}
		g.Desired = &n
	}
	// What a group shows and cannot have otherwise here.
	if v.Has("HealthCheckType") && v.Get("HealthCheckType") != healthCheckType {
		return g, notSimulated("HealthCheckType " + v.Get("HealthCheckType"))
	}
	if n, err := v.Int("HealthCheckGracePeriod", healthCheckGrace); err != nil || n != healthCheckGrace {
		return g, errors.Join(err, notSimulated("HealthCheckGracePeriod "+v.Get("HealthCheckGracePeriod")))
	}
	g.ProtectNewInstances = v.Bool("NewInstancesProtectedFromScaleIn", g.ProtectNewInstances)
	g.CapacityRebalance = v.Bool("CapacityRebalance", g.CapacityRebalance)
	if policies := v.List("TerminationPolicies.member"); len(policies) > 0 {
		g.TerminationPolicies = policies
	}
	var err error
	if g.Zones, err = zonesOf(c, v, g.Zones); err != nil {
		return g, err
	}
	return launchedFrom(v, g)
}

// zonesOf are the zones of a call, by name or by their subnets.
func zonesOf(c *cloud.Cloud, v wire.Values, zones []string) ([]string, error) {
	if named := v.List("AvailabilityZones.member"); len(named) > 0 {
		zones = named
	}
	if !v.Has("VPCZoneIdentifier") {
		return zones, nil
	}
	var ofSubnets []string
	for subnet := range strings.SplitSeq(v.Get("VPCZoneIdentifier"), ",") {
		zone, ok := c.ZoneOfSubnet(strings.TrimSpace(subnet))
		if !ok {
			return nil, cloud.Errorf(400, "ValidationError", "The subnet ID '%s' does not exist", subnet)
		}
		ofSubnets = append(ofSubnets, zone)
	}
	return ofSubnets, nil
}

// launchedFrom is a group with the launch template, launch configuration or policy that a call names, in place of what there was.
func launchedFrom(v wire.Values, g cloud.Group) (cloud.Group, error) {
	template, policy := v.Sub("LaunchTemplate"), v.Sub("MixedInstancesPolicy")
	if len(template) == 0 && len(policy) == 0 && !v.Has("LaunchConfigurationName") {
		return g, nil
	}
	g.Type, g.Types, g.LaunchTemplate, g.MixedInstances, g.LaunchConfiguration = "", nil, nil, nil, v.Get("LaunchConfigurationName")
	if len(template) > 0 {
		ref, err := templateRef(template)
		if err != nil {
			return g, err
		}
		g.LaunchTemplate = &ref
	}
	if len(policy) > 0 {
		mixed, err := mixedOf(policy)
		if err != nil {
			return g, err
		}
		g.MixedInstances = &mixed
	}
	return g, nil
}

func templateRef(v wire.Values) (cloud.TemplateRef, error) {
	ref := cloud.TemplateRef{ID: v.Get("LaunchTemplateId"), Name: v.Get("LaunchTemplateName"), Version: v.Get("Version")}
	if ref.ID != "" && ref.Name != "" {
		return ref, cloud.Errorf(400, "ValidationError", "Valid requests must contain either launchTemplateId or LaunchTemplateName")
	}
	return ref, only(v, "LaunchTemplateId", "LaunchTemplateName", "Version")
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_MixedInstancesPolicy.html
func mixedOf(v wire.Values) (m cloud.MixedInstances, err error) {
	template, distribution := v.Sub("LaunchTemplate"), v.Sub("InstancesDistribution")
	if err := errors.Join(only(v, "LaunchTemplate", "InstancesDistribution"), only(template, "LaunchTemplateSpecification", "Overrides"),
		only(distribution, "OnDemandAllocationStrategy", "OnDemandBaseCapacity", "OnDemandPercentageAboveBaseCapacity", "SpotAllocationStrategy")); err != nil {
		return m, err
	}
	if m.LaunchTemplate, err = templateRef(template.Sub("LaunchTemplateSpecification")); err != nil {
		return m, err
	}
	if err := errors.Join(oneOf(distribution, "OnDemandAllocationStrategy", "lowest-price", "prioritized"),
		oneOf(distribution, "SpotAllocationStrategy", "lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized")); err != nil {
		return m, err
	}
	m.OnDemandAllocation, m.SpotAllocation = distribution.Get("OnDemandAllocationStrategy"), distribution.Get("SpotAllocationStrategy")
	if m.OnDemandBase, err = within(distribution, "OnDemandBaseCapacity", 0, mostInstances); err != nil {
		return m, err
	}
	if distribution.Has("OnDemandPercentageAboveBaseCapacity") {
		percent, err := within(distribution, "OnDemandPercentageAboveBaseCapacity", 0, 100)
		if err != nil {
			return m, err
		}
		m.OnDemandPercentAbove = &percent
	}
	for _, o := range template.Structs("Overrides.member") {
		override, err := overrideOf(o)
		if err != nil {
			return m, err
		}
		m.Overrides = append(m.Overrides, override)
	}
	return m, nil
}

func overrideOf(v wire.Values) (cloud.Override, error) {
	o := cloud.Override{Type: v.Get("InstanceType")}
	if err := only(v, "InstanceType", "WeightedCapacity", "LaunchTemplateSpecification", "InstanceRequirements"); err != nil {
		return o, err
	}
	if v.Has("WeightedCapacity") {
		weight, err := within(v, "WeightedCapacity", 1, 999)
		if err != nil {
			return o, err
		}
		o.Weight = weight
	}
	if template := v.Sub("LaunchTemplateSpecification"); len(template) > 0 {
		ref, err := templateRef(template)
		if err != nil {
			return o, err
		}
		o.LaunchTemplate = &ref
	}
	if requirements := v.Sub("InstanceRequirements"); len(requirements) > 0 {
		r, err := requirementsOf(requirements, asgLists)
		if err != nil {
			return o, cloud.Errorf(400, "ValidationError", "%s", wire.ErrorOf(err).Message)
		}
		o.Requirements = &r
	}
	return o, nil
}
