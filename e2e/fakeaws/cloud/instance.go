package cloud

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
)

// instance is an EC2 instance, with what its snapshots do not show.
type instance struct {
	Instance
	cloud *Cloud

	life int // counts changes of the lifecycle state: what was timed for an earlier one does not happen
	boot int // the same for the operating system

	phase    phase
	actions  []*Action // lifecycle actions under way
	aborted  bool      // a lifecycle action was abandoned
	then     func()    // what follows the phase
	activity *activity

	dead bool // lost without Auto Scaling's doing: reclaimed, or terminated by hand

	notices Notices
	data    TemplateVersion // what it was launched from
}

func (i *instance) snapshot() Instance {
	s := i.Instance
	s.Tags = maps.Clone(i.Tags)
	s.Waiting = nil
	for _, a := range i.actions {
		s.Waiting = append(s.Waiting, *a)
	}
	return s
}

// weight is what the instance counts towards the desired capacity.
func (i *instance) weight() int { return max(1, i.Weight) }

// emit tells the world of a change.
func (c *Cloud) emit(i *instance) {
	c.events = append(c.events, i.snapshot())
}

// enter moves the instance to a lifecycle state; whatever was timed for the state before is off.
func (c *Cloud) enter(i *instance, s LifecycleState) {
	i.life++
	i.LifecycleState = s
	c.emit(i)
}

// afterIn does something later if the instance is then still in the lifecycle state that it is in now.
func (c *Cloud) afterIn(i *instance, d time.Duration, do func()) {
	life := i.life
	c.after(d, func() {
		if i.life == life && !i.Gone {
			do()
		}
	})
}

// bootUp starts the operating system; it is up after d.
func (c *Cloud) bootUp(i *instance, d time.Duration) {
	i.boot++
	i.OS = OSBooting
	boot := i.boot
	c.after(d, func() {
		if i.boot != boot || i.Gone {
			return
		}
		i.OS = OSUp
		i.BootID = c.uuid()
		c.emit(i)
	})
}

// powerOff ends the operating system at once.
func (i *instance) powerOff() {
	i.boot++
	i.OS = OSOff
	i.BootID = ""
}

// newInstance makes an instance, not yet in any lifecycle state.
func (c *Cloud) newInstance(g *group, zone string, o offer) *instance {
	i := &instance{cloud: c, data: o.data}
	i.Instance = Instance{
		ID: c.hexID("i"), Group: g.spec.Name, Zone: zone, ZoneID: ZoneID(zone), Subnet: subnetOf(zone), Type: o.typ.Name, Image: o.image,
		Health: "Healthy", EC2State: "pending", OS: OSOff, LaunchedAt: c.now,
		LaunchTemplate: o.template, LaunchTemplateID: o.templateID, LaunchTemplateVersion: o.version, LaunchConfiguration: o.launchConfiguration,
		Protected: g.spec.ProtectNewInstances, Spot: o.spot, Weight: o.weight, MemoryMiB: o.typ.OSMemoryMiB(c.spec.MemoryOverhead),
		Tags: instanceTags(g, o),
	}
	i.PrivateIP = c.nextIP(zone)
	i.PrivateDNSName = privateDNSName(i.PrivateIP, c.spec.Region)
	i.IMDSAddr = c.address(i.ID)
	i.notices.NoIMDS = g.spec.NoIMDS
	c.instances = append(c.instances, i)
	c.byID[i.ID] = i
	return i
}

// instanceTags are those of the template and the group, with what Auto Scaling and EKS add.
func instanceTags(g *group, o offer) map[string]string {
	tags := maps.Clone(o.data.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	for key, value := range g.spec.Tags {
		if !slices.Contains(g.spec.OwnTags, key) {
			tags[key] = value
		}
	}
	tags["aws:autoscaling:groupName"] = g.spec.Name
	if o.templateID != "" {
		tags["aws:ec2launchtemplate:id"] = o.templateID
		tags["aws:ec2launchtemplate:version"] = fmt.Sprint(o.version)
	}
	if g.spec.EKS != nil {
		tags["kubernetes.io/cluster/"+g.spec.EKS.Cluster] = "owned"
	}
	return tags
}

// Instances lists every instance that EC2 still shows, oldest first: also terminated and detached ones.
func (c *Cloud) Instances() []Instance {
	list := make([]Instance, 0, len(c.instances))
	for _, i := range c.instances {
		list = append(list, i.snapshot())
	}
	return list
}

// Instance finds an instance that EC2 still shows.
func (c *Cloud) Instance(id string) (Instance, error) {
	i := c.byID[id]
	if i == nil {
		return Instance{}, Errorf(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	return i.snapshot(), nil
}

// TypeOf are the figures of the instance's type.
func (i Instance) TypeOf() catalog.Type {
	t, _ := catalog.Lookup(i.Type)
	return t
}

// forget takes an instance that is gone out of what EC2 shows, after its time.
func (c *Cloud) forget(i *instance) {
	c.after(c.scaled(c.spec.Timing.Linger), func() {
		delete(c.byID, i.ID)
		c.instances = slices.DeleteFunc(c.instances, func(x *instance) bool { return x == i })
	})
}

const (
	hostsPerNet = 240
	netsPerZone = 32
	firstHost   = 10
)

// nextIP hands out addresses of 10.0.0.0/16, thirty-two networks to a zone.
func (c *Cloud) nextIP(zone string) string {
	n := c.hosts[zone]
	c.hosts[zone] = n + 1
	net := zoneNumber(zone)*netsPerZone + n/hostsPerNet%netsPerZone
	return fmt.Sprintf("10.%d.%d.%d", n/hostsPerNet/netsPerZone, net, n%hostsPerNet+firstHost)
}

// privateDNSName is the name that EC2 gives an instance by its address.
// https://docs.aws.amazon.com/vpc/latest/userguide/vpc-dns.html
func privateDNSName(ip, region string) string {
	host := "ip-" + strings.ReplaceAll(ip, ".", "-")
	if region == "us-east-1" {
		return host + ".ec2.internal"
	}
	return host + "." + region + ".compute.internal"
}

func zoneNumber(zone string) int { return int(zone[len(zone)-1] - 'a') }

// ZoneID is the id of a zone that is the same in every account, such as euw1-az1 for eu-west-1a.
// https://docs.aws.amazon.com/ram/latest/userguide/working-with-az-ids.html
func ZoneID(zone string) string {
	parts := strings.Split(zone[:len(zone)-1], "-")
	if len(parts) != 3 {
		return zone
	}
	direction := parts[1]
	short := map[string]string{"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"}[direction]
	if short == "" {
		short = direction[:1]
	}
	number := strings.TrimFunc(parts[2], unicode.IsLetter)
	return fmt.Sprintf("%s%s%s-az%d", parts[0], short, number, zoneNumber(zone)+1)
}

// subnetOf is the one subnet of a zone.
func subnetOf(zone string) string { return "subnet-0" + digest("subnet" + zone)[:16] }

// SubnetBlock are the addresses of the one subnet of a zone.
func SubnetBlock(zone string) string {
	return fmt.Sprintf("10.0.%d.0/19", zoneNumber(zone)*netsPerZone)
}

// ZoneOfSubnet is the zone that a subnet is the one of.
func (c *Cloud) ZoneOfSubnet(id string) (string, bool) {
	n := slices.IndexFunc(c.Zones(), func(zone string) bool { return subnetOf(zone) == id })
	if n < 0 {
		return "", false
	}
	return c.Zones()[n], true
}

// SubnetOf is the id of the one subnet of a zone.
func SubnetOf(zone string) string { return subnetOf(zone) }
