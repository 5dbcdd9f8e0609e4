package cloud

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// launch calls LaunchInstances as a server does.
func (w *world) launchSync(r LaunchRequest) (LaunchResult, error) {
	earlier, err := w.StartLaunch(r, w.now)
	if err != nil {
		return LaunchResult{}, err
	}
	if earlier != nil {
		return *earlier, nil
	}
	return w.FinishLaunch(r, w.now)
}

// The answer names the instances, desired grows, and the same token launches nothing more.
func TestLaunchInstances(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Zones: abc})
	r := LaunchRequest{Group: "web", Token: "t1", Capacity: 3, Zones: abc[1:2]}
	first, err := w.launchSync(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.launchSync(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same token answered differently (-first +again):\n%s", diff)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 3})
	if got := w.zones("web"); got != "a0 b3 c0" || len(first.Launched[0].IDs) != 3 || first.Launched[0].Market != "OnDemand" {
		t.Errorf("zones %s, answer %+v", got, first)
	}
	if g, _ := w.Group("web"); g.Desired != 3 {
		t.Errorf("desired %d", g.Desired)
	}
}

// Partial success is normal: what could not be launched is told, and nothing is tried again.
func TestLaunchInstancesPartly(t *testing.T) {
	for retry, desired := range map[string]int{"none": 2, "retry-with-group-configuration": 5} {
		w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Zones: abc})
		w.SetShortages([]Shortage{{Zone: abc[0], Left: 2}})
		got, err := w.launchSync(LaunchRequest{Group: "web", Token: "t", Capacity: 5, Zones: abc[:1], Retry: retry})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Launched) != 1 || len(got.Launched[0].IDs) != 2 || len(got.Shortages) != 1 || got.Shortages[0].Code != InsufficientInstanceCapacity {
			t.Errorf("%s: %+v", retry, got)
		}
		w.pass(20 * time.Second)
		w.want("web", map[LifecycleState]int{InService: desired})
		if g, _ := w.Group("web"); g.Desired != desired {
			t.Errorf("%s: desired %d, want %d", retry, g.Desired, desired)
		}
	}
}

// A token stands for its first call for eight hours, and for a new one after that.
func TestLaunchInstancesTokenEnds(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large"})
	r := LaunchRequest{Group: "web", Token: "t", Capacity: 1}
	for _, step := range []struct {
		wait    time.Duration
		desired int
	}{{0, 1}, {tokenLife - time.Second, 1}, {time.Second, 2}} {
		w.pass(step.wait)
		if _, err := w.launchSync(r); err != nil {
			t.Fatal(err)
		}
		if g, _ := w.Group("web"); g.Desired != step.desired {
			t.Errorf("after %s more: desired %d, want %d", step.wait, g.Desired, step.desired)
		}
	}
}

// Groups that the page says it is not for.
func TestLaunchInstancesUnsupported(t *testing.T) {
	percent := func(n int) *int { return &n }
	mixed := func(name string, base int, above *int) Group {
		return Group{Name: name, Max: 3, MixedInstances: &MixedInstances{
			LaunchTemplate: TemplateRef{Name: "plain"}, Overrides: []Override{{Type: "m5.large"}}, OnDemandBase: base, OnDemandPercentAbove: above}}
	}
	w := newWorld(t, Group{Name: "plain", Max: 3, Type: "m5.large"}, Group{Name: "warm", Max: 3, Type: "m5.large", WarmPool: &WarmPool{}},
		mixed("half", 0, percent(50)), mixed("base", 1, percent(0)), mixed("spot", 0, percent(0)), mixed("on-demand", 1, percent(100)))
	for group, code := range map[string]string{
		"plain": "", "warm": "UnsupportedOperation", "half": "ValidationError", "base": "ValidationError", "spot": "", "on-demand": "",
	} {
		_, err := w.launchSync(LaunchRequest{Group: group, Token: "t", Capacity: 1})
		var e *Error
		if errors.As(err, &e); (e == nil) != (code == "") || e != nil && e.Code != code {
			t.Errorf("%s: %v, want %q", group, err, code)
		}
	}
}

// Calls that are not answered yet count: together they do not exceed the maximum.
func TestLaunchInstancesAtOnce(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 3, Type: "m5.large"})
	if _, err := w.StartLaunch(LaunchRequest{Group: "web", Token: "a", Capacity: 2}, w.now); err != nil {
		t.Fatal(err)
	}
	if _, err := w.StartLaunch(LaunchRequest{Group: "web", Token: "b", Capacity: 2}, w.now); err == nil {
		t.Error("four of at most three")
	}
	if _, err := w.StartLaunch(LaunchRequest{Group: "web", Token: "b", Capacity: 1}, w.now); err != nil {
		t.Error(err)
	}
}

func TestLaunchInstancesErrors(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Zones: abc}, Group{Name: "big", Max: 1000, Type: "m5.large"})
	if _, err := w.StartLaunch(LaunchRequest{Group: "web", Token: "busy", Capacity: 1, Zones: abc[:1]}, w.now); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request LaunchRequest
		status  int
		code    string
	}{
		"in progress":      {LaunchRequest{Group: "web", Token: "busy", Capacity: 1, Zones: abc[:1]}, 500, "IdempotentCallInProgress"},
		"other parameters": {LaunchRequest{Group: "web", Token: "busy", Capacity: 2, Zones: abc[:1]}, 400, "IdempotentParameterMismatch"},
		"above max":        {LaunchRequest{Group: "web", Token: "a", Capacity: 11, Zones: abc[:1]}, 400, "ValidationError"},
		"no zone":          {LaunchRequest{Group: "web", Token: "a", Capacity: 1}, 400, "ValidationError"},
		"two zones":        {LaunchRequest{Group: "web", Token: "a", Capacity: 1, Zones: abc[:2]}, 400, "ValidationError"},
		"foreign zone":     {LaunchRequest{Group: "web", Token: "a", Capacity: 1, Zones: []string{"eu-west-1z"}}, 400, "ValidationError"},
		"names and ids":    {LaunchRequest{Group: "web", Token: "a", Capacity: 1, Zones: abc[:1], ZoneIDs: []string{"euw1-az1"}}, 400, "ValidationError"},
		"more than 100":    {LaunchRequest{Group: "big", Token: "a", Capacity: 101}, 400, "ValidationError"},
		"bad token":        {LaunchRequest{Group: "web", Token: "a b", Capacity: 1, Zones: abc[:1]}, 400, "ValidationError"},
		"nothing":          {LaunchRequest{Group: "web", Token: "a", Capacity: 0, Zones: abc[:1]}, 400, "ValidationError"},
		"no group":         {LaunchRequest{Group: "none", Token: "a", Capacity: 1}, 400, "ValidationError"},
	} {
		_, err := w.launchSync(c.request)
		var e *Error
		if !errors.As(err, &e) || e.Status != c.status || e.Code != c.code {
			t.Errorf("%s: got %v, want %d %s", name, err, c.status, c.code)
		}
	}
	for _, named := range []LaunchRequest{{ZoneIDs: []string{"euw1-az3"}}, {SubnetIDs: []string{subnetOf(abc[2])}}} {
		named.Group, named.Token, named.Capacity = "web", "by"+first(named.ZoneIDs), 1
		if got, err := w.launchSync(named); err != nil || got.Launched[0].Zone != abc[2] {
			t.Errorf("%+v: %+v, %v", named, got, err)
		}
	}
}
