package watch

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/fakeaws"
)

// AWS is what is asked of the fake cloud.
type AWS interface {
	Groups() []fakeaws.GroupStatus
	Calls(...fakeaws.Match) []fakeaws.Call
}

var _ AWS = (*fakeaws.Server)(nil)

// cloudEvery is the pace of looking at the cloud, which is in this process.
const cloudEvery = 50 * time.Millisecond

// Cloud watches the groups, and the calls that reach AWS, until ctx ends.
func (w *Watch) Cloud(ctx context.Context, aws AWS) {
	ticker := time.NewTicker(cloudEvery)
	defer ticker.Stop()
	var known []story.Group
	told := int64(0)
	for {
		var groups []story.Group
		for _, g := range aws.Groups() {
			groups = append(groups, groupOf(g))
		}
		calls := aws.Calls(fakeaws.After(told), notIMDS)
		if len(calls) > 0 || !reflect.DeepEqual(groups, known) {
			w.tell(func(s *story.Story, _ time.Time) {
				for _, c := range calls {
					s.CallSeen(callOf(c))
					told = c.Seq
				}
				s.GroupsSeen(groups)
			})
			known = groups
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// notIMDS leaves out what agents ask of their own instance every few seconds.
func notIMDS(c fakeaws.Call) bool { return c.Service != "imds" }

func groupOf(g fakeaws.GroupStatus) story.Group {
	out := story.Group{Name: g.Spec.Name, Min: g.Min, Desired: g.Desired, Max: g.Max}
	for _, i := range g.Instances {
		instance := story.Instance{
			ID: i.ID, Zone: i.Zone, Type: i.Type, Node: i.PrivateDNSName, State: string(i.LifecycleState), Up: i.OS == fakeaws.OSUp,
		}
		for _, a := range i.Waiting {
			instance.Hooks = append(instance.Hooks, a.Hook)
		}
		out.Instances = append(out.Instances, instance)
	}
	return out
}

// callOf reads a call by the parameters that the APIs have in common.
func callOf(c fakeaws.Call) story.Call {
	out := story.Call{At: c.Time, Operation: c.Operation, Group: c.Params["AutoScalingGroupName"], Instance: c.Params["InstanceId"], Error: c.Error}
	switch c.Operation {
	case "SetDesiredCapacity":
		out.Detail = "desired " + c.Params["DesiredCapacity"]
		out.Grows = true
	case "LaunchInstances":
		out.Detail = c.Params["RequestedCapacity"] + " instances"
		out.Grows = true
	case "TerminateInstanceInAutoScalingGroup":
		out.Decrements = c.Params["ShouldDecrementDesiredCapacity"] == "true"
		if out.Decrements {
			out.Detail = "with decrement"
		}
	case "CompleteLifecycleAction":
		out.Detail = fmt.Sprintf("%s %s", c.Params["LifecycleHookName"], c.Params["LifecycleActionResult"])
	case "RecordLifecycleActionHeartbeat":
		out.Detail = c.Params["LifecycleHookName"]
	}
	out.Detail = strings.TrimSpace(out.Detail)
	return out
}
