package cloud

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
)

// Shortage makes launches fail. Empty fields match everything.
type Shortage struct {
	Group  string `json:"group,omitempty"`
	Zone   string `json:"zone,omitempty"`
	Type   string `json:"type,omitempty"`
	Market string `json:"market,omitempty"` // spot or on-demand
	// Code is one of the keys of the texts below; "" means InsufficientInstanceCapacity. Any other code needs a Message.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Left is how many launches still succeed before the shortage begins.
	Left int `json:"left,omitempty"`
}

// Codes of failed launches that the fake knows the texts of.
const (
	InsufficientInstanceCapacity      = "InsufficientInstanceCapacity"
	UnfulfillableCapacity             = "UnfulfillableCapacity"
	MaxSpotInstanceCountExceeded      = "MaxSpotInstanceCountExceeded"
	VcpuLimitExceeded                 = "VcpuLimitExceeded"
	InsufficientFreeAddressesInSubnet = "InsufficientFreeAddressesInSubnet"
	Unsupported                       = "Unsupported"
	InvalidAMI                        = "InvalidAMIID.NotFound"
)

const (
	spotAnswer   = "There is no Spot capacity available that matches your request."
	failedSuffix = " Launching EC2 instance failed."
)

// SetShortages replaces the rules that make launches fail.
func (c *Cloud) SetShortages(rules []Shortage) {
	c.shortages = slices.Clone(rules)
	for _, g := range c.groups {
		c.reconcile(g)
	}
}

// Shortages are the rules in force.
func (c *Cloud) Shortages() []Shortage { return slices.Clone(c.shortages) }

// failure is why a launch failed.
type failure struct {
	offer   offer
	zone    string
	code    string
	message string
}

// available takes one launch out of the rules that match it, or tells why it fails.
func (c *Cloud) available(g *group, zone string, o offer) *failure {
	if _, err := c.Image(o.image); err != nil {
		return &failure{offer: o, zone: zone, code: InvalidAMI, message: messageOf(err)}
	}
	var hit []*Shortage
	for n := range c.shortages {
		s := &c.shortages[n]
		if !s.matches(g.spec.Name, zone, o) {
			continue
		}
		if s.Left == 0 {
			code := cmp.Or(s.Code, InsufficientInstanceCapacity)
			return &failure{offer: o, zone: zone, code: code, message: cmp.Or(s.Message, c.textOf(code, zone, o))}
		}
		hit = append(hit, s)
	}
	for _, s := range hit {
		s.Left--
	}
	return nil
}

func (s Shortage) matches(group, zone string, o offer) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(s.Group, group) && is(s.Zone, zone) && is(s.Type, o.typ.Name) && is(s.Market, o.market())
}

// textOf words a failed launch as EC2 does.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
func (c *Cloud) textOf(code, zone string, o offer) string {
	switch code {
	case InsufficientInstanceCapacity:
		if o.spot {
			return spotAnswer
		}
		return "We currently do not have sufficient " + o.typ.Name + " capacity in the Availability Zone you requested (" + zone +
			"). Our system will be working on provisioning additional capacity. You can currently get " + o.typ.Name +
			" capacity by not specifying an Availability Zone in your request or choosing " + c.otherZones(zone) + "."
	case UnfulfillableCapacity:
		return "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."
	case MaxSpotInstanceCountExceeded:
		return "Max spot instance count exceeded"
	case VcpuLimitExceeded:
		return "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to. " +
			"Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
	case InsufficientFreeAddressesInSubnet:
		return "There are not enough free addresses in subnet '" + subnetOf(zone) + "' to satisfy the requested number of instances."
	case Unsupported:
		return "Your requested instance type (" + o.typ.Name + ") is not supported in your requested Availability Zone (" + zone +
			"). Please retry your request by not specifying an Availability Zone or choosing " + c.otherZones(zone) + "."
	case InvalidAMI:
		return "The image id '[" + o.image + "]' does not exist"
	}
	return code
}

func (c *Cloud) otherZones(zone string) string {
	var names []string
	for _, letter := range []string{"a", "b", "c"} {
		if other := c.spec.Region + letter; other != zone {
			names = append(names, other)
		}
	}
	return strings.Join(names, ", ")
}

// status words the failure as the StatusMessage of a scaling activity. Groups with a mixed instances policy, and spot groups, launch through EC2 Fleet,
// whose errors carry their code.
func (f *failure) status(mixed bool) string {
	text := f.message
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	switch {
	case f.offer.spot:
		text = "Could not launch Spot Instances. " + f.code + " - " + text
	case mixed:
		text = "Could not launch On-Demand Instances. " + f.code + " - " + text
	}
	return text + failedSuffix
}

