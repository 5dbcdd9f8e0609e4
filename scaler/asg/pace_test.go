package asg

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Reading is quick while something moves, slower the longer it takes, and slow
// otherwise.
func TestPace(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		moving, want time.Duration // how long something has been moving; 0 for nothing
	}{
		{0, 40 * time.Second}, {time.Millisecond, time.Second}, {4 * time.Second, 2 * time.Second}, {20 * time.Second, 10 * time.Second},
		{10 * time.Minute, 10 * time.Second}, {100 * time.Minute, 20 * time.Second}, {48 * time.Hour, 40 * time.Second},
	} {
		var since time.Time
		if tc.moving > 0 {
			since = now.Add(-tc.moving)
		}
		if got := pace(now, since, since, slow); got != tc.want {
			t.Errorf("moving for %s: %s, want %s", tc.moving, got, tc.want)
		}
	}
}

// However often readings are wanted, few are made in a minute; who waits as long as he is told to reads.
func TestAllowance(t *testing.T) {
	began := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	allowance := rate.NewLimiter(rate.Every(readEvery), readBurst)
	var read []time.Duration
	for now := began; now.Before(began.Add(5 * time.Minute)); {
		wait := untilAllowed(allowance, now, false)
		if now = now.Add(wait); wait > 0 && untilAllowed(allowance, now, false) != 0 {
			t.Fatalf("at %s it has waited for %s in vain", now.Sub(began), wait)
		}
		spend(allowance, now)
		read = append(read, now.Sub(began))
	}
	within := func(from, to time.Duration) (n int) {
		for _, at := range read {
			if at >= from && at < to {
				n++
			}
		}
		return n
	}
	if n := within(0, time.Second); n != readBurst {
		t.Errorf("%d readings at once, want %d", n, readBurst)
	}
	for minute := range 5 {
		if n := within(time.Duration(minute)*time.Minute, time.Duration(minute+1)*time.Minute); n < 8 || n > 14 {
			t.Errorf("%d readings in minute %d", n, minute)
		}
	}
	// Those that are asked for do not wait, but are bounded, too; what they leave is no endless debt.
	now := began.Add(time.Hour)
	for i := range readBurst + readLent {
		if wait := untilAllowed(allowance, now, true); wait != 0 {
			t.Errorf("the one asked for as number %d waits for %s", i, wait)
		}
		spend(allowance, now)
	}
	if untilAllowed(allowance, now, true) == 0 {
		t.Error("however many are asked for are made")
	}
	for range 100 {
		spend(allowance, now)
	}
	if wait := untilAllowed(allowance, now, false); wait > (readLent+2)*readEvery {
		t.Errorf("after many the next one waits for %s", wait)
	}
}

// Whatever others have taken off the allowance, what must not be missed is read in time: an instance that
// waits for a short hook, and what failed to be read.
func TestNextReading(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	short := fleet.Group{Hooks: []fleet.Hook{{Transition: fleet.OnTerminate, Heartbeat: metav1.Duration{Duration: 30 * time.Second}}}}
	for _, c := range []struct {
		name   string
		latest reading
		spent  int
		asked  bool
		age    time.Duration
		want   time.Duration
	}{
		{"nothing was read", reading{}, 0, false, -1, 0},
		{"nothing moves", reading{at: now}, 0, false, 10 * time.Second, 30 * time.Second},
		{"asked for", reading{at: now}, 0, true, 10 * time.Second, 0},
		{"asked for again at once", reading{at: now}, 0, true, 0, 200 * time.Millisecond},
		{"something moves", reading{at: now, moving: now, surprised: now}, 0, false, 0, time.Second},
		{"the allowance is spent", reading{at: now, moving: now, surprised: now}, readBurst, false, 0, readEvery + time.Millisecond},
		{"asked for, and lent", reading{at: now}, readBurst, true, time.Second, 0},
		{"instances are owed", reading{at: now, moving: now.Add(-5 * time.Second), owed: now.Add(-5 * time.Second)}, 100, false, 200 * time.Millisecond, 800 * time.Millisecond},
		{"they have been for long", reading{at: now, moving: now.Add(-time.Minute), owed: now.Add(-time.Minute)}, 0, false, 0, 10 * time.Second},
		{"a short hook", reading{at: now, moving: now, groups: []fleet.Group{short}}, 100, false, 14 * time.Second, time.Second},
		{"it failed", reading{at: now, err: ErrThrottled}, 100, false, 4 * time.Second, time.Second},
	} {
		r := hangingReader()
		r.now = func() time.Time { return now }
		r.latest = c.latest
		for range c.spent {
			spend(r.allowance, now)
		}
		last := now.Add(-c.age)
		if c.age < 0 {
			last = time.Time{}
		}
		if got := r.next(last, c.asked); got != c.want {
			t.Errorf("%s: in %s, want %s", c.name, got, c.want)
		}
	}
}

