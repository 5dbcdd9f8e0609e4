package cloud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var abc = []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}

// zones counts the instances that count by the last letter of their zone.
func (w *world) zones(group string) string {
	w.t.Helper()
	counts := w.findGroup(group).zoneCounts()
	return fmt.Sprintf("a%d b%d c%d", counts[abc[0]], counts[abc[1]], counts[abc[2]])
}

func (w *world) desire(group string, n int) {
	w.t.Helper()
	if err := w.SetDesiredCapacity(group, n, false, w.now); err != nil {
		w.t.Fatal(err)
	}
	w.pass(10 * time.Second)
}

// Launches go to the emptiest zone, terminations come from the fullest.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html
func TestZonesAreBalanced(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Zones: abc})
	for _, step := range []struct {
		desired int
		want    string
	}{{7, "a3 b2 c2"}, {6, "a2 b2 c2"}, {3, "a1 b1 c1"}, {0, "a0 b0 c0"}} {
		w.desire("web", step.desired)
		if got := w.zones("web"); got != step.want {
			t.Errorf("desired %d: %s, want %s", step.desired, got, step.want)
		}
	}
}

// Protected instances are never chosen; when all are, the activities say so, once.
func TestScaleInProtection(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", ProtectNewInstances: true})
	w.desire("web", 3)
	ids := w.Instances()
	if err := w.Protect("web", []string{ids[2].ID}, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.desire("web", 0)
	w.pass(time.Hour)
	w.want("web", map[LifecycleState]int{InService: 2})
	said := 0
	for _, a := range w.Activities("web") {
		if a.StatusMessage == protectedMessage {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the protection was told %d times, want once", said)
	}
	if err := w.Protect("web", []string{ids[0].ID, ids[1].ID}, false, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{})
}

// The termination policies choose within the fullest zone; by default those of an older template version go first.
func TestTerminationPolicies(t *testing.T) {
	for policy, want := range map[string]int{"": 0, "OldestInstance": 0, "NewestInstance": 2, "OldestLaunchTemplate": 0} {
		g := Group{Name: "web", Max: 10, Type: "m5.large"}
		if policy != "" {
			g.TerminationPolicies = []string{policy}
		}
		w := newWorld(t, g)
		for n := range 3 {
			w.desire("web", n+1)
		}
		all := w.Instances()
		w.desire("web", 2)
		if i, err := w.Instance(all[want].ID); err != nil || !i.Gone {
			t.Errorf("policy %q: number %d stays: %v", policy, want, err)
		}
	}
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", TerminationPolicies: []string{"OldestLaunchTemplate", "NewestInstance"}})
	w.desire("web", 1)
	if _, err := w.AddTemplateVersion("web", TemplateVersion{Type: "m5.large"}); err != nil {
		t.Fatal(err)
	}
	w.desire("web", 2)
	w.desire("web", 1)
	if left := w.findGroup("web").counting(); len(left) != 1 || left[0].LaunchTemplateVersion != 2 {
		t.Errorf("the instance of the older template version stays: %+v", left)
	}
}

// A zone without capacity is told in a Failed activity, and the next zone takes over in the same attempt.
func TestShortageInOneZone(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Zones: abc})
	w.SetShortages([]Shortage{{Zone: "eu-west-1a"}})
	w.desire("web", 4)
	if got := w.zones("web"); got != "a0 b2 c2" {
		t.Errorf("zones %s, want all in b and c", got)
	}
	var failed []string
	for _, a := range w.Activities("web") {
		if a.StatusCode == "Failed" {
			failed = append(failed, a.StatusMessage)
		}
	}
	want := []string{"We currently do not have sufficient m5.large capacity in the Availability Zone you requested (eu-west-1a). Our system will be working on provisioning additional capacity. " +
		"You can currently get m5.large capacity by not specifying an Availability Zone in your request or choosing eu-west-1b, eu-west-1c. Launching EC2 instance failed."}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without capacity anywhere the group tries again and again, and succeeds when there is some.
func TestShortageEverywhere(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Spot: true})
	w.SetShortages([]Shortage{{}})
	w.desire("web", 1) // 10 s, so that it is tried about three times
	failed := 0
	for _, a := range w.Activities("web") {
		failed++
		if want := "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available that matches your request. Launching EC2 instance failed."; a.StatusMessage != want {
			t.Fatalf("got %q\nwant %q", a.StatusMessage, want)
		}
		if !strings.HasPrefix(a.Description, "Launching a new EC2 instance.  Status Reason: Could not launch Spot Instances.") {
			t.Fatalf("description %q", a.Description)
		}
	}
	if failed < 2 || failed > 4 {
		t.Fatalf("%d attempts in 10 s, want one about every 5 s", failed)
	}
	w.SetShortages(nil)
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 1})
}

