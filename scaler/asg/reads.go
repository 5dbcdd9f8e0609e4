package asg

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// reads tell how a group is from the moment on at which somebody asks. Who comes while calls are under
// way waits for the next one, which names the groups of all who wait: a hundred instances that end at
// the same time take a handful of calls.
type reads struct {
	scaling autoScaling
	turns   chan struct{} // full while as many calls are under way as may be

	mu   sync.Mutex
	next *groupsCall // the one that is not sent yet; nil for none
}

const (
	// readsAtOnce is how many of these calls may be under way: where one hangs, others go on.
	readsAtOnce = 4
	// groupReadTime is how long one may take, so that those who wait for a turn are not late.
	groupReadTime = 4 * time.Second
)

// groupsCall is one call for several groups.
type groupsCall struct {
	names []string
	done  chan struct{} // closed when there is an answer
	found map[string]astypes.AutoScalingGroup
	err   error
}

func newReads(scaling autoScaling) *reads {
	return &reads{scaling: scaling, turns: make(chan struct{}, readsAtOnce)}
}

// of returns a group as it is; found is false where there is none of that name.
func (r *reads) of(ctx context.Context, name string) (group astypes.AutoScalingGroup, found bool, err error) {
	call := r.join(ctx, name)
	select {
	case <-call.done:
		group, found = call.found[name]
		return group, found, call.err
	case <-ctx.Done():
		return group, false, explain("autoscaling:DescribeAutoScalingGroups", ctx.Err())
	}
}

// join adds a group to the next call.
func (r *reads) join(ctx context.Context, name string) *groupsCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil || len(r.next.names) == groupsPerPage {
		r.next = &groupsCall{done: make(chan struct{})}
		go r.send(context.WithoutCancel(ctx), r.next) // the first of them may give up, and the others wait
	}
	if !slices.Contains(r.next.names, name) {
		r.next.names = append(r.next.names, name)
	}
	return r.next
}

func (r *reads) send(ctx context.Context, call *groupsCall) {
	defer close(call.done)
	r.turns <- struct{}{}
	defer func() { <-r.turns }()
	r.mu.Lock()
	if r.next == call {
		r.next = nil // who comes from here on may ask for what this answer is too old for
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, groupReadTime)
	defer cancel()
	groups, err := pages(ctx, r.scaling, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: call.names})
	if call.err = err; err != nil {
		return
	}
	call.found = make(map[string]astypes.AutoScalingGroup, len(groups))
	for _, g := range groups {
		call.found[aws.ToString(g.AutoScalingGroupName)] = g
	}
}
