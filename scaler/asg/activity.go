package asg

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"windlass.dev/windlass/pkg/fleet"
)

// failuresKept is how many failed launches of a group are told of.
const failuresKept = 20

// Descriptions of activities as Auto Scaling writes them.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html
const (
	launching   = "Launching a new EC2 instance"
	terminating = "Terminating EC2 instance"
)

var instanceID = regexp.MustCompile(`\bi-[0-9a-f]+\b`)

// departures says since when instances are being terminated. The newest
// activity of an instance counts.
func departures(newestFirst []astypes.Activity) map[string]time.Time {
	since := map[string]time.Time{}
	for _, a := range newestFirst {
		text := aws.ToString(a.Description)
		if !strings.HasPrefix(text, terminating) || a.StartTime == nil {
			continue
		}
		id := instanceID.FindString(text)
		if _, known := since[id]; id != "" && !known {
			since[id] = a.StartTime.UTC()
		}
	}
	return since
}

// failures tells of launches that failed, the newest first.
func failures(newestFirst []astypes.Activity) []fleet.Failure {
	var out []fleet.Failure
	for _, a := range newestFirst {
		launch := strings.HasPrefix(aws.ToString(a.Description), launching)
		if a.StatusCode != astypes.ScalingActivityStatusCodeFailed || !launch || len(out) == failuresKept {
			continue
		}
		text := aws.ToString(a.StatusMessage)
		out = append(out, fleet.Failure{At: ended(a), Zone: zoneOf(aws.ToString(a.Details)), Cause: causeOf(text), Text: text})
	}
	slices.SortStableFunc(out, func(a, b fleet.Failure) int { return b.At.Compare(a.At) })
	return out
}

func ended(a astypes.Activity) time.Time {
	for _, t := range []*time.Time{a.EndTime, a.StartTime} {
		if t != nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// zoneOf reads an activity's details, which are JSON and not documented: an
// activity without them concerns no zone in particular.
func zoneOf(details string) string {
	var d struct {
		Zone string `json:"Availability Zone"`
	}
	if json.Unmarshal([]byte(details), &d) != nil {
		return ""
	}
	return d.Zone
}

// Causes of failed launches, by the words in AWS's messages. The first that
// stands in a message names it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-capacity.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
var causes = []struct{ words, cause string }{
	{"InsufficientInstanceCapacity", "InsufficientInstanceCapacity"},
	{"do not have sufficient", "InsufficientInstanceCapacity"},
	{"no Spot capacity available", "InsufficientInstanceCapacity"},
	{"UnfulfillableCapacity", "UnfulfillableCapacity"},
	{"Unable to fulfill capacity", "UnfulfillableCapacity"},
	{"InsufficientReservedInstanceCapacity", "InsufficientReservedInstanceCapacity"},
	{"ReservationCapacityExceeded", "ReservationCapacityExceeded"},
	{"InsufficientFreeAddressesInSubnet", "InsufficientFreeAddressesInSubnet"},
	{"not enough free addresses", "InsufficientFreeAddressesInSubnet"},
	{"MaxSpotInstanceCountExceeded", "MaxSpotInstanceCountExceeded"},
	{"Max spot instance count exceeded", "MaxSpotInstanceCountExceeded"},
	{"SpotMaxPriceTooLow", "SpotMaxPriceTooLow"},
	{"Spot request price", "SpotMaxPriceTooLow"},
	{"VcpuLimitExceeded", "VcpuLimitExceeded"},
	{"vCPU limit", "VcpuLimitExceeded"},
	{"InstanceLimitExceeded", "InstanceLimitExceeded"},
	{"VolumeLimitExceeded", "VolumeLimitExceeded"},
	{"RequestLimitExceeded", "Throttled"},
	{"UnauthorizedOperation", "UnauthorizedOperation"},
	{"not authorized", "UnauthorizedOperation"},
	{"InvalidSubnet", "InvalidSubnet"},
	{"InvalidGroup", "InvalidSecurityGroup"},
	{"security group", "InvalidSecurityGroup"},
	{"InvalidKeyPair", "InvalidKeyPair"},
	{"key pair", "InvalidKeyPair"},
	{"InvalidAMI", "InvalidImage"},
	{"AMI", "InvalidImage"},
	{"launch template", "InvalidLaunchTemplate"},
	{"is not supported", "Unsupported"},
	{"InternalError", "InternalError"},
}

// otherCause is for messages that we do not know.
const otherCause = "LaunchFailed"

func causeOf(message string) string {
	for _, c := range causes {
		if strings.Contains(message, c.words) {
			return c.cause
		}
	}
	return otherCause
}
