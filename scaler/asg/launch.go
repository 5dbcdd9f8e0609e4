package asg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"windlass.dev/windlass/pkg/fleet"
)

// LaunchOrder asks for a number of instances in one zone. It comes on top of
// what the group has; what keeps it from being carried out twice is its token.
type LaunchOrder struct {
	Group, Zone string
	// Token is the client token: a call that repeats it within eight hours gets
	// the answer of the first and launches nothing.
	Token string
	// Count is at most 100.
	Count int
	// From is the desired capacity that a new order expects to find; nil for an
	// order that follows another one of this group, or was given before.
	From *int
}

// Launched is the answer to a LaunchOrder. That only some of the instances came
// is normal.
type Launched struct {
	Instances []string
	// Failures are why the rest did not come; there is one at least if any is
	// missing.
	Failures []fleet.Failure
}

const (
	// answerTime is how long Launch waits for the answer. AWS takes seconds, and
	// others must not wait for it; the answer is kept for whoever asks again.
	answerTime = 100 * time.Millisecond
	// answerKept is for how long.
	answerKept = 10 * time.Minute
	// launchTime bounds a call whatever hangs, in place of callTime. AWS goes on with it, and answers
	// whoever repeats the token.
	launchTime = 30 * time.Second
)

// launches are the calls of LaunchInstances that are under way in this process,
// and those whose answers were not taken yet, by token.
type launches struct {
	mu    sync.Mutex
	calls map[string]*launchCall
}

type launchCall struct {
	group  string
	began  time.Time
	done   chan struct{} // closed when the two below are there
	answer Launched
	err    error
}

