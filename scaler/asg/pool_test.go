package asg

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/pkg/fleet"
)

// What Auto Scaling keeps in a pool follows the group's maximum, or the capacity that is to be prepared,
// less what is desired.
func TestPoolTooLarge(t *testing.T) {
	for _, c := range []struct {
		reason   string
		pool     astypes.WarmPoolConfiguration
		desired  int32
		retained int
		want     bool
	}{
		{"as many as the maximum leaves", astypes.WarmPoolConfiguration{}, 3, 0, false},
		{"one more", astypes.WarmPoolConfiguration{}, 4, 0, true},
		{"one more, of which one is retained", astypes.WarmPoolConfiguration{}, 4, 1, false},
		{"the least", astypes.WarmPoolConfiguration{MinSize: aws.Int32(2)}, 5, 0, false},
		{"more are prepared than the maximum", astypes.WarmPoolConfiguration{MaxGroupPreparedCapacity: aws.Int32(7)}, 5, 0, false},
		{"fewer are", astypes.WarmPoolConfiguration{MaxGroupPreparedCapacity: aws.Int32(4)}, 3, 0, true},
		{"no capacity is named", astypes.WarmPoolConfiguration{MaxGroupPreparedCapacity: aws.Int32(-1)}, 3, 0, false},
		{"it is being deleted", astypes.WarmPoolConfiguration{Status: astypes.WarmPoolStatusPendingDelete}, 3, 0, true},
	} {
		k := &known{raw: &astypes.AutoScalingGroup{MaxSize: aws.Int32(5), DesiredCapacity: &c.desired, WarmPoolConfiguration: &c.pool}}
		for i := range 2 {
			state := astypes.LifecycleStateWarmedStopped
			if i < c.retained {
				state = astypes.LifecycleStateWarmedTerminatingRetained
			}
			k.warm = append(k.warm, astypes.Instance{InstanceId: aws.String(fmt.Sprint("i-", i)), LifecycleState: state})
		}
		if got := k.poolTooLarge(); got != c.want {
			t.Errorf("%s: too large is %v", c.reason, got)
		}
	}
}

// An instance that leaves a pool for another reason leaves no trace: it is read again while a hook that
// may hold one still waits.
func TestPoolUnread(t *testing.T) {
	began := time.Unix(0, 0)
	hook := func(transition string, heartbeat time.Duration) fleet.Hook {
		return fleet.Hook{Transition: transition, Heartbeat: metav1.Duration{Duration: heartbeat}}
	}
	for _, c := range []struct {
		reason string
		hooks  []fleet.Hook
		unread time.Duration // 0 for never
	}{
		{"nothing holds it", nil, 0},
		{"only launches are held", []fleet.Hook{hook(fleet.OnLaunch, time.Minute)}, 0},
		{"the first to give up counts", []fleet.Hook{hook(fleet.OnTerminate, time.Hour), hook(fleet.OnTerminate, 5*time.Minute)}, (225 - 40) * time.Second},
		{"one that is short", []fleet.Hook{hook(fleet.OnTerminate, 40*time.Second)}, 10 * time.Second},
	} {
		k := &known{raw: &astypes.AutoScalingGroup{MaxSize: aws.Int32(5), WarmPoolConfiguration: &astypes.WarmPoolConfiguration{}}, hooks: c.hooks}
		due := func(after time.Duration) bool {
			k.pooling.read = true
			k.noticePool(began.Add(after))
			return k.pooling.due(began.Add(after))
		}
		due(0) // the group is new
		k.pooled = began
		if c.unread == 0 && due(24*time.Hour) || c.unread > 0 && (due(c.unread-time.Second) || !due(c.unread)) {
			t.Errorf("%s: not read again after %s, and not before", c.reason, c.unread)
		}
	}
}

