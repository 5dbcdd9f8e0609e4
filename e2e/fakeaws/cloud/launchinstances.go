package cloud

import (
	"regexp"
	"slices"
	"time"
)

// LaunchRequest is the input of LaunchInstances.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LaunchInstances.html
type LaunchRequest struct {
	Group     string
	Token     string
	Capacity  int
	Zones     []string
	ZoneIDs   []string
	SubnetIDs []string
	// Retry is none (also if empty) or retry-with-group-configuration.
	Retry string
}

// LaunchResult is its answer; partial success is normal.
type LaunchResult struct {
	Group     string
	Token     string
	Launched  []Launched
	Shortages []LaunchShortage
}

// Launched are instances of one type, zone and market.
type Launched struct {
	Type, Market, Zone, Subnet string
	IDs                        []string
}

// LaunchShortage is an error of a launch.
type LaunchShortage struct {
	Type, Market, Zone, Subnet, Code, Message string
}

// launchCall is a call that was or is being answered, by its token.
type launchCall struct {
	request LaunchRequest
	began   time.Time
	done    bool
	result  LaunchResult
}

// tokenLife is how long after the first call its token stands for it; later it is as good as new.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launching-instances-synchronous-provisioning.html#client-tokens-sp
const tokenLife = 8 * time.Hour

