package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// launch is what a group launches.
type launch struct {
	// offers are all types that may come, each once with each template.
	offers []offer
	// template is the group's own, of which overrides may have others.
	template launchTemplate
	// spot and onDemand say what may come; both may.
	spot, onDemand bool
}

// offer is one kind of instance that may come.
type offer struct {
	name string // of the type
	from launchTemplate
}

// doubts are those about the templates that are offered, each once.
func (l launch) doubts() []error {
	var list []error
	for _, o := range l.offers {
		if doubt := o.from.doubt; doubt != nil && !slices.ContainsFunc(list, func(d error) bool { return d.Error() == doubt.Error() }) {
			list = append(list, doubt)
		}
	}
	return list
}

// errUncountable: n more instances are not n more of a group's desired capacity.
var errUncountable = errors.New("not counted in instances, which is not supported")

// of returns what a group launches. It fails where that cannot be known, with
// a sentence that names what is missing.
func (b *launchBook) of(ctx context.Context, g *astypes.AutoScalingGroup) (launch, error) {
	if unit := aws.ToString(g.DesiredCapacityType); unit != "" && unit != "units" {
		return launch{}, fmt.Errorf("the group's capacity is counted in %s and %w", unit, errUncountable)
	}
	switch {
	case g.MixedInstancesPolicy != nil && g.MixedInstancesPolicy.LaunchTemplate != nil:
		return b.mixed(ctx, g.MixedInstancesPolicy)
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

func (b *launchBook) plain(ctx context.Context, t launchTemplate) (launch, error) {
	offers, err := b.offers(ctx, t)
	return launch{offers: offers, template: t, spot: t.spot, onDemand: !t.spot}, err
}

// offers are the types that a template names or describes.
func (b *launchBook) offers(ctx context.Context, t launchTemplate) ([]offer, error) {
	if t.instanceType != "" {
		return []offer{{t.instanceType, t}}, nil
	}
	if t.requirements == nil {
		return nil, errors.New("the launch template names no instance type")
	}
	return b.matching(ctx, t.requirements, t)
}

// mixed gathers the types of all overrides; without one, the template's own.
func (b *launchBook) mixed(ctx context.Context, policy *astypes.MixedInstancesPolicy) (launch, error) {
	lt := policy.LaunchTemplate
	if lt.LaunchTemplateSpecification == nil {
		return launch{}, errors.New("the mixed instances policy has no launch template")
	}
	t, err := b.template(ctx, lt.LaunchTemplateSpecification)
	if err != nil {
		return launch{}, err
	}
	out := launch{template: t}
	out.spot, out.onDemand = purchases(policy.InstancesDistribution)
	if len(lt.Overrides) == 0 {
		out.offers, err = b.offers(ctx, t)
		return out, err
	}
	for _, o := range lt.Overrides {
		if w := aws.ToString(o.WeightedCapacity); w != "" && w != "1" {
			return launch{}, fmt.Errorf("the mixed instances policy gives %s the weight %s: capacity is then %w", aws.ToString(o.InstanceType), w, errUncountable)
		}
		offers, err := b.override(ctx, o, t)
		if err != nil {
			return launch{}, err
		}
		out.offers = append(out.offers, offers...)
	}
	order := func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.from.version, b.from.version))
	}
	slices.SortFunc(out.offers, order)
	out.offers = slices.CompactFunc(out.offers, func(a, b offer) bool { return order(a, b) == 0 })
	return out, nil
}

// purchases returns what a distribution launches. AWS launches on demand where
// nothing is set.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
func purchases(d *astypes.InstancesDistribution) (spot, onDemand bool) {
	percent, base := int32(100), int32(0)
	if d != nil {
		base = aws.ToInt32(d.OnDemandBaseCapacity)
		if d.OnDemandPercentageAboveBaseCapacity != nil {
			percent = *d.OnDemandPercentageAboveBaseCapacity
		}
	}
	return percent < 100, percent > 0 || base > 0
}

func (b *launchBook) override(ctx context.Context, o astypes.LaunchTemplateOverrides, t launchTemplate) ([]offer, error) {
	if o.LaunchTemplateSpecification != nil {
		own, err := b.template(ctx, o.LaunchTemplateSpecification)
		if err != nil {
			return nil, err
		}
		t = own
	}
	if name := aws.ToString(o.InstanceType); name != "" {
		return []offer{{name, t}}, nil
	}
	if o.InstanceRequirements != nil {
		r, err := carried[ec2types.InstanceRequirements](o.InstanceRequirements)
		if err != nil {
			return nil, err
		}
		return b.matching(ctx, r, t)
	}
	if o.LaunchTemplateSpecification == nil {
		return nil, errors.New("an override of the mixed instances policy names no instance type")
	}
	return b.offers(ctx, t)
}
