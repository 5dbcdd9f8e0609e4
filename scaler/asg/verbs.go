package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Verbs are the calls that change something. Those whose effect depends on the group read first
// whether it is as expected, unless that was done a moment ago, and stop with ErrChanged if not: all but
// Complete, Heartbeat, Suspend, Resume and DeleteHook. None is ever repeated in here.
type Verbs struct {
	// Arrived, if not nil, is called when AWS has answered a Launch, from
	// anywhere. expected: it has launched all that was ordered.
	Arrived func(expected bool)
	// Cluster is the UID of this cluster, empty where it is not known. Groups that another
	// one owns are not changed. Nil for a caller to whom that is all one.
	Cluster func() types.UID

	scaling   autoScaling
	compute   computing
	launching autoscaling.HTTPClient

	now func() time.Time

	reads    *reads
	told     *told
	launches launches

	waits waits
	early *rate.Limiter
}

// NewVerbs returns the verbs of an account.
func NewVerbs(account *Account) *Verbs {
	return &Verbs{
		scaling: account.scaling, compute: account.compute, launching: account.launching, now: time.Now,
		reads: newReads(account), told: &account.told, launches: launches{calls: map[string]*launchCall{}}, waits: waits{of: map[string]wait{}}, early: rate.NewLimiter(earlyRate, earlyBurst),
	}
}

// SetDesired sets a group's desired capacity to to, if it still is from at this moment: where somebody
// else has just raised it above that, Auto Scaling would end instances.
func (v *Verbs) SetDesired(ctx context.Context, group string, from, to int) error {
	now, err := v.describe(ctx, group, 0)
	if err != nil {
		return err
	}
	if err := now.wants(group, from); err != nil {
		return err
	}
	return v.setDesired(ctx, group, from, to)
}

// Lower takes back what a group wants and has not got, if it still wants from.
// Auto Scaling chooses whom it ends where a group has more than it wants. So
// nothing is done unless all that live at this moment fit in to and each is
// protected from scale-in: an instance that comes in between is the only one that
// may be ended, and nothing runs there yet.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
func (v *Verbs) Lower(ctx context.Context, group string, from, to int) error {
	now, err := v.describe(ctx, group, 0)
	if err != nil {
		return err
	}
	if err := now.wants(group, from); err != nil {
		return err
	}
	if err := now.keeps(group, to); err != nil {
		return err
	}
	return v.setDesired(ctx, group, from, to)
}

func (v *Verbs) setDesired(ctx context.Context, group string, from, to int) error {
	_, err := v.scaling.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &group, DesiredCapacity: aws.Int32(int32(to)), HonorCooldown: aws.Bool(false),
	}, once)
	v.changed(group, change{from: from, to: to}, err)
	return explain("autoscaling:SetDesiredCapacity", err)
}

// Terminate ends an instance of a group, if it is in it and not terminating
// already. It may be called for an instance that is protected from scale-in. The desired capacity is not
// lowered with it where the group has more than it wants at this moment: somebody has just lowered that, and
// others would have to go.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
func (v *Verbs) Terminate(ctx context.Context, group, instance string, decrement bool) error {
	now, err := v.describe(ctx, group, asNew)
	if err != nil {
		return Unasked(err)
	}
	i, ok := now.instances[instance]
	if !ok {
		return fmt.Errorf("%w: %s is not in %s any more", ErrChanged, instance, group)
	}
	if i.Terminating() {
		return fmt.Errorf("%w: %s is %s already", ErrChanged, instance, i.State)
	}
	if live := now.live(); decrement && live > now.desired {
		return fmt.Errorf("%w: %s has %d instances, more than the %d that it wants: to want one fewer would end another", ErrChanged, group, live, now.desired)
	}
	_, err = v.scaling.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: &instance, ShouldDecrementDesiredCapacity: &decrement,
	}, once)
	v.changed(group, change{ended: instance, decrement: decrement}, err)
	return explain("autoscaling:TerminateInstanceInAutoScalingGroup", err)
}

// changed notes what a call has changed. What became of one that failed only a new description tells.
func (v *Verbs) changed(group string, c change, err error) {
	if c.at = v.now(); err == nil {
		v.told.note(group, c)
	} else {
		v.reads.latest.doubt(group, c.at)
	}
}

// Suspend stops one of a group's own processes, such as AZRebalance.
func (v *Verbs) Suspend(ctx context.Context, group, process string) error {
	_, err := v.scaling.SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{
		AutoScalingGroupName: &group, ScalingProcesses: []string{process},
	}, once)
	return explain("autoscaling:SuspendProcesses", err)
}

// Resume lets one of a group's own processes run again.
func (v *Verbs) Resume(ctx context.Context, group, process string) error {
	_, err := v.scaling.ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{
		AutoScalingGroupName: &group, ScalingProcesses: []string{process},
	}, once)
	return explain("autoscaling:ResumeProcesses", err)
}

// DeleteHook deletes a lifecycle hook. AWS ends the wait of instances that it holds: one that comes
// is abandoned, one that goes continues.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteLifecycleHook.html
func (v *Verbs) DeleteHook(ctx context.Context, group, hook string) error {
	_, err := v.scaling.DeleteLifecycleHook(ctx, &autoscaling.DeleteLifecycleHookInput{
		AutoScalingGroupName: &group, LifecycleHookName: &hook,
	}, once)
	return explain("autoscaling:DeleteLifecycleHook", err)
}

