package asg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/asg/template"
)

// slowly answers after a second with what was so when it was asked.
type slowly struct {
	autoScaling
	desired int32

	mu    sync.Mutex
	calls [][]string
}

func (s *slowly) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	s.mu.Lock()
	s.calls = append(s.calls, in.AutoScalingGroupNames)
	out := &autoscaling.DescribeAutoScalingGroupsOutput{}
	for _, name := range in.AutoScalingGroupNames {
		if name != "gone" {
			out.AutoScalingGroups = append(out.AutoScalingGroups, astypes.AutoScalingGroup{AutoScalingGroupName: aws.String(name), DesiredCapacity: aws.Int32(s.desired)})
		}
	}
	s.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return out, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Many who ask at the same time are answered by few calls, each of which has room for them, and each
// by one that was sent after it asked.
func TestReadsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aws := &slowly{}
		r := newReads(&Account{scaling: aws})
		var asking sync.WaitGroup
		for i := range 250 {
			asking.Go(func() {
				if _, found, err := r.of(t.Context(), fmt.Sprint("group-", i)); !found || err != nil {
					t.Errorf("group %d: found %v, error %v", i, found, err)
				}
			})
		}
		asking.Wait()
		if n := len(aws.calls); n > 8 {
			t.Errorf("%d calls for 250 groups", n)
		}
		for _, names := range aws.calls {
			if len(names) > groupsPerPage {
				t.Errorf("a call names %d groups", len(names))
			}
		}
		if _, found, err := r.of(t.Context(), "gone"); found || err != nil {
			t.Errorf("one that is gone: found %v, error %v", found, err)
		}
	})
}

// An answer is never older than the question, also where other calls are under way.
func TestReadsAreFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := &slowly{}
		r := newReads(&Account{scaling: cloud})
		var asking sync.WaitGroup
		for step := range 40 {
			cloud.mu.Lock()
			cloud.desired = int32(step)
			cloud.mu.Unlock()
			asking.Go(func() {
				g, _, err := r.of(t.Context(), "web")
				if got := aws.ToInt32(g.DesiredCapacity); err != nil || got < int32(step) {
					t.Errorf("asked at step %d, answered as of %d (%v)", step, got, err)
				}
			})
			time.Sleep(130 * time.Millisecond)
		}
		asking.Wait()
		if n := len(cloud.calls); n > 25 {
			t.Errorf("%d calls within 5 s that take one each", n)
		}
	})
}

// Who gives up does not keep the others from their answer, and a call that hangs ends.
func TestReadsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReads(&Account{scaling: &slowly{}})
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, _, err := r.of(soon, "web"); !errors.Is(err, ErrUnavailable) {
				t.Errorf("without time: %v", err)
			}
		})
		asking.Go(func() {
			if _, found, err := r.of(t.Context(), "web"); !found || err != nil {
				t.Errorf("the other: found %v, error %v", found, err)
			}
		})
		asking.Wait()
		r = newReads(&Account{scaling: hanging{}})
		began := time.Now()
		if _, _, err := r.of(t.Context(), "web"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("one that hangs: %v", err)
		}
		if took := time.Since(began); took != groupReadTime {
			t.Errorf("took %s", took)
		}
	})
}

// lone is a group that counts how often it is described, and judges what it is changed by.
type lone struct {
	autoScaling
	desired   int32
	instances []astypes.Instance
	launched  int
	fails     bool

	calls     int
	described time.Time
	failed    time.Time
	wrong     string
}

func (l *lone) DescribeAutoScalingGroups(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	l.calls, l.described = l.calls+1, time.Now()
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: []astypes.AutoScalingGroup{{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(l.desired), Instances: slices.Clone(l.instances)}}}, nil
}

// judge says what is wrong with a change at this moment, and notes whether it fails.
func (l *lone) judge(most time.Duration) (err error) {
	switch {
	case time.Since(l.described) >= most:
		l.wrong = fmt.Sprintf("changed by a description of %s ago", time.Since(l.described))
	case l.described.Before(l.failed):
		l.wrong = "changed by a description from before a call that failed"
	}
	if l.fails {
		l.failed, err = time.Now(), errors.New("no answer")
	}
	return err
}

