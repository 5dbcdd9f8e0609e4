package api

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// The structures of DescribeInstances.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html

type ec2Reservation struct {
	ReservationID string        `xml:"reservationId"`
	OwnerID       string        `xml:"ownerId"`
	Instances     []ec2Instance `xml:"instancesSet>item"`
}

type ec2Instance struct {
	InstanceID        string             `xml:"instanceId"`
	ImageID           string             `xml:"imageId"`
	State             ec2State           `xml:"instanceState"`
	PrivateDNSName    string             `xml:"privateDnsName"`
	DNSName           string             `xml:"dnsName"`
	InstanceType      string             `xml:"instanceType"`
	LaunchTime        wire.Time          `xml:"launchTime"`
	Placement         ec2Placement       `xml:"placement"`
	SubnetID          string             `xml:"subnetId,omitempty"`
	VPCID             string             `xml:"vpcId,omitempty"`
	PrivateIP         string             `xml:"privateIpAddress,omitempty"`
	StateReason       *ec2Reason         `xml:"stateReason,omitempty"`
	Architecture      string             `xml:"architecture"`
	RootDeviceType    string             `xml:"rootDeviceType"`
	RootDeviceName    string             `xml:"rootDeviceName"`
	InstanceLifecycle string             `xml:"instanceLifecycle,omitempty"`
	SpotRequestID     string             `xml:"spotInstanceRequestId,omitempty"`
	Tags              []wire.Tag         `xml:"tagSet>item"`
	NetworkInterfaces []ec2Interface     `xml:"networkInterfaceSet>item"`
	MetadataOptions   ec2MetadataOptions `xml:"metadataOptions"`
	PlatformDetails   string             `xml:"platformDetails"`
	DNSNameOptions    ec2DNSNameOptions  `xml:"privateDnsNameOptions"`
}

type ec2State struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type ec2Placement struct {
	AvailabilityZone   string `xml:"availabilityZone"`
	AvailabilityZoneID string `xml:"availabilityZoneId"`
	Tenancy            string `xml:"tenancy"`
}

type ec2Reason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type ec2Interface struct {
	ID             string `xml:"networkInterfaceId"`
	SubnetID       string `xml:"subnetId"`
	PrivateIP      string `xml:"privateIpAddress"`
	PrivateDNSName string `xml:"privateDnsName"`
	Status         string `xml:"status"`
}

type ec2MetadataOptions struct {
	State                   string `xml:"state"`
	HTTPTokens              string `xml:"httpTokens"`
	HTTPPutResponseHopLimit int    `xml:"httpPutResponseHopLimit"`
	HTTPEndpoint            string `xml:"httpEndpoint"`
	InstanceMetadataTags    string `xml:"instanceMetadataTags"`
}