// What the verbs have read of the groups in which something moves need not be read again; what they have
// not read is.
func TestReadByVerbs(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	r := hangingReader()
	r.now = func() time.Time { return now }
	r.latest = reading{at: now, moving: now.Add(-time.Minute), moves: []string{"api", "web"}}
	last := now.Add(-9 * time.Second)
	for _, c := range []struct {
		read   string
		before time.Duration
		want   time.Duration
	}{
		{"", 0, time.Second},
		{"web", 3 * time.Second, time.Second},
		{"api", 4 * time.Second, 6 * time.Second},
		{"other", 0, 6 * time.Second},
	} {
		if c.read != "" {
			r.account.latest.note([]astypes.AutoScalingGroup{{AutoScalingGroupName: aws.String(c.read)}}, now.Add(-c.before))
		}
		if got := r.next(last, false); got != c.want {
			t.Errorf("%s is read: in %s, want %s", c.read, got, c.want)
		}
	}
	if got := r.next(last, true); got != 0 {
		t.Errorf("asked for: in %s", got)
	}
}

// What our own calls have begun is known, so that it has nothing read more often; what others begin has.
func TestSurprised(t *testing.T) {
	began := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	group := func(desired int32, states ...string) *astypes.AutoScalingGroup {
		g := &astypes.AutoScalingGroup{AutoScalingGroupName: aws.String("web"), DesiredCapacity: &desired}
		for n, state := range states {
			g.Instances = append(g.Instances, astypes.Instance{InstanceId: aws.String(fmt.Sprint("i-", n)), LifecycleState: astypes.LifecycleState(state)})
		}
		return g
	}
	ended := []change{{ended: "i-1", decrement: true}}
	for _, c := range []struct {
		name string
		ours []change
		is   *astypes.AutoScalingGroup
		want time.Duration
	}{
		{"nothing has", nil, group(2, "InService", "InService"), slow},
		{"we ended one", ended, group(1, "InService", "Terminating"), steady},
		{"others ended one", nil, group(1, "InService", "Terminating"), quick},
		{"others ended another one", ended, group(1, "Terminating", "Terminating"), quick},
		{"we launched one", []change{{launched: group(0, "Pending").Instances}}, group(3, "InService", "InService", "Pending"), steady},
		{"others want one more", nil, group(3, "InService", "InService"), quick},
	} {
		k := &known{raw: group(2, "InService", "InService"), leaving: map[string]time.Time{}, exact: map[string]bool{}}
		k.settle(began, nil)
		k.surprised = time.Time{}
		k.raw = c.is
		k.settle(began.Add(time.Minute), c.ours)
		if got := pace(began.Add(time.Minute), k.moving, k.surprised, slow); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// An instance of which its node tells that it leaves is read of at once, and again while no reading shows
// that, whatever was spent; not for long, and not for one that no group has.
func TestLeavingIsRead(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	r := hangingReader()
	r.now = func() time.Time { return now }
	shown := func(state string) reading {
		return reading{at: now, groups: []fleet.Group{{Name: "web", Instances: []fleet.Instance{{ID: "i-1", State: state}}}}}
	}
	r.keep(shown(fleet.InService))
	for range 100 {
		spend(r.allowance, now)
	}
	expect := func(what string, most, least time.Duration) {
		t.Helper()
		if got := r.next(now, true); got > most || got < least {
			t.Errorf("%s: in %s", what, got)
		}
	}
	expect("nothing is known", time.Hour, 3*time.Second)
	r.Look("i-9", true)
	expect("no group has it", time.Hour, 3*time.Second)
	r.Look("i-1", true)
	expect("it leaves", leavingEvery, 0)
	r.keep(shown(fleet.InService))
	expect("that does not show", leavingEvery, 0)
	r.keep(shown(fleet.Terminating))
	expect("it shows", time.Hour, 3*time.Second)
	r.keep(shown(fleet.InService))
	r.Look("i-1", true)
	now = now.Add(leavingFor)
	for range 100 {
		spend(r.allowance, now)
	}
	expect("it never shows", time.Hour, 3*time.Second)
}

// An instance that has no Node and waits for a hook is seen before the hook's time is over.
func TestSlowest(t *testing.T) {
	hook := func(transition string, heartbeat time.Duration) fleet.Group {
		return fleet.Group{Hooks: []fleet.Hook{{Transition: transition, Heartbeat: metav1.Duration{Duration: heartbeat}}}}
	}
	for _, tc := range []struct {
		reason string
		groups []fleet.Group
		want   time.Duration
	}{
		{"no hook", []fleet.Group{{}}, 40 * time.Second},
		{"a long one", []fleet.Group{hook(fleet.OnTerminate, 5*time.Minute)}, 40 * time.Second},
		{"the shortest that AWS takes", []fleet.Group{hook(fleet.OnTerminate, 5*time.Minute), hook(fleet.OnTerminate, 30*time.Second)}, 15 * time.Second},
		{"one of launches", []fleet.Group{hook(fleet.OnLaunch, 30*time.Second)}, 40 * time.Second},
		{"one whose time is not known", []fleet.Group{hook(fleet.OnTerminate, 0)}, 40 * time.Second},
	} {
		if got := slowest(tc.groups); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
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