func (l *lone) LaunchInstances(context.Context, *autoscaling.LaunchInstancesInput, ...func(*autoscaling.Options)) (*autoscaling.LaunchInstancesOutput, error) {
	l.launched++
	id := fmt.Sprint("i-", l.launched)
	l.instances, l.desired = append(l.instances, astypes.Instance{InstanceId: &id}), l.desired+1
	return &autoscaling.LaunchInstancesOutput{Instances: []astypes.InstanceCollection{{InstanceIds: []string{id}}}}, l.judge(12 * time.Second)
}

func (l *lone) SetDesiredCapacity(_ context.Context, in *autoscaling.SetDesiredCapacityInput, _ ...func(*autoscaling.Options)) (*autoscaling.SetDesiredCapacityOutput, error) {
	if !l.fails {
		l.desired = aws.ToInt32(in.DesiredCapacity)
	}
	return &autoscaling.SetDesiredCapacityOutput{}, l.judge(2 * time.Second)
}

func (l *lone) TerminateInstanceInAutoScalingGroup(_ context.Context, in *autoscaling.TerminateInstanceInAutoScalingGroupInput, _ ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	if !l.fails {
		l.instances = slices.DeleteFunc(l.instances, func(i astypes.Instance) bool { return *i.InstanceId == *in.InstanceId })
		l.desired--
	}
	return &autoscaling.TerminateInstanceInAutoScalingGroupOutput{}, l.judge(2 * time.Second)
}

// Whoever has described a group, and whatever became of calls: one is changed only by a description of
// the last two seconds, or twelve where that only adds, and by none from before a call that failed. Those
// that are as new are not asked for again.
func TestChangedByNews(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 30).Draw(t, "steps")
		pauses := rapid.SliceOfN(rapid.IntRange(1, 2500), len(steps), len(steps)).Draw(t, "pauses")
		wrong, calls, changes := played(outer, steps, pauses)
		if wrong != "" {
			t.Fatal(wrong)
		}
		if calls > changes {
			t.Fatalf("%d descriptions for %d changes", calls, changes)
		}
	})
	// Each time that the desired capacity is set the group is described right before.
	if wrong, calls, _ := played(outer, []int{2, 2, 2, 2}, []int{500, 500, 500, 500}); wrong != "" || calls != 4 {
		outer.Errorf("%d descriptions for four changes of the desired capacity (%s)", calls, wrong)
	}
	if wrong, calls, _ := played(outer, []int{6, 6, 8, 8}, []int{500, 500, 500, 500}); wrong != "" || calls != 1 {
		outer.Errorf("%d descriptions for two launches and two terminations within two seconds (%s)", calls, wrong)
	}
	if wrong, calls, _ := played(outer, []int{6, 6, 6, 6}, []int{5000, 5000, 5000, 5000}); wrong != "" || calls != 2 {
		outer.Errorf("%d descriptions for four launches within fifteen seconds (%s)", calls, wrong)
	}
}

// played has steps happen: a reading, somebody else's change, calls of ours that are answered, and one that
// is not.
func played(t *testing.T, steps, pauses []int) (wrong string, calls, wanted int) {
	synctest.Test(t, func(t *testing.T) {
		group := &lone{}
		account := &Account{scaling: group}
		r := NewReader(account, Selection{Named: []Named{{Name: "web", Max: 50}}}, template.Assumptions{}, slog.New(slog.DiscardHandler), nil)
		v := NewVerbs(account)
		for i, step := range steps {
			switch step {
			case 0:
				asked := r.now()
				found, _, err := r.describe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				account.latest.note(found, asked)
				wanted++
			case 1:
				group.desired++
			default:
				group.fails = step == 5 || step == 7 || step == 9
				from := int(group.desired)
				wanted++
				switch {
				case step < 6:
					_ = v.SetDesired(t.Context(), "web", from, from+1)
				case step >= 8 && len(group.instances) > 0:
					_ = v.Terminate(t.Context(), "web", *group.instances[0].InstanceId, true)
				default:
					_, _ = v.Launch(t.Context(), LaunchOrder{Group: "web", Zone: "a", Token: fmt.Sprint(i), Count: 1, From: &from})
				}
			}
			time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
		}
		wrong, calls = group.wrong, group.calls
	})
	return wrong, calls, wanted
}
