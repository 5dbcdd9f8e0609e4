package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"windlass.dev/windlass/pkg/fleet"
)

// Verbs are the calls that change something. Each of them looks first whether
// the group is as expected and stops with ErrChanged if not; none is ever
// repeated in here.
type Verbs struct {
	// Arrived, if not nil, is called when AWS has answered a Launch, from
	// anywhere.
	Arrived func()

	scaling autoScaling

	now func() time.Time

	launches launches

	mu sync.Mutex
	// waits remembers the waits that Complete was asked to end, by
	// HeartbeatKey: while another hook still holds the instance, nobody else
	// knows that ours does no more.
	waits map[string]wait
}

// wait is an instance's wait for one hook.
type wait struct {
	completed bool
	// refused in Terminating:Wait: a second refusal cannot mean "too early".
	refused bool
	// asked is when Complete was last asked. The same instance may wait for
	// the same hook again, after it came back from a warm pool.
	asked time.Time
}

// forgetWait is after how long without being asked a wait is another one.
const forgetWait = time.Minute

// NewVerbs returns the verbs of an account.
func NewVerbs(account *Account) *Verbs {
	return &Verbs{
		scaling: account.scaling, now: time.Now,
		launches: launches{calls: map[string]*launchCall{}}, waits: map[string]wait{},
	}
}

// SetDesired sets a group's desired capacity to to, if it still is from.
func (v *Verbs) SetDesired(ctx context.Context, group string, from, to int) error {
	now, err := v.describe(ctx, group)
	if err != nil {
		return err
	}
	if err := now.wants(group, from); err != nil {
		return err
	}
	return v.setDesired(ctx, group, to)
}

// Lower takes back what a group wants and has not got, if it still wants from.
// Auto Scaling chooses whom it ends where a group has more than it wants. So
// nothing is done unless all that live at this moment fit in to and each is
// protected from scale-in: an instance that comes in between is the only one that
// may be ended, and nothing runs there yet.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
func (v *Verbs) Lower(ctx context.Context, group string, from, to int) error {
	now, err := v.describe(ctx, group)
	if err != nil {
		return err
	}
	if err := now.wants(group, from); err != nil {
		return err
	}
	if err := now.keeps(group, to); err != nil {
		return err
	}
	return v.setDesired(ctx, group, to)
}

func (v *Verbs) setDesired(ctx context.Context, group string, to int) error {
	_, err := v.scaling.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &group, DesiredCapacity: aws.Int32(int32(to)), HonorCooldown: aws.Bool(false),
	}, once)
	return explain("autoscaling:SetDesiredCapacity", err)
}

// Terminate ends an instance of a group, if it is in it and not leaving
// already. It may be called for an instance that is protected from scale-in.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
func (v *Verbs) Terminate(ctx context.Context, group, instance string, decrement bool) error {
	now, err := v.describe(ctx, group)
	if err != nil {
		return err
	}
	i, ok := now.instances[instance]
	if !ok {
		return fmt.Errorf("%w: %s is not in %s any more", ErrChanged, instance, group)
	}
	if i.Leaving() {
		return fmt.Errorf("%w: %s is %s already", ErrChanged, instance, i.State)
	}
	_, err = v.scaling.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: &instance, ShouldDecrementDesiredCapacity: &decrement,
	}, once)
	return explain("autoscaling:TerminateInstanceInAutoScalingGroup", err)
}

// Complete lets Auto Scaling go on with an instance that waits for a hook. It
// always says CONTINUE: ABANDON may leave a terminating instance behind, and
// running (its group's retention policy), and would cut other hooks short.
//
// AWS says "No active Lifecycle Action" both before the instance waits and
// after it does no more; a look at the instance tells the two apart. Complete
// returns ErrTooEarly in the first case and nil in the second. While another
// hook holds an instance that it completed it says ErrAlready, without a call.
func (v *Verbs) Complete(ctx context.Context, group, instance, hook string) error {
	key := fleet.HeartbeatKey(instance, hook)
	w := v.recall(key)
	if w.completed {
		return ErrAlready
	}
	const continues = "CONTINUE"
	_, err := v.scaling.CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &group, InstanceId: &instance, LifecycleHookName: &hook, LifecycleActionResult: aws.String(continues),
	}, once)
	err = explain("autoscaling:CompleteLifecycleAction", err)
	if err != nil && noActiveAction(err) {
		w, err = v.refused(ctx, group, instance, w, err)
	}
	w.completed = err == nil
	v.remember(key, w)
	return err
}