const retryWithGroupConfiguration = "retry-with-group-configuration"

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9\-_/]{1,64}$`)

// StartLaunch checks a LaunchInstances call and marks its token as in progress. A token that was answered already gives its answer again; one in progress,
// or with other parameters, is an error. The caller ends it, after the time a launch takes, with FinishLaunch.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-instances-synchronously.html
func (c *Cloud) StartLaunch(r LaunchRequest, now time.Time) (*LaunchResult, error) {
	c.Advance(now)
	g := c.findGroup(r.Group)
	if g == nil {
		return nil, noGroup(r.Group)
	}
	if !tokenForm.MatchString(r.Token) {
		return nil, invalid("1 validation error detected: Value '%s' at 'clientToken' failed to satisfy constraint: Member must satisfy regular expression pattern: [A-Za-z0-9\\-_\\/]+", r.Token)
	}
	if call := c.launched[r.key()]; call != nil && !(call.done && c.now.Sub(call.began) >= c.scaled(Duration(tokenLife))) {
		return call.again(r)
	}
	if err := c.checkLaunch(g, r); err != nil {
		return nil, err
	}
	c.launched[r.key()] = &launchCall{request: r, began: c.now}
	return nil, nil
}

func (r LaunchRequest) key() string { return r.Group + "\x00" + r.Token }

func (call *launchCall) again(r LaunchRequest) (*LaunchResult, error) {
	switch {
	case !call.request.equal(r):
		return nil, Errorf(400, "IdempotentParameterMismatch", "The client token '%s' was used before with other parameters", r.Token)
	case !call.done:
		return nil, Errorf(500, "IdempotentCallInProgress", "A request with the client token '%s' is in progress", r.Token)
	}
	return &call.result, nil
}

func (r LaunchRequest) equal(o LaunchRequest) bool {
	return r.Capacity == o.Capacity && r.Retry == o.Retry && slices.Equal(r.Zones, o.Zones) && slices.Equal(r.ZoneIDs, o.ZoneIDs) && slices.Equal(r.SubnetIDs, o.SubnetIDs)
}

// underWay is the capacity that calls ask for which are not answered yet.
func (c *Cloud) underWay(group string) int {
	sum := 0
	for _, call := range c.launched {
		if call.request.Group == group && !call.done {
			sum += call.request.Capacity
		}
	}
	return sum
}

// twoMarkets reports whether the group buys on demand and spot.
func (g *group) twoMarkets() bool {
	m := g.spec.MixedInstances
	if m == nil {
		return false
	}
	percent := 100
	if m.OnDemandPercentAbove != nil {
		percent = *m.OnDemandPercentAbove
	}
	return percent < 100 && (percent > 0 || m.OnDemandBase > 0)
}

// checkLaunch refuses what the page names as limitations. AWS does not publish the texts.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-instances-synchronously.html#limitations-considerations-synchronous
func (c *Cloud) checkLaunch(g *group, r LaunchRequest) error {
	switch {
	case r.Capacity < 1:
		return invalid("1 validation error detected: Value '%d' at 'requestedCapacity' failed to satisfy constraint: Member must have value greater than or equal to 1", r.Capacity)
	case g.spec.LaunchConfiguration != "":
		return invalid("LaunchInstances is not supported for Auto Scaling groups that use launch configurations")
	case g.spec.WarmPool != nil:
		return Errorf(400, "UnsupportedOperation", "LaunchInstances is not supported for Auto Scaling groups that have a warm pool")
	case g.twoMarkets():
		return invalid("LaunchInstances is not supported for mixed instances policies that combine On-Demand and Spot Instances")
	case r.Retry != "" && r.Retry != "none" && r.Retry != retryWithGroupConfiguration:
		return invalid("1 validation error detected: Value '%s' at 'retryStrategy' failed to satisfy constraint: Member must satisfy enum value set: [none, retry-with-group-configuration]", r.Retry)
	case len(r.Zones) > 0 && len(r.ZoneIDs) > 0:
		return invalid("You cannot specify both AvailabilityZones and AvailabilityZoneIds")
	case g.isSuspended("Launch"):
		return invalid("The Launch process of Auto Scaling group %s is suspended", r.Group)
	case g.desired+c.underWay(r.Group)+r.Capacity > g.max:
		return invalid("The requested capacity %d added to the desired capacity %d is above max value %d for the AutoScalingGroup.", r.Capacity, g.desired, g.max)
	}
	if g.countOf(r.Capacity) > maxInstancesPerCall {
		return invalid("The number of instances to launch must not exceed %d", maxInstancesPerCall)
	}
	_, err := g.launchZone(r)
	return err
}

// countOf is how many instances make up a capacity, by the smallest weight.
func (g *group) countOf(capacity int) int {
	weight := 1
	if m := g.spec.MixedInstances; m != nil && len(m.Overrides) > 0 {
		weight = max(1, slices.MinFunc(m.Overrides, func(a, b Override) int { return a.Weight - b.Weight }).Weight)
	}
	return (capacity + weight - 1) / weight
}

// launchZone is the one zone that the request means.
func (g *group) launchZone(r LaunchRequest) (string, error) {
	var named []string
	for _, z := range g.spec.Zones {
		if slices.Contains(r.Zones, z) || slices.Contains(r.ZoneIDs, ZoneID(z)) || slices.Contains(r.SubnetIDs, subnetOf(z)) {
			named = append(named, z)
		}
	}
	given := len(r.Zones) + len(r.ZoneIDs) + len(r.SubnetIDs)
	switch {
	case given == 0 && len(g.spec.Zones) == 1:
		return g.spec.Zones[0], nil
	case given == 0:
		return "", invalid("Either AvailabilityZones or SubnetIds must be specified for Auto Scaling groups with multiple Availability Zones")
	case len(named) == 0:
		return "", invalid("The specified Availability Zone or subnet is not part of the configuration of Auto Scaling group %s", g.spec.Name)
	case len(named) > 1 || len(r.Zones) > 1 || len(r.ZoneIDs) > 1 || len(r.SubnetIDs) > 1:
		return "", invalid("Instances can be launched in one Availability Zone only")
	}
	return named[0], nil
}

// FinishLaunch launches what StartLaunch has accepted. What cannot be launched is told in the result; desired grows by what was launched, or, with the retry
// strategy of the group, by all that was asked for.
func (c *Cloud) FinishLaunch(r LaunchRequest, now time.Time) (LaunchResult, error) {
	c.Advance(now)
	call := c.launched[r.key()]
	g := c.findGroup(r.Group)
	result := LaunchResult{Group: r.Group, Token: r.Token}
	if g == nil { // deleted meanwhile
		delete(c.launched, r.key())
		return result, noGroup(r.Group)
	}
	zone, err := g.launchZone(r)
	if err != nil {
		return result, err
	}
	src, err := c.sourceOf(g.spec)
	if err != nil {
		delete(c.launched, r.key())
		return result, err
	}
	got := 0
	for got < r.Capacity {
		o, failed := c.choose(g, zone, src)
		if len(failed) > 0 {
			result.short(failed)
			break
		}
		have := g.capacity()
		cause := c.sentence("a user request launched instances synchronously, increasing the capacity from %d to %d", have, have+o.capacity())
		g.desired += o.capacity()
		result.launched(c.launch(g, zone, o, cause), o)
		got += o.capacity()
	}
	if got < r.Capacity && r.Retry == retryWithGroupConfiguration {
		c.setDesired(g, g.desired+r.Capacity-got, "a user request launched instances with the group's configuration as its retry strategy")
	}
	call.done, call.result = true, result
	return result, nil
}

func (r *LaunchResult) launched(i *instance, o offer) {
	for n := range r.Launched {
		if l := &r.Launched[n]; l.Type == i.Type && l.Market == o.marketType() {
			l.IDs = append(l.IDs, i.ID)
			return
		}
	}
	r.Launched = append(r.Launched, Launched{Type: i.Type, Market: o.marketType(), Zone: i.Zone, Subnet: i.Subnet, IDs: []string{i.ID}})
}

func (r *LaunchResult) short(failed []*failure) {
	for _, f := range failed {
		r.Shortages = append(r.Shortages, LaunchShortage{
			Type: f.offer.typ.Name, Market: f.offer.marketType(), Zone: f.zone, Subnet: subnetOf(f.zone), Code: f.code, Message: f.message,
		})
	}
}

// marketType words the market as LaunchInstances does.
func (o offer) marketType() string {
	if o.spot {
		return "Spot"
	}
	return "OnDemand"
}
