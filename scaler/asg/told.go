package asg

import (
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// told is what calls of ours have changed about groups lately, as AWS has confirmed it. What AWS
// describes may be older than that by seconds; where it is, this completes it: that much is known
// without asking.
//
// https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
type told struct {
	mu      sync.Mutex
	changes map[string][]change // by group, in their order
}

// toldFor is how long a description may be older than a change: as old as one may be by which something
// is launched, and what AWS describes then may be older still.
const toldFor = newToAdd + 10*time.Second

// change is one: the desired capacity was set, an instance ended, or some were launched.
type change struct {
	at time.Time
	// from and to are the desired capacity before and after it was set.
	from, to int
	// ended is the id of an instance; decrement lowered the desired capacity.
	ended     string
	decrement bool
	launched  []astypes.Instance
}

func (t *told) note(group string, c change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes == nil {
		t.changes = map[string][]change{}
	}
	t.changes[group] = append(t.changes[group], c)
}

// recent are the changes of a group that may be missing from what AWS describes now.
func (t *told) recent(group string, now time.Time) []change {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.DeleteFunc(t.changes[group], func(c change) bool { return now.Sub(c.at) > toldFor })
	if len(all) == 0 {
		delete(t.changes, group)
		return nil
	}
	t.changes[group] = all
	return slices.Clone(all)
}

// complete has a description of a group show what our calls have changed after the moment that it
// is of. A description is of one moment: what shows one change shows all before it.
func (t *told) complete(g *astypes.AutoScalingGroup, now time.Time) {
	missing := t.recent(aws.ToString(g.AutoScalingGroupName), now)
	if len(missing) == 0 {
		return
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if missing[i].shows(g, missing[:i]) {
			missing = missing[i+1:]
			break
		}
	}
	// Up to the first instance that does not show its change, the desired capacity alone says how
	// many of its settings are in it.
	settings := slices.IndexFunc(missing, func(c change) bool { return !c.sets() })
	if settings < 0 {
		settings = len(missing)
	}
	for i := settings - 1; i >= 0; i-- {
		if missing[i].to == int(aws.ToInt32(g.DesiredCapacity)) {
			missing = missing[i+1:]
			break
		}
	}
	g.Instances = slices.Clone(g.Instances) // others may share the description
	for _, c := range missing {
		c.apply(g)
	}
}

// sets reports whether the desired capacity was set.
func (c change) sets() bool { return c.ended == "" && len(c.launched) == 0 }

// shows reports whether an instance in a description shows the change. One that ended and is missing is
// gone, or is not there yet if an earlier change launched it.
func (c change) shows(g *astypes.AutoScalingGroup, earlier []change) bool {
	switch {
	case c.ended != "":
		if i := indexOf(g.Instances, c.ended); i >= 0 {
			return newInstance(g.Instances[i]).Terminating()
		}
		return !slices.ContainsFunc(earlier, func(e change) bool { return indexOf(e.launched, c.ended) >= 0 })
	case len(c.launched) > 0:
		return slices.ContainsFunc(c.launched, func(i astypes.Instance) bool { return indexOf(g.Instances, aws.ToString(i.InstanceId)) >= 0 })
	}
	return false
}

func (c change) apply(g *astypes.AutoScalingGroup) {
	desired := int(aws.ToInt32(g.DesiredCapacity))
	switch {
	case c.ended != "":
		if i := indexOf(g.Instances, c.ended); i >= 0 {
			g.Instances[i].LifecycleState = astypes.LifecycleStateTerminating
		}
		if c.decrement {
			desired--
		}
	case len(c.launched) > 0:
		for _, i := range c.launched {
			i.ProtectedFromScaleIn = g.NewInstancesProtectedFromScaleIn
			g.Instances = append(g.Instances, i)
		}
		desired += len(c.launched)
	case desired == c.from: // else somebody else has set it
		desired = c.to
	}
	g.DesiredCapacity = aws.Int32(int32(desired))
}

func indexOf(instances []astypes.Instance, instance string) int {
	return slices.IndexFunc(instances, func(i astypes.Instance) bool { return aws.ToString(i.InstanceId) == instance })
}
