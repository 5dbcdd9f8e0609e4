package api

import (
	"slices"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

type ec2Zone struct {
	ZoneName   string `xml:"zoneName"`
	ZoneID     string `xml:"zoneId"`
	ZoneType   string `xml:"zoneType"`
	ZoneState  string `xml:"zoneState"`
	RegionName string `xml:"regionName"`
}

// describeZones answers the zones of the region. It is not paged.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
func describeZones(c *cloud.Cloud, v wire.Values) (any, error) {
	named, ids, filters := v.List("ZoneName"), v.List("ZoneId"), v.Filters("Filter", "Value")
	if err := known(filters, zoneFields(ec2Zone{})); err != nil {
		return nil, err
	}
	for _, zone := range named {
		if !slices.Contains(c.Zones(), zone) {
			return nil, cloud.Errorf(400, wire.InvalidParameterValue, "Invalid availability zone: [%s]", zone)
		}
	}
	var answer struct {
		Zones []ec2Zone `xml:"availabilityZoneInfo>item"`
	}
	for _, name := range c.Zones() {
		zone := ec2Zone{name, cloud.ZoneID(name), "availability-zone", "available", c.Region()}
		if (len(named) == 0 || slices.Contains(named, name)) && (len(ids) == 0 || slices.Contains(ids, zone.ZoneID)) && matches(filters, zoneFields(zone)) {
			answer.Zones = append(answer.Zones, zone)
		}
	}
	return answer, nil
}

func zoneFields(z ec2Zone) func(name string) ([]string, bool) {
	return fields(map[string]string{"zone-name": z.ZoneName, "zone-id": z.ZoneID, "zone-type": z.ZoneType, "state": z.ZoneState, "region-name": z.RegionName})
}

type ec2Subnet struct {
	SubnetID                string `xml:"subnetId"`
	SubnetARN               string `xml:"subnetArn"`
	State                   string `xml:"state"`
	VPCID                   string `xml:"vpcId"`
	OwnerID                 string `xml:"ownerId"`
	CIDRBlock               string `xml:"cidrBlock"`
	AvailableIPAddressCount int    `xml:"availableIpAddressCount"`
	AvailabilityZone        string `xml:"availabilityZone"`
	AvailabilityZoneID      string `xml:"availabilityZoneId"`
	DefaultForAZ            bool   `xml:"defaultForAz"`
	MapPublicIPOnLaunch     bool   `xml:"mapPublicIpOnLaunch"`
}

// describeSubnets answers the one subnet of each zone.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html
func describeSubnets(c *cloud.Cloud, v wire.Values) (any, error) {
	ids, filters := v.List("SubnetId"), v.Filters("Filter", "Value")
	if err := known(filters, subnetFields(ec2Subnet{})); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, ok := c.ZoneOfSubnet(id); !ok {
			return nil, cloud.Errorf(400, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
	}
	var all []ec2Subnet
	for _, zone := range c.Zones() {
		id := cloud.SubnetOf(zone)
		subnet := ec2Subnet{
			SubnetID: id, SubnetARN: "arn:aws:ec2:" + c.Region() + ":" + c.Account() + ":subnet/" + id, State: "available", VPCID: vpcID, OwnerID: c.Account(),
			CIDRBlock: cloud.SubnetBlock(zone), AvailableIPAddressCount: 8187, AvailabilityZone: zone, AvailabilityZoneID: cloud.ZoneID(zone),
		}
		if (len(ids) == 0 || slices.Contains(ids, id)) && matches(filters, subnetFields(subnet)) {
			all = append(all, subnet)
		}
	}
	page, next, err := wire.Page(v, "DescribeSubnets", results(5, 1000), all)
	if err != nil {
		return nil, err
	}
	return struct {
		Subnets   []ec2Subnet `xml:"subnetSet>item"`
		NextToken string      `xml:"nextToken,omitempty"`
	}{page, next}, nil
}

func subnetFields(s ec2Subnet) func(name string) ([]string, bool) {
	return fields(map[string]string{
		"subnet-id": s.SubnetID, "vpc-id": s.VPCID, "state": s.State, "availability-zone": s.AvailabilityZone, "availability-zone-id": s.AvailabilityZoneID,
		"cidr-block": s.CIDRBlock, "owner-id": s.OwnerID,
	})
}
