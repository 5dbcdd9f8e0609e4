package fakeaws_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"windlass.dev/windlass/e2e/fakeaws"
)

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
func TestSetDesiredCapacity(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Min: 1, Max: 3, Type: "m5.large", Zones: []string{"eu-west-1a", "eu-west-1b"}})
	set := func(n int32) error {
		_, err := b.asg.SetDesiredCapacity(b.ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: ptr("web"), DesiredCapacity: &n})
		return err
	}
	if err := set(3); err != nil {
		t.Fatal(err)
	}
	b.waitStates("web", map[fakeaws.LifecycleState]int{fakeaws.InService: 3})
	wantError(t, set(4), 400, "ValidationError", "New SetDesiredCapacity value 4 is above max value 3 for the AutoScalingGroup.")
	wantError(t, set(0), 400, "ValidationError", "New SetDesiredCapacity value 0 is below min value 1 for the AutoScalingGroup.")
}
