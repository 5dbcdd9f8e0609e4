package asg

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// Reading is quick while something moves, slower the longer it takes, and slow
// otherwise: two calls a minute.
func TestPace(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		moving, want time.Duration // how long something has been moving; 0 for nothing
	}{
		{0, 30 * time.Second}, {time.Millisecond, time.Second}, {time.Minute, time.Second},
		{5 * time.Minute, 5 * time.Second}, {30 * time.Minute, 30 * time.Second}, {48 * time.Hour, 30 * time.Second},
	} {
		var since time.Time
		if tc.moving > 0 {
			since = now.Add(-tc.moving)
		}
		if got := pace(now, since); got != tc.want {
			t.Errorf("moving for %s: %s, want %s", tc.moving, got, tc.want)
		}
	}
}

func TestUnsettled(t *testing.T) {
	for _, tc := range []struct {
		name    string
		desired int32
		states  []astypes.LifecycleState
		want    bool
	}{
		{"all are there", 2, []astypes.LifecycleState{"InService", "InService"}, false},
		{"one is missing", 2, []astypes.LifecycleState{"InService"}, true},
		{"one is booting", 1, []astypes.LifecycleState{"Pending"}, true},
		{"one waits to leave", 1, []astypes.LifecycleState{"InService", "Terminating:Wait"}, true},
		{"one stands by", 1, []astypes.LifecycleState{"InService", "Standby"}, false},
		{"some are kept warm", 1, []astypes.LifecycleState{"InService", "Warmed:Stopped"}, false},
	} {
		g := &astypes.AutoScalingGroup{DesiredCapacity: &tc.desired}
		for _, state := range tc.states {
			g.Instances = append(g.Instances, astypes.Instance{InstanceId: aws.String("i"), LifecycleState: state})
		}
		if got := unsettled(g); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// Where many groups move at once, those that were not asked the longest are
// asked first, so that each has its turn.
func TestCuriosityIsShared(t *testing.T) {
	now := time.Now()
	r := &Reader{known: map[string]*known{}}
	one := int32(1)
	for i := range 12 {
		name := string(rune('a' + i))
		r.known[name] = &known{raw: &astypes.AutoScalingGroup{AutoScalingGroupName: &name, DesiredCapacity: &one}, moving: now}
	}
	asked := map[string]int{}
	for range 3 {
		for _, k := range r.mostCurious(now) {
			asked[*k.raw.AutoScalingGroupName]++
			k.activitiesAt = now.Add(pace(now, k.moving))
		}
		now = now.Add(time.Second)
	}
	if len(asked) != 12 {
		t.Errorf("asked %v in three readings of at most %d", asked, activitiesAtOnce)
	}
}