type ec2DNSNameOptions struct {
	HostnameType string `xml:"hostnameType"`
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceState.html
var stateCodes = map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

const vpcID = "vpc-0a1b2c3d4e5f60001"

func ec2InstanceShape(c *cloud.Cloud, i cloud.Instance) ec2Instance {
	_, notices, _ := c.Metadata(i.ID)
	shape := ec2Instance{
		InstanceID: i.ID, ImageID: i.Image, State: ec2State{Code: stateCodes[i.EC2State], Name: i.EC2State}, InstanceType: i.Type,
		LaunchTime: wire.Time{Time: i.LaunchedAt}, Placement: ec2Placement{AvailabilityZone: i.Zone, AvailabilityZoneID: i.ZoneID, Tenancy: "default"},
		Architecture: string(i.TypeOf().Arch), RootDeviceType: "ebs", RootDeviceName: "/dev/xvda", PlatformDetails: linux,
		MetadataOptions: metadataShape(notices), DNSNameOptions: ec2DNSNameOptions{"ip-name"},
	}
	if i.Spot {
		shape.InstanceLifecycle = "spot"
		shape.SpotRequestID = "sir-" + i.ID[len(i.ID)-8:]
	}
	for _, key := range slices.Sorted(maps.Keys(i.Tags)) {
		shape.Tags = append(shape.Tags, wire.Tag{Key: key, Value: i.Tags[key]})
	}
	if i.EC2State == "terminated" { // EC2 forgets where a terminated instance was.
		shape.StateReason = &ec2Reason{Code: "Client.UserInitiatedShutdown", Message: "Client.UserInitiatedShutdown: User initiated shutdown"}
		if notices.SpotAction != "" {
			shape.StateReason = &ec2Reason{Code: "Server.SpotInstanceTermination", Message: "Server.SpotInstanceTermination: Spot instance termination"}
		}
		return shape
	}
	shape.PrivateDNSName, shape.PrivateIP, shape.SubnetID, shape.VPCID = i.PrivateDNSName, i.PrivateIP, i.Subnet, vpcID
	shape.NetworkInterfaces = []ec2Interface{{
		ID: "eni-" + i.ID[2:], SubnetID: i.Subnet, PrivateIP: i.PrivateIP, PrivateDNSName: i.PrivateDNSName, Status: "in-use",
	}}
	return shape
}

func metadataShape(n cloud.Notices) ec2MetadataOptions {
	o := ec2MetadataOptions{State: "applied", HTTPTokens: "required", HTTPPutResponseHopLimit: n.HopLimit, HTTPEndpoint: "enabled", InstanceMetadataTags: "disabled"}
	if n.NoIMDS {
		o.HTTPEndpoint = "disabled"
	}
	if n.MetadataTags {
		o.InstanceMetadataTags = "enabled"
	}
	return o
}

var instanceIDForm = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// checkIDs fails as EC2 does for ids that are malformed or unknown.
func checkIDs(c *cloud.Cloud, ids []string) error {
	var unknown []string
	for _, id := range ids {
		if !instanceIDForm.MatchString(id) {
			return cloud.Errorf(400, "InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		if _, err := c.Instance(id); err != nil {
			unknown = append(unknown, id)
		}
	}
	switch len(unknown) {
	case 0:
		return nil
	case 1:
		return cloud.Errorf(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", unknown[0])
	}
	return cloud.Errorf(400, "InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(unknown, ", "))
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func describeInstances(c *cloud.Cloud, v wire.Values) (any, error) {
	ids := v.List("InstanceId")
	if len(ids) > 0 && v.Has("MaxResults") {
		return nil, cloud.Errorf(400, "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	if err := checkIDs(c, ids); err != nil {
		return nil, err
	}
	filters := v.Filters("Filter", "Value")
	if err := known(filters, instanceFields(cloud.Instance{})); err != nil {
		return nil, err
	}
	var all []ec2Reservation
	for _, i := range c.Instances() {
		if len(ids) > 0 && !slices.Contains(ids, i.ID) {
			continue
		}
		if matches(filters, instanceFields(i)) {
			all = append(all, ec2Reservation{ReservationID: "r-" + i.ID[2:], OwnerID: c.Account(), Instances: []ec2Instance{ec2InstanceShape(c, i)}})
		}
	}
	page, next, err := wire.Page(v, "DescribeInstances", results(5, 1000), all)
	if err != nil {
		return nil, err
	}
	return struct {
		Reservations []ec2Reservation `xml:"reservationSet>item"`
		NextToken    string           `xml:"nextToken,omitempty"`
	}{page, next}, nil
}

// instanceFields are what DescribeInstances can be filtered by here.
func instanceFields(i cloud.Instance) func(name string) ([]string, bool) {
	lifecycle := map[bool]string{true: "spot", false: "on-demand"}[i.Spot]
	plain := fields(map[string]string{
		"instance-id": i.ID, "instance-state-name": i.EC2State, "instance-state-code": strconv.Itoa(stateCodes[i.EC2State]), "instance-type": i.Type,
		"availability-zone": i.Zone, "private-dns-name": i.PrivateDNSName, "private-ip-address": i.PrivateIP, "image-id": i.Image,
		"subnet-id": i.Subnet, "vpc-id": vpcID, "instance-lifecycle": lifecycle, "network-interface.addresses.private-ip-address": i.PrivateIP,
	})
	return func(name string) ([]string, bool) {
		if key, ok := strings.CutPrefix(name, "tag:"); ok {
			if value, has := i.Tags[key]; has {
				return []string{value}, true
			}
			return nil, true
		}
		if name == "tag-key" {
			return slices.Sorted(maps.Keys(i.Tags)), true
		}
		return plain(name)
	}
}

// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html
func terminateEC2(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	ids := v.List("InstanceId")
	if err := checkIDs(c, ids); err != nil {
		return nil, err
	}
	type change struct {
		InstanceID string   `xml:"instanceId"`
		Current    ec2State `xml:"currentState"`
		Previous   ec2State `xml:"previousState"`
	}
	var answer struct {
		Changes []change `xml:"instancesSet>item"`
	}
	for _, id := range ids {
		before, err := c.Instance(id)
		if err != nil {
			return nil, err
		}
		if before.EC2State != "terminated" {
			if err := c.Kill(id, now); err != nil {
				return nil, err
			}
		}
		answer.Changes = append(answer.Changes, change{id, ec2State{32, "shutting-down"}, ec2State{stateCodes[before.EC2State], before.EC2State}})
	}
	return answer, nil
}
