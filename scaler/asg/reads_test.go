package asg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
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
		r := newReads(aws)
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
		r := newReads(cloud)
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
		r := newReads(&slowly{})
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
		r = newReads(hanging{})
		began := time.Now()
		if _, _, err := r.of(t.Context(), "web"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("one that hangs: %v", err)
		}
		if took := time.Since(began); took != groupReadTime {
			t.Errorf("took %s", took)
		}
	})
}
