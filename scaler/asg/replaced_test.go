package asg

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/fleet"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// activityFor began at a minute past noon; ended is how many minutes later, -1 while it
// runs.
func activityFor(cause string, minute, ended int, status astypes.ScalingActivityStatusCode) astypes.Activity {
	a := astypes.Activity{Cause: &cause, StatusCode: status, StartTime: aws.Time(noon.Add(time.Duration(minute) * time.Minute))}
	if ended >= 0 {
		a.EndTime = aws.Time(noon.Add(time.Duration(ended) * time.Minute))
	}
	return a
}

// What the group's activities report of instances that Auto Scaling replaces.
func TestReplacement(t *testing.T) {
	const (
		launched = "At 2026-03-01T12:01:00Z availability zones eu-west-1a eu-west-1b had 4 1 instances respectively. An instance was launched to aid in balancing the group's zones."
		surplus  = "At 2026-03-01T12:02:00Z instances were launched to balance instances in zones eu-west-1b with other zones resulting in more than desired number of instances in the group."
		expired  = "At 2026-03-01T12:03:00Z instance i-0abc was taken out of service in response to a max instance lifetime action."
		desired  = "At 2026-03-01T12:04:00Z an instance was started in response to a difference between desired and actual capacity, increasing the capacity from 1 to 2."
	)
	const done, runs, failed = astypes.ScalingActivityStatusCodeSuccessful, astypes.ScalingActivityStatusCodeInProgress, astypes.ScalingActivityStatusCodeFailed
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	for _, tc := range []struct {
		name       string
		before     *fleet.Replacement
		activities []astypes.Activity
		now        int
		want       *fleet.Replacement
	}{
		{"growth replaces nothing", nil, []astypes.Activity{activityFor(desired, 4, 5, done)}, 6, nil},
		{"a launch for balance that runs", nil, []astypes.Activity{activityFor(launched, 1, -1, runs)}, 2, &fleet.Replacement{Cause: fleet.ZoneRebalance}},
		{"the termination after it", nil, []astypes.Activity{activityFor(surplus, 2, 3, done), activityFor(launched, 1, 2, done)}, 4, &fleet.Replacement{Cause: fleet.ZoneRebalance, Ended: at(3)}},
		{"a failed launch for balance", nil, []astypes.Activity{activityFor(launched, 1, 1, failed)}, 2, nil},
		{"an instance too old", nil, []astypes.Activity{activityFor(desired, 4, -1, runs), activityFor(expired, 3, 4, done)}, 5, &fleet.Replacement{Cause: fleet.MaxLifetime, Ended: at(4)}},
		{"what ran has ended", &fleet.Replacement{Cause: fleet.MaxLifetime}, []astypes.Activity{activityFor(expired, 3, 4, done)}, 5, &fleet.Replacement{Cause: fleet.MaxLifetime, Ended: at(4)}},
		{"what ran is told of no more", &fleet.Replacement{Cause: fleet.MaxLifetime}, nil, 5, &fleet.Replacement{Cause: fleet.MaxLifetime, Ended: at(5)}},
		{"an older page changes nothing", &fleet.Replacement{Cause: fleet.MaxLifetime, Ended: at(6)}, []astypes.Activity{activityFor(surplus, 2, 3, done)}, 7, &fleet.Replacement{Cause: fleet.MaxLifetime, Ended: at(6)}},
		{"long over", &fleet.Replacement{Cause: fleet.MaxLifetime, Ended: at(4)}, nil, 15, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := &known{replacement: tc.before}
			k.noteReplacement(tc.activities, at(tc.now))
			if diff := cmp.Diff(tc.want, k.replacement); diff != "" {
				t.Error(diff)
			}
		})
	}
}