// Launch launches instances in a zone of our choice, and nowhere else. Besides
// the errors of any call it returns
//
//   - ErrUnsent if nothing was asked of LaunchInstances: the order may be dropped;
//   - ErrUnderWay if AWS has not answered yet: Arrived is called when it has, and
//     Launch with the same order gives the answer;
//   - ErrUnanswered if it is not known what became of it: the same order must be
//     given again, for it may have been carried out.
//
// Every other error is a refusal: nothing was launched.
//
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launching-instances-synchronous-provisioning.html
func (v *Verbs) Launch(ctx context.Context, order LaunchOrder) (Launched, error) {
	call, wait := v.launches.find(order.Token)
	if call == nil {
		if err := v.expects(ctx, order); err != nil {
			return Launched{}, fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		call, wait = v.launches.begin(order, v.now())
		go v.launch(context.WithoutCancel(ctx), order, call)
	}
	if !call.answered(ctx, wait) {
		return Launched{}, fmt.Errorf("%w for %d instances of %s in %s", ErrUnderWay, order.Count, order.Group, order.Zone)
	}
	v.launches.take(order.Token)
	return call.answer, call.err
}

// newToAdd is how old a description may be by which instances are added: where something moves, as after
// another launch, the latest reading will do. What we have launched ourselves is known without it, and a
// launch ends nothing: what others add meanwhile comes beside it.
const newToAdd = steady + 2*time.Second

// expects checks whether the group wants as many instances as the order expects.
// A reading from before another launch would make us launch it once more.
func (v *Verbs) expects(ctx context.Context, order LaunchOrder) error {
	if order.From == nil {
		return nil
	}
	now, err := v.describe(ctx, order.Group, newToAdd)
	if err != nil {
		return err
	}
	return now.wants(order.Group, *order.From)
}

// launch makes the call. It outlives the action that asked for it: to hang up
// does not stop AWS.
func (v *Verbs) launch(ctx context.Context, order LaunchOrder, call *launchCall) {
	ctx, cancel := context.WithTimeout(ctx, launchTime)
	defer cancel()
	out, err := v.scaling.LaunchInstances(ctx, &autoscaling.LaunchInstancesInput{
		AutoScalingGroupName: &order.Group, AvailabilityZones: []string{order.Zone}, ClientToken: &order.Token,
		RequestedCapacity: aws.Int32(int32(order.Count)), RetryStrategy: astypes.RetryStrategyNone,
	}, once, func(o *autoscaling.Options) {
		if v.launching != nil {
			o.HTTPClient = v.launching
		}
	})
	if err != nil {
		call.err = outcomeOfLaunch(explain("autoscaling:LaunchInstances", err))
		v.changed(order.Group, change{}, err)
	} else {
		call.answer = newLaunched(out, order, v.now())
		if came := launchedInstances(out, order); len(came) > 0 {
			v.changed(order.Group, change{launched: came}, nil)
		}
	}
	close(call.done)
	if v.Arrived != nil {
		v.Arrived(err == nil && len(call.answer.Instances) >= order.Count)
	}
}

// outcomeOfLaunch reports whether a call that failed may have launched something.
func outcomeOfLaunch(err error) error {
	var call *CallError
	switch {
	case errors.Is(err, ErrThrottled), errors.Is(err, ErrCredentials):
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	case errors.As(err, &call) && stillBusy(call.Code):
		return fmt.Errorf("%w: %w: %w", ErrUnanswered, ErrStillBusy, err)
	case errors.Is(err, ErrUnavailable), call == nil, call.Code == "":
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return err
}

func newLaunched(out *autoscaling.LaunchInstancesOutput, order LaunchOrder, now time.Time) Launched {
	var l Launched
	for _, i := range out.Instances {
		l.Instances = append(l.Instances, i.InstanceIds...)
	}
	if len(l.Instances) >= order.Count {
		return l // a type that was not to be had does not matter where another was
	}
	for _, e := range out.Errors {
		text := fmt.Sprintf("%s: %s", aws.ToString(e.ErrorCode), firstSentence(aws.ToString(e.ErrorMessage)))
		zone := aws.ToString(e.AvailabilityZone)
		if zone == "" {
			zone = order.Zone
		}
		l.Failures = append(l.Failures, fleet.Failure{At: now, Zone: zone, Cause: causeOf(text), Text: text})
	}
	if len(l.Failures) == 0 {
		text := fmt.Sprintf("AWS launched %d of %d instances and does not say why", len(l.Instances), order.Count)
		l.Failures = []fleet.Failure{{At: now, Zone: order.Zone, Cause: otherCause, Text: text}}
	}
	return l
}

// launchedInstances are those of an answer, as AWS is going to describe them.
func launchedInstances(out *autoscaling.LaunchInstancesOutput, order LaunchOrder) (came []astypes.Instance) {
	for _, of := range out.Instances {
		for _, id := range of.InstanceIds {
			came = append(came, astypes.Instance{
				InstanceId: aws.String(id), AvailabilityZone: aws.String(cmp.Or(aws.ToString(of.AvailabilityZone), order.Zone)), InstanceType: of.InstanceType,
				LifecycleState: astypes.LifecycleStatePending, HealthStatus: aws.String("Healthy"),
			})
		}
	}
	return came
}

// find returns the call of a token, and how long to wait for it: a caller that asks again was
// notified that the answer has come, or asks in passing.
func (l *launches) find(token string) (call *launchCall, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[token], 0
}

// begin notes a call. The first of a group is waited for; its neighbours are
// made at the same time.
func (l *launches) begin(order LaunchOrder, now time.Time) (call *launchCall, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.calls, func(_ string, c *launchCall) bool { return c.has() && now.Sub(c.began) > answerKept })
	wait = answerTime
	for _, c := range l.calls {
		if c.group == order.Group && !c.has() {
			wait = 0
		}
	}
	call = &launchCall{group: order.Group, began: now, done: make(chan struct{})}
	l.calls[order.Token] = call
	return call, wait
}

func (l *launches) take(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, token)
}

// has reports whether the answer is there.
func (c *launchCall) has() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// answered waits for the answer, but not for long.
func (c *launchCall) answered(ctx context.Context, wait time.Duration) bool {
	if c.has() || wait == 0 {
		return c.has()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	return c.has()
}
