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
	named := v.List("ZoneName")
	var answer struct {
		Zones []ec2Zone `xml:"availabilityZoneInfo>item"`
	}
	for _, zone := range c.Zones() {
		if len(named) == 0 || slices.Contains(named, zone) {
			answer.Zones = append(answer.Zones, ec2Zone{zone, cloud.ZoneID(zone), "availability-zone", "available", c.Region()})
		}
	}
	return answer, nil
}