// launchMissing launches what the group lacks: from the warm pool, then zone by zone, the emptiest first.
func (c *Cloud) launchMissing(g *group, missing int) {
	src, err := c.sourceOf(g.spec)
	if err != nil {
		c.failLaunch(g, g.spec.Zones[0], messageOf(err)+failedSuffix)
		c.retryLaunch(g)
		return
	}
	without := map[string]bool{} // zones that have failed in this attempt
	counts, have := g.zoneCounts(), g.capacity()
	for missing > 0 {
		if i := c.fromWarmPool(g); i != nil {
			counts[i.Zone]++
			have, missing = have+i.weight(), missing-i.weight()
			continue
		}
		zone, ok := g.emptiestZone(counts, without)
		if !ok {
			c.retryLaunch(g)
			return
		}
		o, failed := c.choose(g, zone, src)
		if len(failed) > 0 {
			without[zone] = true
			c.failLaunch(g, zone, failed[len(failed)-1].status(src.mixed))
			continue
		}
		c.launch(g, zone, o, g.startedCause(have, o.capacity()))
		counts[zone]++
		have, missing = have+o.capacity(), missing-o.capacity()
	}
}

func (o offer) capacity() int { return max(1, o.weight) }

func (g *group) startedCause(have, n int) string {
	return g.cause("an instance was started in response to a difference between desired and actual capacity, increasing the capacity from %d to %d", have, have+n)
}

// emptiestZone is the zone with the fewest instances, the first of those named first.
func (g *group) emptiestZone(counts map[string]int, without map[string]bool) (string, bool) {
	best, found := "", false
	for _, z := range g.spec.Zones {
		if without[z] {
			continue
		}
		if !found || counts[z] < counts[best] {
			best, found = z, true
		}
	}
	return best, found
}

func (g *group) zoneCounts() map[string]int {
	counts := map[string]int{}
	for _, i := range g.counting() {
		counts[i.Zone]++
	}
	return counts
}

// choose finds the first offer that has capacity in the zone. If none has, it answers why each failed.
func (c *Cloud) choose(g *group, zone string, src source) (offer, []*failure) {
	var failed []*failure
	for _, o := range c.inMarket(g, src) {
		f := c.available(g, zone, o)
		if f == nil {
			return o, nil
		}
		failed = append(failed, f)
	}
	return offer{}, failed
}

// inMarket gives the offers of a mixed instances policy the market that the next instance is to be bought on.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
func (c *Cloud) inMarket(g *group, src source) []offer {
	if !src.mixed {
		return src.offers
	}
	spot := g.nextIsSpot()
	offers := slices.Clone(src.offers)
	for n := range offers {
		offers[n].spot = spot
	}
	byPrice := spot || g.spec.MixedInstances.OnDemandAllocation == "lowest-price"
	if byPrice {
		slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.unitPrice(), b.unitPrice()) })
	}
	return offers
}

func (o offer) unitPrice() float64 { return o.typ.HourlyUSD / float64(o.capacity()) }

// nextIsSpot: the base is bought on demand, above it the given percentage, rounded up.
func (g *group) nextIsSpot() bool {
	m := g.spec.MixedInstances
	percent := 100
	if m.OnDemandPercentAbove != nil {
		percent = *m.OnDemandPercentAbove
	}
	total, onDemand := 1, 0
	for _, i := range g.counting() {
		total += i.weight()
		if !i.Spot {
			onDemand += i.weight()
		}
	}
	above := max(0, total-m.OnDemandBase)
	want := min(total, m.OnDemandBase) + int(math.Ceil(float64(above*percent)/100))
	return onDemand >= want
}

// failLaunch records a failed attempt.
func (c *Cloud) failLaunch(g *group, zone, message string) {
	a := c.startActivity(g, zone, "Launching a new EC2 instance.  Status Reason: "+message, g.startedCause(g.capacity(), 1), statusFailed)
	c.endActivity(a, statusFailed, message)
	g.lastActivity = c.now
}

func (c *Cloud) retryLaunch(g *group) {
	if g.retrying {
		return
	}
	g.retrying = true
	c.after(c.scaled(c.spec.Timing.LaunchRetry), func() {
		g.retrying = false
		c.reconcile(g)
	})
}

// launch starts an instance for the group.
func (c *Cloud) launch(g *group, zone string, o offer, cause string) *instance {
	i := c.newInstance(g, zone, o)
	i.activity = c.startActivity(g, zone, "Launching a new EC2 instance: "+i.ID, cause, statusPreInService)
	i.activity.progress(statusPreInService, 30)
	c.bootUp(i, c.bootTime(g))
	c.run(i, launching, OnLaunch, c.scaled(c.spec.Timing.Pending), func() { c.inService(g, i) })
	return i
}

func (c *Cloud) bootTime(g *group) time.Duration {
	if g.spec.Boot > 0 {
		return c.scaled(g.spec.Boot)
	}
	return c.scaled(c.spec.Timing.Boot)
}

// messageOf is the text of an error without its code.
func messageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// SpotPrice is what the type costs by the hour in the zone at a time, in USD: about a third of the on-demand price, the same in no two zones, moved a little by the hour.
func SpotPrice(t catalog.Type, zone string, hour int) float64 {
	level, wave := 0.3+0.025*float64(zoneNumber(zone)), 0.01*math.Sin(float64(hour))
	return math.Round(t.HourlyUSD*(level+wave)*1e4) / 1e4
}
