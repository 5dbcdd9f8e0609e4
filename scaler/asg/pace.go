package asg

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"golang.org/x/time/rate"

	"windlass.dev/windlass/pkg/fleet"
)

// The pace of reading: the quotas of the API are shared by everybody in the
// account, so nothing is read faster than somebody waits for it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/throttling.html
const (
	// quick is the pace when something has begun to launch or terminate, and steady the one while it
	// does: what has been moving for some seconds is looked at every half of that time, and not
	// slower than steady.
	quick, steady = time.Second, 10 * time.Second
	// slow is the pace while nothing does. A page holds a hundred groups, so that
	// this is one call; with what is read again now and then (see template.RedrawEvery), it
	// leaves an idle scaler below two calls a minute, warm pools apart.
	slow = 40 * time.Second
	// patience is for how many times its own length steady is kept up: what takes longer is looked at every
	// three-hundredth of the time it takes, and never slower than slow.
	patience = 300
	// readEvery, readBurst and readLent bound the readings: so many at once, one more in each such time,
	// and some more that are asked for, for which others are left out later.
	readEvery, readBurst, readLent = 6 * time.Second, 4, 3
	// owedFor is for how long quick is kept up whatever the allowance says where Auto Scaling owes
	// instances: pods wait, and a launch that has failed is to be answered by another group.
	owedFor = 10 * time.Second
	// leavingEvery is the pace, whatever the allowance says, while a node is known to leave and no reading
	// has shown that, and leavingFor for how long it is kept up.
	leavingEvery, leavingFor = 2 * time.Second, 5 * time.Second
	// retryFailed is when a reading that failed is tried again.
	retryFailed = 5 * time.Second
	// nudgeGap is the least time between two readings, whoever asks for them.
	nudgeGap = 200 * time.Millisecond

	// readTime is how long one reading may take, with all its calls.
	readTime = 30 * time.Second

	// retryFault is when something that failed is asked again.
	retryFault = 30 * time.Second
	// activitiesAtOnce is how many groups' activities one reading asks for by
	// themselves; where more are due, those of all groups are read together.
	activitiesAtOnce = 5
	// activitiesApart is how many it asks for by themselves where those of all together cannot be
	// read, or are too many, and apartFor is for how long.
	activitiesApart, apartFor = 20, 10 * time.Minute
	// failureKept is how long a failed launch is reported.
	failureKept = time.Hour
)

// pace is how long a reading will do: moving is the moment since which
// something moves, the latest of all groups, zero if nothing does, and surprised the latest one at which
// something began that is not our own doing; slowest is for how long it does where nothing moves.
func pace(now, moving, surprised time.Time, slowest time.Duration) time.Duration {
	if moving.IsZero() {
		return slowest
	}
	return min(max(quick, min(now.Sub(surprised)/2, steady), now.Sub(moving)/patience), slowest)
}

// untilAllowed is how long an allowance has a reading wait. One that was asked for may be lent.
func untilAllowed(allowance *rate.Limiter, now time.Time, asked bool) time.Duration {
	needed := 1.0
	if asked {
		needed -= readLent
	}
	missing := needed - allowance.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing*float64(readEvery)) + time.Millisecond
}

// spend takes a reading off an allowance.
func spend(allowance *rate.Limiter, now time.Time) {
	if allowance.TokensAt(now) > -readLent {
		allowance.ReserveN(now, 1)
	}
}

// slowest is slow, unless a hook holds terminating instances for so short a time that its
// first heartbeat would come too late: only a reading shows an instance without a Node.
func slowest(groups []fleet.Group) time.Duration {
	longest := slow
	for _, g := range groups {
		if held := shortestHold(g.Hooks); held > 0 {
			longest = min(longest, slowestFor(held))
		}
	}
	return longest
}

// slowestFor is how long a reading will do where a hook holds instances for so long.
func slowestFor(held time.Duration) time.Duration { return min(slow, max(quick, held/2)) }

// shortestHold is for how long the first of a group's hooks to give up holds a terminating instance, 30 s
// at the least; zero where none holds it.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
func shortestHold(hooks []fleet.Hook) (held time.Duration) {
	for _, h := range hooks {
		if d := h.Heartbeat.Duration; h.Transition == fleet.OnTerminate && d > 0 && (held == 0 || d < held) {
			held = d
		}
	}
	return held
}

// unsettled reports whether an instance is launching or terminating.
func unsettled(g *astypes.AutoScalingGroup) bool {
	for _, i := range g.Instances {
		instance := newInstance(i)
		if instance.Live() && instance.State != fleet.InService || instance.Terminating() && !instance.Retained() {
			return true
		}
	}
	return missing(g) != 0
}

// missing is how many instances are still to come: those that Auto Scaling
// owes to the desired capacity. It is negative where there are too many.
func missing(g *astypes.AutoScalingGroup) int {
	n := int(aws.ToInt32(g.DesiredCapacity))
	for _, i := range g.Instances {
		if newInstance(i).Live() {
			n--
		}
	}
	return n
}
