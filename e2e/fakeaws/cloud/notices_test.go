package cloud

import (
	"testing"
	"time"
)

// one is a world with one instance in service.
func one(t *testing.T, g Group) (*world, string) {
	t.Helper()
	n := 1
	g.Name, g.Desired, g.Max = "web", &n, 4
	if g.Type == "" {
		g.Type = "m5.large"
	}
	w := newWorld(t, g)
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
	return w, w.Instances()[0].ID
}

// A spot instance is reclaimed two minutes after the notice; the group replaces it when its health check has seen it.
func TestSpotReclaim(t *testing.T) {
	w, id := one(t, Group{Spot: true})
	if err := w.SpotNotice(id, "", 0, w.now); err != nil {
		t.Fatal(err)
	}
	due := w.now.Add(2 * time.Minute)
	if _, n, _ := w.Metadata(id); n.SpotAction != "terminate" || !n.SpotTime.Equal(due) {
		t.Fatalf("notice %s at %v, want terminate at %v", n.SpotAction, n.SpotTime, due)
	}
	w.pass(119 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
	w.pass(2 * time.Second)
	if i, _ := w.Instance(id); i.EC2State != "terminated" || i.OS != OSOff {
		t.Fatalf("after two minutes: %+v", i)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
	if i, _ := w.Instance(id); !i.Gone {
		t.Fatal("the reclaimed instance is still in the group")
	}
	found := false
	for _, a := range w.Activities("web") {
		found = found || a.Description == "Terminating EC2 instance: "+id
	}
	if !found {
		t.Error("no activity tells of its end")
	}
}

// A hook does not hold up a reclaim, but is run on what is left.
func TestSpotReclaimWithHook(t *testing.T) {
	w, id := one(t, Group{Spot: true, Hooks: []Hook{{Name: "down", Transition: "terminate"}}})
	if err := w.SpotNotice(id, "", time.Second, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{TerminatingWait: 1, InService: 1})
	if i, _ := w.Instance(id); i.OS != OSOff || i.Gone {
		t.Fatalf("%+v", i)
	}
}

func TestMaintenance(t *testing.T) {
	w, id := one(t, Group{})
	event, err := w.Maintenance(id, MaintenanceEvent{Code: "system-reboot"}, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.EndMaintenance(id, event, "finished", w.now); err == nil {
		t.Error("an unknown state was taken")
	}
	if err := w.EndMaintenance(id, event, "canceled", w.now); err != nil {
		t.Fatal(err)
	}
	_, n, _ := w.Metadata(id)
	if len(n.Scheduled) != 0 || len(n.History) != 1 || n.History[0].State != "canceled" || n.History[0].Description != "[Canceled] scheduled reboot" {
		t.Errorf("scheduled %+v, history %+v", n.Scheduled, n.History)
	}
	if err := w.EndMaintenance(id, event, "completed", w.now); err == nil {
		t.Error("an event ended twice")
	}
}

func TestUnhealthyIsReplaced(t *testing.T) {
	w, id := one(t, Group{})
	if err := w.SetHealth(id, "Unhealthy", w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
	if i, _ := w.Instance(id); !i.Gone {
		t.Error("it was not replaced")
	}
}

// A killed instance is no more at once; its group learns of it later.
func TestKill(t *testing.T) {
	w, id := one(t, Group{})
	if err := w.Kill(id, w.now); err != nil {
		t.Fatal(err)
	}
	w.want("web", map[LifecycleState]int{InService: 1})
	if i, _ := w.Instance(id); i.OS != OSOff || i.EC2State != "terminated" {
		t.Fatalf("%+v", i)
	}
	w.pass(10 * time.Second)
	if i, _ := w.Instance(id); !i.Gone {
		t.Error("it is still in the group")
	}
	w.pass(2 * time.Hour)
	if _, err := w.Instance(id); err == nil {
		t.Error("EC2 still shows it after two hours")
	}
}

func TestReboot(t *testing.T) {
	w, id := one(t, Group{})
	before := w.Instances()[0].BootID
	if err := w.Reboot(id, w.now); err != nil {
		t.Fatal(err)
	}
	if i, _ := w.Instance(id); i.OS != OSBooting {
		t.Fatalf("%+v", i)
	}
	w.pass(10 * time.Second)
	if i, _ := w.Instance(id); i.OS != OSUp || i.BootID == before || i.BootID == "" {
		t.Fatalf("boot id %q, before %q", i.BootID, before)
	}
}

func TestStandby(t *testing.T) {
	w, id := one(t, Group{})
	if _, err := w.EnterStandby("web", []string{id}, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{Standby: 1, InService: 1})
	if _, n, _ := w.Metadata(id); n.Target != "Standby" {
		t.Errorf("target %q", n.Target)
	}
	if _, err := w.ExitStandby("web", []string{id}, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 2})
}

func TestDetach(t *testing.T) {
	w, id := one(t, Group{})
	if _, err := w.Detach("web", []string{id}, true, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{})
	i, n, _ := w.Metadata(id)
	if i.OS != OSUp || i.Group != "" || n.Target != "Detached" {
		t.Errorf("%+v, target %q", i, n.Target)
	}
}

// Every lifecycle state of the SDK can be shown, and stays.
func TestForceEveryState(t *testing.T) {
	for _, s := range States {
		w, id := one(t, Group{})
		if err := w.Suspend("web", []string{"Launch", "Terminate"}, w.now); err != nil {
			t.Fatal(err)
		}
		if err := w.Force(id, s, w.now); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		w.want("web", map[LifecycleState]int{s: 1})
	}
	w, id := one(t, Group{})
	if err := w.Force(id, "Dreaming", w.now); err == nil {
		t.Error("an unknown state was taken")
	}
}

// A forced wait state can run the real hooks.
func TestForceHook(t *testing.T) {
	w, id := one(t, Group{Hooks: []Hook{{Name: "down", Transition: "terminate"}}})
	if err := w.Force(id, TerminatingWait, w.now); err != nil {
		t.Fatal(err)
	}
	if err := w.ForceHook(id, w.now); err != nil {
		t.Fatal(err)
	}
	if err := w.CompleteLifecycleAction("web", "down", id, "", Continue, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	if i, _ := w.Instance(id); !i.Gone {
		t.Errorf("%+v", i)
	}
}

// A scaled cloud is faster, except for its hooks, whose figures clients reckon with.
func TestTimeScale(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	n := 1
	c, err := New(Spec{Timing: Timing{Quick: true}, TimeScale: 60, Groups: []Group{{Name: "web", Max: 2, Desired: &n, Type: "m5.large", Hooks: []Hook{{Name: "down", Transition: "terminate", HeartbeatSeconds: 30}}}}}, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cloud: c, t: t, now: start}
	w.pass(time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
	id := w.Instances()[0].ID
	if err := w.SpotNotice(id, "", 0, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(1900 * time.Millisecond)
	w.want("web", map[LifecycleState]int{InService: 1})
	w.pass(200 * time.Millisecond)
	if i, _ := w.Instance(id); i.EC2State != "terminated" {
		t.Fatal("two minutes did not take two seconds")
	}
	w.pass(29 * time.Second)
	w.want("web", map[LifecycleState]int{TerminatingWait: 1, InService: 1})
	w.pass(2 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
}
