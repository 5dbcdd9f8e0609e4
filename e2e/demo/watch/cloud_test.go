package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/fakeaws"
)

func TestCallOf(t *testing.T) {
	for _, c := range []struct {
		call fakeaws.Call
		want story.Call
	}{
		{
			fakeaws.Call{Operation: "SetDesiredCapacity", Params: map[string]string{"AutoScalingGroupName": "web", "DesiredCapacity": "4"}},
			story.Call{Operation: "SetDesiredCapacity", Group: "web", Detail: "desired 4", Grows: true},
		},
		{
			fakeaws.Call{Operation: "TerminateInstanceInAutoScalingGroup", Params: map[string]string{"InstanceId": "i-1", "ShouldDecrementDesiredCapacity": "true"}},
			story.Call{Operation: "TerminateInstanceInAutoScalingGroup", Instance: "i-1", Detail: "with decrement", Decrements: true},
		},
		{
			fakeaws.Call{Operation: "CompleteLifecycleAction", Error: "ValidationError", Params: map[string]string{
				"AutoScalingGroupName": "web", "InstanceId": "i-1", "LifecycleHookName": "windlass", "LifecycleActionResult": "CONTINUE"}},
			story.Call{Operation: "CompleteLifecycleAction", Group: "web", Instance: "i-1", Detail: "windlass CONTINUE", Error: "ValidationError"},
		},
	} {
		if diff := cmp.Diff(c.want, callOf(c.call)); diff != "" {
			t.Errorf("%s: %s", c.call.Operation, diff)
		}
	}
}
