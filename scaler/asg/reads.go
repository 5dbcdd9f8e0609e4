package asg

import (
	"context"
	"maps"
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
	latest  *descriptions
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

func newReads(account *Account) *reads {
	return &reads{scaling: account.scaling, latest: &account.latest, turns: make(chan struct{}, readsAtOnce)}
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
	asked := time.Now()
	groups, err := pages(ctx, r.scaling, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: call.names})
	if call.err = err; err != nil {
		return
	}
	call.found = make(map[string]astypes.AutoScalingGroup, len(groups))
	for _, g := range groups {
		call.found[aws.ToString(g.AutoScalingGroupName)] = g
	}
	r.latest.note(groups, asked)
}

// descriptions are the latest ones of groups, whoever of us has asked.
type descriptions struct {
	mu sync.Mutex
	of map[string]description
}

// description is how a group was when it was asked for, or later; without a group it is not known how
// that is since then.
type description struct {
	group *astypes.AutoScalingGroup
	asked time.Time
}

// groupKept is for how long a description is kept that no other has followed.
const groupKept = 10 * time.Minute

func (d *descriptions) note(groups []astypes.AutoScalingGroup, asked time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[string]description{}
	}
	maps.DeleteFunc(d.of, func(_ string, old description) bool { return asked.Sub(old.asked) > groupKept })
	for _, g := range groups {
		if name := aws.ToString(g.AutoScalingGroupName); asked.After(d.of[name].asked) {
			d.of[name] = description{&g, asked}
		}
	}
}

// doubt has what was asked for until now not count: a call has failed, and may have had its effect.
func (d *descriptions) doubt(group string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[string]description{}
	}
	d.of[group] = description{asked: now}
}

// oldest is when the oldest of the latest descriptions of some groups was asked for; zero for none.
func (d *descriptions) oldest(groups []string) (asked time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, name := range groups {
		of := d.of[name]
		if of.group == nil {
			return time.Time{}
		}
		if i == 0 || of.asked.Before(asked) {
			asked = of.asked
		}
	}
	return asked
}

// since is the latest description of a group, if it was asked for after a moment.
func (d *descriptions) since(group string, moment time.Time) (latest astypes.AutoScalingGroup, asked time.Time, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.of[group]
	if of.group == nil || !of.asked.After(moment) {
		return latest, asked, false
	}
	return *of.group, of.asked, true
}
