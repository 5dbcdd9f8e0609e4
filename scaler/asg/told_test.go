package asg

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// summary is what matters of a description, in the order of ids.
func summary(g astypes.AutoScalingGroup) []string {
	var out []string
	for _, i := range g.Instances {
		out = append(out, aws.ToString(i.InstanceId)+" "+string(i.LifecycleState))
	}
	slices.Sort(out)
	return append(out, fmt.Sprint("desired ", aws.ToInt32(g.DesiredCapacity)))
}

func copied(g astypes.AutoScalingGroup) astypes.AutoScalingGroup {
	g.Instances = slices.Clone(g.Instances)
	return g
}

// TestCompleted: where nobody but us changes a group, any description of the last seconds, of whatever
// moment, is completed to what is; twice is as good as once.
func TestCompleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
		g := astypes.AutoScalingGroup{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(3)}
		add := func(n int) (came []astypes.Instance) {
			for range n {
				came = append(came, astypes.Instance{InstanceId: aws.String(fmt.Sprint("i-", len(g.Instances)+len(came))), LifecycleState: astypes.LifecycleStatePending})
			}
			return came
		}
		g.Instances = add(3)
		var all told
		past := []astypes.AutoScalingGroup{copied(g)}
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			c := change{at: now}
			desired := int(aws.ToInt32(g.DesiredCapacity))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				c.from, c.to = desired, rapid.IntRange(0, 6).Draw(t, "to")
				g.DesiredCapacity = aws.Int32(int32(c.to))
			case 1:
				i := rapid.IntRange(0, len(g.Instances)-1).Draw(t, "instance")
				if newInstance(g.Instances[i]).Terminating() {
					continue
				}
				c.ended, c.decrement = aws.ToString(g.Instances[i].InstanceId), rapid.Bool().Draw(t, "decrement")
				g = copied(g)
				g.Instances[i].LifecycleState = astypes.LifecycleStateTerminating
				if c.decrement {
					g.DesiredCapacity = aws.Int32(int32(desired - 1))
				}
			case 2:
				c.launched = add(rapid.IntRange(1, 2).Draw(t, "count"))
				g.Instances = append(slices.Clone(g.Instances), c.launched...)
				g.DesiredCapacity = aws.Int32(int32(desired + len(c.launched)))
			}
			all.note("web", c)
			past = append(past, copied(g))
			now = now.Add(time.Second)
		}
		for n, before := range past {
			for range 2 {
				all.complete(&before, now)
				if diff := cmp.Diff(summary(g), summary(before)); diff != "" {
					t.Fatalf("the description after %d of %d changes (-is +completed):\n%s", n, len(past)-1, diff)
				}
			}
		}
		later := copied(past[0])
		all.complete(&later, now.Add(toldFor+time.Minute))
		if diff := cmp.Diff(summary(past[0]), summary(later)); diff != "" {
			t.Fatalf("a minute later AWS's word stands:\n%s", diff)
		}
	})
}

// What others do meanwhile stands.
func TestCompletedBesideOthers(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	group := func(desired int32, instances ...string) astypes.AutoScalingGroup {
		g := astypes.AutoScalingGroup{AutoScalingGroupName: aws.String("web"), DesiredCapacity: &desired}
		for _, id := range instances {
			g.Instances = append(g.Instances, astypes.Instance{InstanceId: aws.String(id), LifecycleState: astypes.LifecycleStateInService})
		}
		return g
	}
	for _, c := range []struct {
		name    string
		changes []change
		is      astypes.AutoScalingGroup
		want    []string
	}{
		{"somebody set another desired capacity", []change{{from: 2, to: 3}}, group(9, "i-1"), []string{"i-1 InService", "desired 9"}},
		{"what we ended is gone", []change{{ended: "i-2", decrement: true}}, group(5, "i-1"), []string{"i-1 InService", "desired 5"}},
		{"we set it, and ended one that is gone", []change{{from: 4, to: 5}, {ended: "i-2", decrement: true}}, group(4, "i-1"), []string{"i-1 InService", "desired 4"}},
		{"one of those launched has died", []change{{launched: group(0, "i-2", "i-3").Instances}}, group(3, "i-1", "i-3"), []string{"i-1 InService", "i-3 InService", "desired 3"}},
	} {
		var all told
		for _, x := range c.changes {
			x.at = now
			all.note("web", x)
		}
		all.note("other", change{at: now, from: 1, to: 7})
		all.complete(&c.is, now)
		if diff := cmp.Diff(c.want, summary(c.is)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