// TestPoolIsReadInTime: an instance of a pool that is not healthy, where no other can take its place, is
// seen while its hook holds it; and nobody pays more for that than two readings in each such time.
func TestPoolIsReadInTime(t *testing.T) {
	const held = 300
	one := 1
	const moment = cloud.Duration(time.Millisecond)
	server, err := fakeaws.Start(fakeaws.Config{NoIMDS: true, Spec: fakeaws.Spec{
		Timing: fakeaws.Timing{Quick: true, Reconcile: moment, Pending: moment, Boot: moment, Shutdown: moment},
		Groups: []fakeaws.Group{{Name: "web", Max: 2, Desired: &one, Type: "m5.large", Tags: map[string]string{"mine": ""}, WarmPool: &fakeaws.WarmPool{},
			Hooks: []fakeaws.Hook{{Name: "windlass", Transition: fleet.OnTerminate, HeartbeatSeconds: held}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	fillPools(t, server)
	r := idleReader(t, server.URL())
	now := time.Now()
	r.now = func() time.Time { return now }
	pool := func() string {
		if err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		state := ""
		for _, i := range r.known["web"].warm {
			state += string(i.LifecycleState) + " "
		}
		now = now.Add(r.next(now, false))
		return state
	}
	if state := pool(); state != "Warmed:Stopped " {
		t.Fatalf("the pool has %q", state)
	}
	first := server.LastSeq()
	for end := now.Add(time.Hour); now.Before(end); {
		pool()
	}
	if n := len(server.Calls(fakeaws.After(first), fakeaws.Operation("DescribeWarmPool"))); n < 3600/held || n > 2*3600/held {
		t.Errorf("%d readings of the pool in an hour", n)
	}
	if err := server.SetShortages(fakeaws.Shortage{Group: "web"}); err != nil {
		t.Fatal(err)
	}
	for _, i := range server.Instances() {
		if i.LifecycleState == "Warmed:Stopped" {
			if err := server.SetHealth(i.ID, "Unhealthy"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for ended := now; pool() != "Warmed:Terminating:Wait "; {
		if now.Sub(ended) > held*time.Second {
			t.Fatal("the instance that left was not seen while its hook held it")
		}
	}
}

// An instance that has left the pool since that was described is there once, as it is now.
func TestLeftThePoolOnce(t *testing.T) {
	in := func(state astypes.LifecycleState) []astypes.Instance {
		return []astypes.Instance{{InstanceId: aws.String("i-1"), LifecycleState: state}}
	}
	k := &known{raw: &astypes.AutoScalingGroup{Instances: in(astypes.LifecycleStatePending)}, warm: in(astypes.LifecycleStateWarmedStopped)}
	if got := k.instances(); len(got) != 1 || got[0].State != string(astypes.LifecycleStatePending) {
		t.Errorf("instances %+v", got)
	}
}

// What counts towards the desired capacity is what Auto Scaling counts.
func TestLiveIsWhatCounts(t *testing.T) {
	for _, state := range cloud.States {
		if state == cloud.Quarantined { // AWS uses it no more
			continue
		}
		if live := (fleet.Instance{State: string(state)}).Live(); live != state.Counts() {
			t.Errorf("%s: live %v, counts %v", state, live, state.Counts())
		}
	}
}

// An instance that gets another root volume tells of a refresh, which neither ends an instance nor
// changes the group until it is over.
func TestRootVolumeTellsOfARefresh(t *testing.T) {
	now := time.Now()
	k := &known{raw: &astypes.AutoScalingGroup{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(1), Instances: []astypes.Instance{{InstanceId: aws.String("i-1"), LifecycleState: astypes.LifecycleStateInService}}}}
	k.settle(now, nil)
	k.refreshing.done("", nil, now)
	k.settle(now, nil)
	if k.refreshing.due(now) {
		t.Error("it is asked for though nothing tells of one")
	}
	k.raw.Instances[0].LifecycleState = astypes.LifecycleStateReplacingRootVolume
	k.settle(now, nil)
	if !k.refreshing.due(now) {
		t.Error("it is not asked for")
	}
}
