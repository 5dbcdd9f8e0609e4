package cloud

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// AZRebalance launches before it terminates.
func TestRebalanceZones(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 40, Type: "m5.large", Zones: abc[:2]})
	w.SetShortages([]Shortage{{Zone: abc[1]}})
	w.desire("web", 4)
	w.SetShortages(nil)
	moved, err := w.RebalanceZones("web", false, w.now)
	if err != nil || moved != 2 {
		t.Fatalf("moved %d, %v; want 2", moved, err)
	}
	w.want("web", map[LifecycleState]int{InService: 4, Pending: 2})
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 4})
	if got := w.zones("web"); got != "a2 b2 c0" {
		t.Errorf("zones %s", got)
	}
	if _, err := w.RebalanceZones("web", false, w.now); err == nil {
		t.Error("balanced zones were balanced again")
	}
	if n, err := w.RebalanceZones("web", true, w.now); err != nil || n != 1 {
		t.Errorf("forced: %d, %v", n, err)
	}
	if err := w.Suspend("web", []string{"AZRebalance"}, w.now); err != nil {
		t.Fatal(err)
	}
	if _, err := w.RebalanceZones("web", true, w.now); err == nil {
		t.Error("a suspended process ran")
	}
}

// With capacity rebalancing a recommendation brings a successor first; without, nothing.
func TestRebalanceRecommendation(t *testing.T) {
	for _, on := range []bool{true, false} {
		two := 2
		w := newWorld(t, Group{Name: "web", Max: 4, Desired: &two, Type: "m5.large", Spot: true, CapacityRebalance: on})
		w.pass(10 * time.Second)
		id := w.Instances()[0].ID
		if err := w.Rebalance(id, w.now); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Second)
		w.want("web", map[LifecycleState]int{InService: 2})
		if i, _ := w.Instance(id); i.Gone != on {
			t.Errorf("capacity rebalancing %v: gone %v", on, i.Gone)
		}
	}
}

func TestRefresh(t *testing.T) {
	four := 4
	w := newWorld(t, Group{Name: "web", Max: 8, Desired: &four, Type: "m5.large"})
	w.pass(10 * time.Second)
	var before []string
	for _, i := range w.Instances() {
		before = append(before, i.ID)
	}
	half := 50
	if _, err := w.StartRefresh("web", RefreshPreferences{MinHealthyPercentage: &half}, w.now); err != nil {
		t.Fatal(err)
	}
	if _, err := w.StartRefresh("web", RefreshPreferences{}, w.now); err == nil || err.(*Error).Code != "InstanceRefreshInProgress" {
		t.Fatalf("a second refresh: %v", err)
	}
	lowest := 4
	for range 1000 {
		w.pass(20 * time.Millisecond)
		lowest = min(lowest, w.findGroup("web").serving())
	}
	if lowest != 2 {
		t.Errorf("at least %d of 4 served, want 2", lowest)
	}
	g, _ := w.Group("web")
	if r := g.Refreshes[0]; r.Status != "Successful" || r.Percent() != 100 || r.Left != 0 {
		t.Errorf("refresh %+v", r)
	}
	for _, i := range g.Instances {
		if slices.Contains(before, i.ID) {
			t.Errorf("%s was not replaced", i.ID)
		}
	}
}

// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html (ScaleInProtectedInstances)
func TestRefreshOfProtected(t *testing.T) {
	for protected, want := range map[string]string{"Refresh": "Successful", "Ignore": "Successful", "Wait": "Failed"} {
		one := 1
		w := newWorld(t, Group{Name: "web", Max: 8, Desired: &one, Type: "m5.large", ProtectNewInstances: true})
		w.pass(10 * time.Second)
		id := w.Instances()[0].ID
		if _, err := w.StartRefresh("web", RefreshPreferences{Protected: protected}, w.now); err != nil {
			t.Fatal(err)
		}
		w.pass(59 * time.Minute)
		w.pass(10 * time.Minute)
		g, _ := w.Group("web")
		i, _ := w.Instance(id)
		if g.Refreshes[0].Status != want || (i.Gone || i.ID == "") != (protected == "Refresh") {
			t.Errorf("%s: refresh %+v, instance gone: %v", protected, g.Refreshes[0], i.Gone)
		}
	}
}

func TestCancelRefresh(t *testing.T) {
	two := 2
	w := newWorld(t, Group{Name: "web", Max: 8, Desired: &two, Type: "m5.large", ProtectNewInstances: true})
	w.pass(10 * time.Second)
	if _, err := w.CancelRefresh("web", w.now); err == nil || err.(*Error).Code != "ActiveInstanceRefreshNotFound" {
		t.Fatalf("cancelled nothing: %v", err)
	}
	id, err := w.StartRefresh("web", RefreshPreferences{}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.CancelRefresh("web", w.now); err != nil || got != id {
		t.Fatalf("cancelled %s, %v", got, err)
	}
	g, _ := w.Group("web")
	if g.Refreshes[0].Status != "Cancelled" {
		t.Errorf("refresh %+v", g.Refreshes[0])
	}
}

// A warm pool is filled, lends its instances, and takes them back where it reuses them.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html
func TestWarmPool(t *testing.T) {
	three := 3
	w := newWorld(t, Group{Name: "web", Max: 5, Type: "m5.large", WarmPool: &WarmPool{MaxPrepared: &three, ReuseOnScaleIn: true}})
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{WarmedStopped: 3})
	w.TakeEvents()
	w.desire("web", 1)
	w.want("web", map[LifecycleState]int{WarmedStopped: 2, InService: 1})
	w.desire("web", 0)
	w.want("web", map[LifecycleState]int{WarmedStopped: 3})
	want := []string{" Pending/booting InService/booting InService/up Warmed:Pending/up Warmed:Stopped/off"}
	if diff := cmp.Diff(want, w.paths()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.desire("web", 5)
	w.want("web", map[LifecycleState]int{InService: 5})
}

// The hooks of a warm pool: launch hooks twice, terminating hooks on the way back.
func TestWarmPoolHooks(t *testing.T) {
	one := 1
	w := newWorld(t, Group{Name: "web", Max: 5, Type: "m5.large", WarmPool: &WarmPool{MaxPrepared: &one, ReuseOnScaleIn: true, State: "Running"},
		Hooks: []Hook{{Name: "up", Transition: "launch"}, {Name: "down", Transition: "terminate"}}})
	id := ""
	step := func(hook string, wait, rest LifecycleState) {
		t.Helper()
		w.pass(10 * time.Second)
		w.want("web", map[LifecycleState]int{wait: 1})
		id = w.Instances()[0].ID
		if err := w.CompleteLifecycleAction("web", hook, id, "", Continue, w.now); err != nil {
			t.Fatal(err)
		}
		w.pass(100 * time.Millisecond)
		w.want("web", map[LifecycleState]int{rest: 1})
	}
	step("up", WarmedPendingWait, WarmedRunning)
	_ = w.SetDesiredCapacity("web", 1, false, w.now)
	step("up", PendingWait, InService)
	_ = w.SetDesiredCapacity("web", 0, false, w.now)
	w.pass(10 * time.Second)
	if _, n, _ := w.Metadata(id); n.Target != "Warmed:Running" {
		t.Errorf("target state %q on the way back", n.Target)
	}
	step("down", WarmedPendingWait, WarmedRunning)
}
