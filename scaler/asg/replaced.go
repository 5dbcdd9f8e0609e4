package asg

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"windlass.dev/windlass/pkg/fleet"
)

// replacedKept is how long a replacement is reported that is over.
const replacedKept = 10 * time.Minute

// replacing are the words in the cause of an activity by which Auto Scaling replaces
// instances while the desired capacity stays. AWS documents the behaviour and not the
// words, so that a few are looked for that name it, in any case. An instance refresh
// has its own call, see readRefresh.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/asg-max-instance-lifetime.html
var replacing = []struct{ words, cause string }{
	{"balancing the group's zones", fleet.ZoneRebalance},
	{"to balance instances in zones", fleet.ZoneRebalance},
	{"az rebalanc", fleet.ZoneRebalance},
	{"instance lifetime", fleet.MaxLifetime},
}

// replaces is why an activity replaces an instance; empty if it does not. One that failed
// replaces nothing: a rebalance into a zone without capacity is tried again without end.
func replaces(a astypes.Activity) (cause string) {
	if a.StatusCode == astypes.ScalingActivityStatusCodeFailed || a.StatusCode == astypes.ScalingActivityStatusCodeCancelled {
		return ""
	}
	text := strings.ToLower(aws.ToString(a.Cause))
	for _, r := range replacing {
		if strings.Contains(text, r.words) {
			return r.cause
		}
	}
	return ""
}

// noteReplacement takes over from activities whether instances are being replaced: an
// activity for that runs still, or until when the last one did.
func (k *known) noteReplacement(activities []astypes.Activity, now time.Time) {
	var last *fleet.Replacement
	for _, a := range activities {
		cause := replaces(a)
		switch {
		case cause == "":
		case a.EndTime == nil:
			k.replacement = &fleet.Replacement{Cause: cause}
			return
		case last == nil || a.EndTime.After(last.Ended):
			last = &fleet.Replacement{Cause: cause, Ended: a.EndTime.UTC()}
		}
	}
	switch {
	case last == nil && k.replaced(): // and it is not among those that were read
		k.replacement = &fleet.Replacement{Cause: k.replacement.Cause, Ended: now.UTC()}
	case last != nil && (k.replacement == nil || k.replaced() || last.Ended.After(k.replacement.Ended)):
		k.replacement = last
	}
	k.forgetReplacement(now)
}

// replaced reports whether an activity was seen that replaces an instance and has not ended.
func (k *known) replaced() bool { return k.replacement != nil && k.replacement.Ended.IsZero() }

func (k *known) forgetReplacement(now time.Time) {
	if k.replacement != nil && !k.replaced() && now.Sub(k.replacement.Ended) > replacedKept {
		k.replacement = nil
	}
}