// refused tells "too early" from "done".
func (v *Verbs) refused(ctx context.Context, group, instance string, w wait, refusal error) (wait, error) {
	now, err := v.describe(ctx, group)
	if err != nil {
		return w, err
	}
	i, ok := now.instances[instance]
	if !ok || !beforeWaitEnds[i.State] {
		return w, nil
	}
	if w.refused {
		return w, nil // it waited already when it refused again: for another hook
	}
	w.refused = strings.HasSuffix(i.State, ":Wait")
	return w, fmt.Errorf("%w: %s is %s: %w", ErrTooEarly, instance, i.State, refusal)
}

// beforeWaitEnds has the states in which a hook may not have begun to wait.
var beforeWaitEnds = map[string]bool{
	fleet.Pending: true, fleet.PendingWait: true, fleet.Terminating: true, fleet.TerminatingWait: true,
	"Warmed:Pending": true, "Warmed:Pending:Wait": true, "Warmed:Terminating": true, "Warmed:Terminating:Wait": true,
}

func (v *Verbs) recall(key string) wait {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	maps.DeleteFunc(v.waits, func(_ string, w wait) bool { return now.Sub(w.asked) > forgetWait })
	w := v.waits[key]
	w.asked = now
	v.waits[key] = w
	return w
}

func (v *Verbs) remember(key string, w wait) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waits[key] = w
}

// Heartbeat restarts the timer of an instance that waits for a hook.
func (v *Verbs) Heartbeat(ctx context.Context, group, instance, hook string) error {
	_, err := v.scaling.RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: &group, InstanceId: &instance, LifecycleHookName: &hook,
	}, once)
	err = explain("autoscaling:RecordLifecycleActionHeartbeat", err)
	if err != nil && noActiveAction(err) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// Suspend stops one of a group's own processes, such as AZRebalance.
func (v *Verbs) Suspend(ctx context.Context, group, process string) error {
	_, err := v.scaling.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{
		AutoScalingGroupName: &group, ScalingProcesses: []string{process},
	}, once)
	return explain("autoscaling:SuspendProcesses", err)
}

// state is a group as it is this moment.
type state struct {
	desired   int
	instances map[string]fleet.Instance
}

// wants fails unless the group's desired capacity is n.
func (s state) wants(group string, n int) error {
	if s.desired != n {
		return fmt.Errorf("%w: %s wants %d instances, not %d", ErrChanged, group, s.desired, n)
	}
	return nil
}

// keeps fails unless no instance would have to go if only n were wanted, and none
// of those that are there could.
func (s state) keeps(group string, n int) error {
	live := 0
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		i := s.instances[id]
		if !i.Live() {
			continue
		}
		if live++; !i.Protected {
			return fmt.Errorf("%w: %s of %s is not protected from scale-in", ErrChanged, id, group)
		}
	}
	if live > n {
		return fmt.Errorf("%w: %s has %d instances, more than %d", ErrChanged, group, live, n)
	}
	return nil
}

func (v *Verbs) describe(ctx context.Context, group string) (state, error) {
	out, err := v.scaling.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{group}})
	if err != nil {
		return state{}, explain("autoscaling:DescribeAutoScalingGroups", err)
	}
	if len(out.AutoScalingGroups) == 0 {
		return state{}, fmt.Errorf("%w: there is no group %s any more", ErrChanged, group)
	}
	raw := out.AutoScalingGroups[0]
	now := state{desired: int(aws.ToInt32(raw.DesiredCapacity)), instances: map[string]fleet.Instance{}}
	for _, i := range raw.Instances {
		now.instances[aws.ToString(i.InstanceId)] = newInstance(i)
	}
	return now, nil
}
