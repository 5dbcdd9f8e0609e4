package asg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"windlass.dev/windlass/pkg/fleet"
)

// failuresKept is how many failed launches of a group are reported.
const failuresKept = 20

// Descriptions of activities as Auto Scaling writes them.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html
const (
	launching   = "Launching a new EC2 instance"
	terminating = "Terminating EC2 instance"
)

var instanceID = regexp.MustCompile(`\bi-[0-9a-f]+\b`)

// log is what a group's activities have shown so far.
type log struct {
	// settled is the moment before which nothing is left to report: every activity that
	// began earlier had ended when the activities were last read.
	settled time.Time
	// failed are the activities that were reported as failures, and when they ended.
	failed map[string]time.Time
}

// tell takes activities of the group over, the newest first: all that began since
// settled, and perhaps more.
func (k *known) tell(newestFirst []astypes.Activity, now time.Time) {
	if k.told.failed == nil {
		k.told.failed = map[string]time.Time{}
	}
	maps.DeleteFunc(k.told.failed, func(_ string, at time.Time) bool { return now.Sub(at) > failureKept })
	var fresh []astypes.Activity
	for _, a := range newestFirst {
		id := aws.ToString(a.ActivityId)
		if _, old := k.told.failed[id]; isFailure(a) && !old && now.Sub(ended(a)) <= failureKept {
			k.told.failed[id] = ended(a)
			fresh = append(fresh, a)
		}
	}
	k.failures = slices.Concat(failures(fresh), k.failures)
	slices.SortStableFunc(k.failures, func(a, b fleet.Failure) int { return b.At.Compare(a.At) })
	k.failures = k.failures[:min(len(k.failures), failuresKept)]
	for id, since := range departures(newestFirst) {
		if _, leaves := k.leaving[id]; leaves {
			k.leaving[id], k.exact[id] = since, true
		}
	}
	k.thrownAway = false
	k.noteReplacement(newestFirst, now)
	k.told.settle(newestFirst)
}

// settle moves the moment on.
func (l *log) settle(activities []astypes.Activity) {
	if len(activities) == 0 {
		return
	}
	var newest, open time.Time
	for _, a := range activities {
		start := aws.ToTime(a.StartTime)
		if start.After(newest) {
			newest = start
		}
		if a.EndTime == nil && (open.IsZero() || start.Before(open)) {
			open = start
		}
	}
	l.settled = newest
	if !open.IsZero() {
		l.settled = open
	}
}

// enough reports whether a page reaches back beyond the moment: activities that still run
// stand first, all others follow by their start.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func (l *log) enough(page []astypes.Activity, now time.Time) bool {
	if len(page) == 0 {
		return true
	}
	last, since := page[len(page)-1], l.settled
	if since.IsZero() {
		since = now.Add(-failureKept)
	}
	return last.EndTime != nil && aws.ToTime(last.StartTime).Before(since)
}

// activityPages bounds the reading of activities; a page holds a hundred.
const activityPages = 20

func (r *Reader) studyActivities(ctx context.Context, k *known, now time.Time) {
	k.activitiesAt = now.Add(pace(now, k.moving, k.moving, slow))
	activities, _, err := r.activities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: k.raw.AutoScalingGroupName},
		func(page []astypes.Activity) bool { return k.told.enough(page, now) })
	k.activityFault = ""
	if err == nil {
		k.tell(activities, now)
		return
	}
	if !passing(err) {
		k.activityFault, k.activitiesAt = fmt.Sprintf("its scaling activities are not known: %v", err), now.Add(retryFault)
	}
}

// studyAllActivities reads the activities of all groups of the account together:
// where many launch at once that is fewer calls, and no group waits for its turn. An account may have
// so many that this takes too long, or ends too early: then each group is asked about by itself.
func (r *Reader) studyAllActivities(ctx context.Context, due []*known, now time.Time) {
	enough := func(page []astypes.Activity) bool {
		return !slices.ContainsFunc(due, func(k *known) bool { return !k.told.enough(page, now) })
	}
	activities, whole, err := r.activities(ctx, &autoscaling.DescribeScalingActivitiesInput{}, enough)
	if errors.Is(err, ErrUnavailable) || err == nil && !whole {
		r.apartUntil = now.Add(apartFor)
		return // they are due still
	}
	byGroup := map[string][]astypes.Activity{}
	for _, a := range activities {
		name := aws.ToString(a.AutoScalingGroupName)
		byGroup[name] = append(byGroup[name], a)
	}
	for _, k := range due {
		k.activityFault, k.activitiesAt = "", now.Add(pace(now, k.moving, k.moving, slow))
		switch {
		case err == nil:
			k.tell(byGroup[aws.ToString(k.raw.AutoScalingGroupName)], now)
		case !passing(err):
			k.activityFault, k.activitiesAt = fmt.Sprintf("its scaling activities are not known: %v", err), now.Add(retryFault)
		}
	}
}

// activities reads pages until enough are there; they are whole unless the pages were too many.
func (r *Reader) activities(ctx context.Context, in *autoscaling.DescribeScalingActivitiesInput, enough func([]astypes.Activity) bool) (found []astypes.Activity, whole bool, err error) {
	for range activityPages {
		out, err := r.account.scaling.DescribeScalingActivities(ctx, in)
		if err != nil {
			return nil, false, explain("autoscaling:DescribeScalingActivities", err)
		}
		found = append(found, out.Activities...)
		if aws.ToString(out.NextToken) == "" || enough(out.Activities) {
			return found, true, nil
		}
		in.NextToken = out.NextToken
	}
	return found, false, nil
}

// departures returns since when instances are being terminated. The newest
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

// abandoned stands in the message of a launch whose instance a hook did not let in. Auto Scaling takes
// it for cancelled, as it does one that somebody ended.
// https://repost.aws/knowledge-center/lifecycle-actions-code-deploy
const abandoned = "was abandoned"

// isFailure reports whether an activity is a launch that failed.
func isFailure(a astypes.Activity) bool {
	if !strings.HasPrefix(aws.ToString(a.Description), launching) {
		return false
	}
	return a.StatusCode == astypes.ScalingActivityStatusCodeFailed ||
		a.StatusCode == astypes.ScalingActivityStatusCodeCancelled && strings.Contains(aws.ToString(a.StatusMessage), abandoned)
}

// failures words launches that failed.
func failures(failed []astypes.Activity) []fleet.Failure {
	out := make([]fleet.Failure, 0, len(failed))
	for _, a := range failed {
		text := aws.ToString(a.StatusMessage)
		out = append(out, fleet.Failure{At: ended(a), Zone: zoneOf(aws.ToString(a.Details)), Cause: causeOf(text), Text: text})
	}
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
	{abandoned, "LifecycleActionAbandoned"},
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