// Disclaim deletes the tag by which a cluster owns a group. It returns ErrAlready if there is none,
// and ErrNotOurs if another cluster owns the group.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteTags.html
func (v *Verbs) Disclaim(ctx context.Context, group string, owner types.UID) error {
	now, err := v.read(ctx, group, 0)
	if err != nil {
		return err
	}
	if now.owner == "" {
		return ErrAlready
	}
	if err := now.ownedBy(group, owner); err != nil {
		return err
	}
	_, err = v.scaling.DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []astypes.Tag{{
		ResourceType: aws.String("auto-scaling-group"), ResourceId: &group,
		Key: aws.String(contract.TagOwner), Value: aws.String(string(owner)),
	}}}, once)
	return explain("autoscaling:DeleteTags", err)
}

// Claim writes on a group that a cluster owns it, if it has no owner. The last of several
// writers at the same moment wins, so it is read again then. It returns ErrAlready if the
// cluster owns it, and ErrNotOurs if another one does.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateOrUpdateTags.html
func (v *Verbs) Claim(ctx context.Context, group string, owner types.UID) error {
	now, err := v.read(ctx, group, 0)
	if err != nil {
		return err
	}
	if now.owner == owner {
		return ErrAlready
	}
	if now.owner != "" {
		return now.ownedBy(group, owner)
	}
	_, err = v.scaling.CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{
		ResourceType: aws.String("auto-scaling-group"), ResourceId: &group,
		Key: aws.String(contract.TagOwner), Value: aws.String(string(owner)), PropagateAtLaunch: aws.Bool(false),
	}}}, once)
	if err != nil {
		return explain("autoscaling:CreateOrUpdateTags", err)
	}
	if now, err = v.read(ctx, group, 0); err != nil {
		return err
	}
	return now.ownedBy(group, owner)
}

// state is a group as it is this moment.
type state struct {
	owner     types.UID
	mode      mode
	desired   int
	instances map[string]fleet.Instance
	// pooled is true if the group has a warm pool, whose instances are not among these.
	pooled bool
}

// ownedBy fails unless the group is that cluster's.
func (s state) ownedBy(group string, owner types.UID) error {
	if s.owner != owner {
		return fmt.Errorf("%w: tag %s of %s names cluster %q, and this is %q", ErrNotOurs, contract.TagOwner, group, s.owner, owner)
	}
	return nil
}

// wants fails unless the group's desired capacity is n.
func (s state) wants(group string, n int) error {
	if s.desired != n {
		return fmt.Errorf("%w: %s wants %d instances, not %d", ErrChanged, group, s.desired, n)
	}
	return nil
}

// live is how many instances count towards the desired capacity.
func (s state) live() (n int) {
	for _, i := range s.instances {
		if i.Live() {
			n++
		}
	}
	return n
}

// keeps fails unless no instance would have to go if only n were wanted, and none
// of those that are there could.
func (s state) keeps(group string, n int) error {
	for _, id := range slices.Sorted(maps.Keys(s.instances)) {
		if i := s.instances[id]; i.Live() && !i.Protected {
			return fmt.Errorf("%w: %s of %s is not protected from scale-in", ErrChanged, id, group)
		}
	}
	if live := s.live(); live > n {
		return fmt.Errorf("%w: %s has %d instances, more than %d", ErrChanged, group, live, n)
	}
	return nil
}

// asNew is how old a description may be that stands for one of this moment: what AWS describes may be
// older than that by itself.
const asNew = 2 * time.Second

// describe reads a group that is to be changed, unless it was read within a time. It fails where another
// cluster owns it, and where people want it observed.
func (v *Verbs) describe(ctx context.Context, group string, within time.Duration) (state, error) {
	now, err := v.read(ctx, group, within)
	if err == nil && now.owner != "" && v.Cluster != nil {
		err = now.ownedBy(group, v.Cluster())
	}
	if err == nil && now.mode.observed {
		err = fmt.Errorf("%w: tag %s of %s has it observed", ErrNotOurs, contract.TagMode, group)
	}
	return now, err
}

func (v *Verbs) read(ctx context.Context, group string, within time.Duration) (state, error) {
	raw, _, found := v.reads.latest.since(group, v.now().Add(-within))
	if !found {
		var err error
		if raw, found, err = v.reads.of(ctx, group); err != nil {
			return state{}, err
		}
	}
	if !found {
		return state{}, fmt.Errorf("%w: there is no group %s any more", ErrChanged, group)
	}
	v.told.complete(&raw, v.now())
	now := state{
		owner: ownerOf(&raw), mode: modeOf(&raw), desired: int(aws.ToInt32(raw.DesiredCapacity)), instances: map[string]fleet.Instance{}, pooled: raw.WarmPoolConfiguration != nil,
	}
	for _, i := range raw.Instances {
		now.instances[aws.ToString(i.InstanceId)] = newInstance(i)
	}
	return now, nil
}
