package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		if n := len(aws.calls); n > 5 {
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
		if n := len(cloud.calls); n > 15 {
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

// What a call of ours has changed is known without asking; the next reading has AWS's word.
func TestFollow(t *testing.T) {
	three := func() *known {
		k := &known{leaving: map[string]time.Time{}, exact: map[string]bool{}}
		k.raw = &astypes.AutoScalingGroup{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(3)}
		for _, id := range []string{"i-1", "i-2", "i-3"} {
			k.raw.Instances = append(k.raw.Instances, astypes.Instance{InstanceId: aws.String(id), LifecycleState: astypes.LifecycleStateInService})
		}
		return k
	}
	five := 5
	for _, c := range []struct {
		name    string
		changes []Change
		desired int
		leaving []string
	}{
		{"grown", []Change{{Group: "web", Desired: &five}}, 5, nil},
		{"one ended", []Change{{Group: "web", Ended: "i-2", Decrement: true}}, 2, []string{"i-2"}},
		{"one replaced", []Change{{Group: "web", Ended: "i-2"}}, 3, []string{"i-2"}},
		{"two ended", []Change{{Group: "web", Ended: "i-1", Decrement: true}, {Group: "web", Ended: "i-3", Decrement: true}}, 1, []string{"i-1", "i-3"}},
		{"the same twice", []Change{{Group: "web", Ended: "i-1", Decrement: true}, {Group: "web", Ended: "i-1", Decrement: true}}, 2, []string{"i-1"}},
		{"one that is gone", []Change{{Group: "web", Ended: "i-9", Decrement: true}}, 3, nil},
		{"a group that is gone", []Change{{Group: "old", Ended: "i-1", Decrement: true}}, 3, nil},
	} {
		r := hangingReader()
		r.known["web"] = three()
		r.keep(r.assemble(r.now()))
		at := r.latestAt()
		r.Follow(t.Context(), time.Second, c.changes)
		groups, when, err := r.Groups(nil)
		if err != nil || !when.Equal(at) {
			t.Fatalf("%s: error %v, a reading of %s became one of %s", c.name, err, at, when)
		}
		var leaving []string
		for _, i := range groups[0].Instances {
			if i.Terminating() {
				leaving = append(leaving, i.ID)
			}
		}
		if groups[0].Desired != c.desired || !slices.Equal(leaving, c.leaving) {
			t.Errorf("%s: desired %d and %v are leaving, want %d and %v", c.name, groups[0].Desired, leaving, c.desired, c.leaving)
		}
	}
}
