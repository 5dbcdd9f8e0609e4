package asg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"windlass.dev/windlass/pkg/fleet"
)

// fact is what we know of the reading of something that shows no trace on the
// group's description when it changes. It is read when the group is new or was
// changed, when an instance begins to terminate, and when Recheck asks for it; a pool
// in other cases, too, see noticePool.
type fact struct {
	read  bool
	fault string
	next  time.Time // when to read again after a failure
}

func (f *fact) forget() { f.read = false }

func (f *fact) due(now time.Time) bool { return !f.read && !now.Before(f.next) }

// done notes how a reading went.
func (f *fact) done(what string, err error, now time.Time) {
	if err == nil {
		*f = fact{read: true}
		return
	}
	f.fault, f.next = fmt.Sprintf("%s not known: %v", what, err), now.Add(retryFault)
	if passing(err) {
		f.next = now.Add(quick)
	}
}

func (k *known) forgetFacts() {
	k.hooking.forget()
	k.pooling.forget()
	k.refreshing.forget()
}

func (r *Reader) studyFacts(ctx context.Context, k *known, now time.Time) {
	if k.hooking.due(now) {
		k.hooking.done("its lifecycle hooks are", r.readHooks(ctx, k), now)
	}
	if k.pooling.due(now) {
		k.pooling.done("the instances of its warm pool are", r.readPool(ctx, k), now)
	}
	if k.refresh != nil && !now.Before(k.refreshAt) {
		k.refreshing.forget() // its end shows nowhere else
	}
	if k.refreshing.due(now) {
		k.refreshAt = now.Add(refreshEvery)
		k.refreshing.done("whether an instance refresh is under way is", r.readRefresh(ctx, k), now)
	}
}

// refreshEvery is how often a refresh that is under way is looked at.
const refreshEvery = 15 * time.Second

func (r *Reader) readHooks(ctx context.Context, k *known) error {
	out, err := r.account.scaling.DescribeLifecycleHooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: k.raw.AutoScalingGroupName})
	if err != nil {
		return explain("autoscaling:DescribeLifecycleHooks", err)
	}
	k.hooks = nil
	for _, h := range out.LifecycleHooks {
		k.hooks = append(k.hooks, newHook(h))
	}
	slices.SortFunc(k.hooks, func(a, b fleet.Hook) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// noticePool decides whether to read the warm pool. Its instances are not in the
// group's description, but their number is, and the group's own instances: those
// that come from the pool or return to it. One that leaves without coming to the
// group changes neither before it is gone: where that may be, the pool is read again in time.
func (k *known) noticePool(now time.Time) {
	if k.raw.WarmPoolConfiguration == nil {
		k.warm, k.pooling, k.pool = nil, fact{read: true}, ""
		return
	}
	ids := make([]string, 0, len(k.raw.Instances))
	for _, i := range k.raw.Instances {
		ids = append(ids, aws.ToString(i.InstanceId))
	}
	slices.Sort(ids)
	pool := identify(k.raw.WarmPoolConfiguration, k.raw.WarmPoolSize, ids)
	onTheWay := slices.ContainsFunc(k.warm, unrested)
	if onTheWay && k.moving.IsZero() {
		k.moving, k.surprised = now, now
	}
	if pool != k.pool || onTheWay || k.poolTooLarge() || k.poolUnread(now) {
		k.pool = pool
		k.pooling.forget()
	}
}

// poolUnread reports whether an instance that leaves the pool for another reason, as one that is
// not healthy while no other can be launched in its place, might wait for three quarters of its hook's
// time until the next reading.
func (k *known) poolUnread(now time.Time) bool {
	held := shortestHold(k.hooks)
	return held > 0 && now.Sub(k.pooled) >= held*3/4-slowestFor(held)
}

// poolTooLarge reports whether the pool, as it was last read, has more instances than Auto Scaling
// keeps in it.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html
func (k *known) poolTooLarge() bool {
	c := k.raw.WarmPoolConfiguration
	prepared := aws.ToInt32(k.raw.MaxSize)
	if most := c.MaxGroupPreparedCapacity; most != nil && *most >= 0 { // -1 stands for none
		prepared = *most
	}
	keeps := max(aws.ToInt32(c.MinSize), prepared-aws.ToInt32(k.raw.DesiredCapacity))
	if c.Status == astypes.WarmPoolStatusPendingDelete {
		keeps = 0
	}
	has := int32(0)
	for _, i := range k.warm {
		if !newInstance(i).Retained() {
			has++
		}
	}
	return has > keeps
}

// unrested reports whether an instance of a warm pool moves into it or out. One
// that is retained stays as it is until somebody acts.
func unrested(i astypes.Instance) bool {
	instance := newInstance(i)
	return !instance.Retained() && (strings.HasPrefix(instance.State, fleet.WarmedPending) || strings.HasPrefix(instance.State, fleet.WarmedTerminating))
}

func (r *Reader) readPool(ctx context.Context, k *known) error {
	asked := r.now()
	found, err := warmPool(ctx, r.account.scaling, aws.ToString(k.raw.AutoScalingGroupName))
	if err == nil {
		k.warm, k.pooled = found, asked
	}
	return err
}

// warmPool reads the instances of a group's warm pool.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeWarmPool.html
func warmPool(ctx context.Context, scaling autoScaling, group string) ([]astypes.Instance, error) {
	in := &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: &group}
	var found []astypes.Instance
	for {
		out, err := scaling.DescribeWarmPool(ctx, in)
		if err != nil {
			return nil, explain("autoscaling:DescribeWarmPool", err)
		}
		found = append(found, out.Instances...)
		if aws.ToString(out.NextToken) == "" {
			return found, nil
		}
		in.NextToken = out.NextToken
	}
}

// readRefresh finds the refresh that is under way: there is one at most, and it is
// the newest.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeInstanceRefreshes.html
func (r *Reader) readRefresh(ctx context.Context, k *known) error {
	out, err := r.account.scaling.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{
		AutoScalingGroupName: k.raw.AutoScalingGroupName, MaxRecords: aws.Int32(refreshesRead),
	})
	if err != nil {
		return explain("autoscaling:DescribeInstanceRefreshes", err)
	}
	k.refresh = nil
	for _, refresh := range out.InstanceRefreshes {
		if slices.Contains(underWay, refresh.Status) {
			k.refresh = &fleet.Refresh{ID: aws.ToString(refresh.InstanceRefreshId), Status: string(refresh.Status)}
			break
		}
	}
	return nil
}

// refreshesRead is how many of the newest refreshes are read.
const refreshesRead = 5

// underWay are the states of a refresh that replaces instances, or will again.
var underWay = []astypes.InstanceRefreshStatus{
	astypes.InstanceRefreshStatusPending, astypes.InstanceRefreshStatusInProgress, astypes.InstanceRefreshStatusCancelling,
	astypes.InstanceRefreshStatusRollbackInProgress, astypes.InstanceRefreshStatusBaking,
}
