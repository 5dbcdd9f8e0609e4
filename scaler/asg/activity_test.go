package asg

import "testing"

func TestCauses(t *testing.T) {
	for message, want := range map[string]string{
		"We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a). Our system will be working on provisioning additional capacity. Launching EC2 instance failed.": "InsufficientInstanceCapacity",
		"Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration.":                                                                                    "UnfulfillableCapacity",
		"You have requested more vCPU capacity than your current vCPU limit of 32 allows":                                                                                                                           "VcpuLimitExceeded",
		"There are not enough free addresses in subnet 'subnet-1' to satisfy the requested number of instances.":                                                                                                    "InsufficientFreeAddressesInSubnet",
		"Something that nobody has seen yet": "LaunchFailed",
	} {
		if got := causeOf(message); got != want {
			t.Errorf("%q is %s, want %s", message, got, want)
		}
	}
}