// Every known kind of failure has a text of its own.
func TestShortageTexts(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Types: []string{"m5.large"}})
	for code, want := range map[string]string{
		UnfulfillableCapacity:             "Could not launch On-Demand Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. Please adjust your request and try again. Launching EC2 instance failed.",
		VcpuLimitExceeded:                 "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit. Launching EC2 instance failed.",
		InsufficientFreeAddressesInSubnet: "Could not launch On-Demand Instances. InsufficientFreeAddressesInSubnet - There are not enough free addresses in subnet '" + subnetOf(abc[0]) + "' to satisfy the requested number of instances. Launching EC2 instance failed.",
		Unsupported:                       "Could not launch On-Demand Instances. Unsupported - Your requested instance type (m5.large) is not supported in your requested Availability Zone (eu-west-1a). Please retry your request by not specifying an Availability Zone or choosing eu-west-1b, eu-west-1c. Launching EC2 instance failed.",
	} {
		w.SetShortages([]Shortage{{Code: code}})
		w.desire("web", 1)
		if got := w.Activities("web")[0]; got.StatusMessage != want || got.StatusCode != "Failed" {
			t.Errorf("%s: got %s %q\nwant %q", code, got.StatusCode, got.StatusMessage, want)
		}
		w.desire("web", 0)
	}
}

// A deleted launch template is a failed launch, not a crash.
func TestTemplateIsGone(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large"})
	if err := w.DeleteTemplate("web"); err != nil {
		t.Fatal(err)
	}
	w.desire("web", 1)
	a := w.Activities("web")[0]
	if want := "The specified launch template, with template ID " + w.findGroup("web").spec.LaunchTemplate.ID + ", does not exist. Launching EC2 instance failed."; a.StatusMessage != want {
		t.Errorf("got %q, want %q", a.StatusMessage, want)
	}
}

// A mixed instances policy buys its base on demand and the given share above it, and falls back from type to type.
func TestMixedInstances(t *testing.T) {
	half := 50
	w := newWorld(t, Group{Name: "web", Max: 10, Types: []string{"m5.large", "m5a.large", "m6i.large"}})
	w.findGroup("web").spec.MixedInstances.OnDemandBase = 1
	w.findGroup("web").spec.MixedInstances.OnDemandPercentAbove = &half
	w.SetShortages([]Shortage{{Type: "m5.large", Market: "on-demand"}})
	w.desire("web", 5)
	got := map[string]int{}
	for _, i := range w.findGroup("web").counting() {
		got[fmt.Sprintf("%s spot=%v", i.Type, i.Spot)]++
	}
	if diff := cmp.Diff(map[string]int{"m5a.large spot=false": 3, "m5a.large spot=true": 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Weights: the desired capacity is in units of them.
func TestWeights(t *testing.T) {
	mixed := &MixedInstances{LaunchTemplate: TemplateRef{Name: "base"}, Overrides: []Override{{Type: "m5.xlarge", Weight: 4}, {Type: "m5.large", Weight: 2}}}
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	c, err := New(Spec{
		Timing:          Timing{Quick: true},
		LaunchTemplates: []LaunchTemplate{{Name: "base", Versions: []TemplateVersion{{Type: "m5.large"}}}},
		Groups:          []Group{{Name: "web", Max: 20, MixedInstances: mixed}},
	}, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cloud: c, t: t, now: start}
	w.desire("web", 8)
	w.want("web", map[LifecycleState]int{InService: 2})
	w.desire("web", 6) // Neither of the two fits into the surplus.
	w.want("web", map[LifecycleState]int{InService: 2})
	w.desire("web", 4)
	w.want("web", map[LifecycleState]int{InService: 1})
}

// Suspended processes do nothing.
func TestSuspended(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large", Suspended: []string{"Launch"}})
	w.desire("web", 2)
	w.want("web", map[LifecycleState]int{})
	if err := w.Resume("web", []string{"Launch"}, w.now); err != nil {
		t.Fatal(err)
	}
	if err := w.Suspend("web", []string{"Terminate", "ReplaceUnhealthy"}, w.now); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Second)
	w.want("web", map[LifecycleState]int{InService: 2})
	if err := w.SetHealth(w.Instances()[0].ID, "Unhealthy", w.now); err != nil {
		t.Fatal(err)
	}
	w.desire("web", 0)
	w.want("web", map[LifecycleState]int{InService: 2})
	if err := w.Suspend("web", []string{"Nothing"}, w.now); err == nil {
		t.Error("an unknown process was suspended")
	}
}

// The cause tells who changed the capacity and what followed.
func TestCause(t *testing.T) {
	w := newWorld(t, Group{Name: "web", Max: 10, Type: "m5.large"})
	w.desire("web", 1)
	a := w.Activities("web")[0]
	want := "At 2026-08-01T12:00:00Z a user request explicitly set group desired capacity changing the desired capacity from 0 to 1." +
		"  At 2026-08-01T12:00:00Z an instance was started in response to a difference between desired and actual capacity, increasing the capacity from 0 to 1."
	if a.Cause != want || a.StatusCode != "Successful" || a.Description != "Launching a new EC2 instance: "+w.Instances()[0].ID {
		t.Errorf("got %+v\nwant the cause %s", a, want)
	}
}
