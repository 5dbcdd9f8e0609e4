package asg_test

import (
	"errors"
	"testing"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/scaler/asg"
)

const token = "0123456789abcdef0123456789abcdef"

var ab = []string{"eu-west-1a", "eu-west-1b"}

func twoZones(t *testing.T, answerTakes fakeaws.Duration) *bed {
	slow := timing
	slow.LaunchInstances = answerTakes
	return start(t, fakeaws.Spec{Timing: slow, Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large", Zones: ab}}})
}

func order(count int) asg.LaunchOrder {
	return asg.LaunchOrder{Group: "web", Zone: "eu-west-1b", Token: token, Count: count}
}

func after(o asg.LaunchOrder, from int) asg.LaunchOrder {
	o.From = &from
	return o
}

func (b *bed) wantDesired(t *testing.T, want int) {
	t.Helper()
	if g, err := b.Group("web"); err != nil || g.Desired != want {
		t.Errorf("desired %d, want %d; error %v", g.Desired, want, err)
	}
}

// Instances come in the zone that was asked for, once: also for another process
// that repeats the token.
func TestLaunch(t *testing.T) {
	b := twoZones(t, 0)
	for _, v := range []*asg.Verbs{asg.NewVerbs(b.account), asg.NewVerbs(b.account)} {
		got, err := waited(t, v, order(2))
		if err != nil || len(got.Instances) != 2 || len(got.Failures) != 0 {
			t.Fatalf("%+v, error %v", got, err)
		}
	}
	for _, i := range b.settled(t, "web", 2) {
		if i.Zone != "eu-west-1b" {
			t.Errorf("%s is in %s", i.ID, i.Zone)
		}
	}
	b.wantDesired(t, 2)
	for _, c := range b.Calls(fakeaws.Operation("LaunchInstances")) {
		if c.Params["RetryStrategy"] != "none" {
			t.Errorf("retry strategy %q: what did not come must not come later", c.Params["RetryStrategy"])
		}
	}
}

// Partial success is an answer: some came, and there is a reason for the rest.
// The reason is the same word as in a failed activity.
func TestLaunchFallsShort(t *testing.T) {
	for code, cause := range map[string]string{
		"": "InsufficientInstanceCapacity", "UnfulfillableCapacity": "UnfulfillableCapacity", "VcpuLimitExceeded": "VcpuLimitExceeded",
		"MaxSpotInstanceCountExceeded": "MaxSpotInstanceCountExceeded", "InsufficientFreeAddressesInSubnet": "InsufficientFreeAddressesInSubnet",
		"Unsupported": "Unsupported",
	} {
		b := twoZones(t, 0)
		if err := b.SetShortages(fakeaws.Shortage{Code: code, Left: 1}); err != nil {
			t.Fatal(err)
		}
		got, err := waited(t, asg.NewVerbs(b.account), order(3))
		if err != nil || len(got.Instances) != 1 || len(got.Failures) != 1 {
			t.Fatalf("%s: %+v, error %v", code, got, err)
		}
		if f := got.Failures[0]; f.Cause != cause || f.Zone != "eu-west-1b" || f.At.IsZero() || f.Text == "" {
			t.Errorf("%s: %+v", code, f)
		}
		b.wantDesired(t, 1)
		// The same failure as an activity reports it.
		if err := b.SetDesired("web", 2); err != nil {
			t.Fatal(err)
		}
		r := b.reader(t, []string{"0:5:web"}, nil)
		for len(read(t, r)["web"].Failures) == 0 && t.Context().Err() == nil {
			r.Nudge()
		}
		if f := byName(r)["web"].Failures[0]; f.Cause != cause {
			t.Errorf("%s: an activity says %s, LaunchInstances %s", code, f.Cause, cause)
		}
	}
}

// An order that expects another desired capacity is not given: it comes from a
// reading from before another launch.
func TestLaunchLooksFirst(t *testing.T) {
	b := twoZones(t, 0)
	v := asg.NewVerbs(b.account)
	if _, err := v.Launch(t.Context(), after(order(1), 3)); !errors.Is(err, asg.ErrUnsent) || !errors.Is(err, asg.ErrChanged) {
		t.Errorf("error %v", err)
	}
	if _, err := v.Launch(t.Context(), after(order(1), 0)); err != nil {
		t.Errorf("as expected: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("LaunchInstances"))); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

// No caller waits for an answer that takes long. It is kept for whoever gives the same order
// again, who is notified; another process asks AWS, with the token.
func TestLaunchAnswersLater(t *testing.T) {
	b := twoZones(t, fakeaws.Seconds(3)) // what is asked meanwhile takes a fraction, on any machine
	v := asg.NewVerbs(b.account)
	arrived := make(chan struct{}, 1)
	v.Arrived = func(bool) { arrived <- struct{}{} }
	if _, err := v.Launch(t.Context(), order(2)); !errors.Is(err, asg.ErrUnderWay) {
		t.Fatalf("error %v", err)
	}
	if _, err := v.Launch(t.Context(), order(2)); !errors.Is(err, asg.ErrUnderWay) {
		t.Errorf("again: %v", err)
	}
	other := asg.NewVerbs(b.account)
	if _, err := waited(t, other, order(2)); !errors.Is(err, asg.ErrUnanswered) {
		t.Errorf("another process, meanwhile: %v", err)
	}
	<-arrived
	if got, err := v.Launch(t.Context(), order(2)); err != nil || len(got.Instances) != 2 {
		t.Errorf("%+v, error %v", got, err)
	}
	if got, err := waited(t, other, order(2)); err != nil || len(got.Instances) != 2 {
		t.Errorf("another process: %+v, error %v", got, err)
	}
	b.wantDesired(t, 2)
}

// waited gives an order and waits for what comes of it: all of it, or what nobody expected.
func waited(t *testing.T, v *asg.Verbs, o asg.LaunchOrder) (asg.Launched, error) {
	t.Helper()
	arrived := make(chan bool, 1)
	v.Arrived = func(expected bool) { arrived <- expected }
	got, err := v.Launch(t.Context(), o)
	expected := <-arrived
	if errors.Is(err, asg.ErrUnderWay) {
		got, err = v.Launch(t.Context(), o)
	}
	if all := err == nil && len(got.Instances) == o.Count; expected != all {
		t.Errorf("expected: %t; %+v, error %v", expected, got, err)
	}
	return got, err
}

// What becomes of a call decides whether the order may be dropped, must be given
// again, or was refused.
func TestLaunchErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fault fakeaws.Fault
		want  error // nil for a refusal
	}{
		"throttled":        {fakeaws.Fault{Code: "Throttling"}, asg.ErrUnsent},
		"bad credentials":  {fakeaws.Fault{Code: "ExpiredToken"}, asg.ErrUnsent},
		"in progress":      {fakeaws.Fault{Code: "IdempotentCallInProgress"}, asg.ErrUnanswered},
		"contention":       {fakeaws.Fault{Code: "ResourceContention"}, asg.ErrUnanswered},
		"failed itself":    {fakeaws.Fault{Code: "InternalFailure"}, asg.ErrUnanswered},
		"answer lost":      {fakeaws.Fault{LoseReply: true}, asg.ErrUnanswered},
		"unknown call":     {fakeaws.Fault{Code: "InvalidAction", Message: "Could not find operation LaunchInstances"}, nil},
		"not of the group": {fakeaws.Fault{Code: "UnsupportedOperation", Message: "warm pool"}, nil},
	} {
		b := twoZones(t, 0)
		c.fault.Operation = "LaunchInstances"
		b.Inject(c.fault)
		_, err := waited(t, asg.NewVerbs(b.account), order(1))
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		for _, class := range []error{asg.ErrUnsent, asg.ErrUnanswered, asg.ErrUnderWay} {
			if errors.Is(err, class) != (class == c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
}

// A group that cannot be described is not launched for.
func TestLaunchUnseen(t *testing.T) {
	b := twoZones(t, 0)
	b.Inject(fakeaws.Fault{Operation: "DescribeAutoScalingGroups", Code: "InternalFailure"})
	if _, err := asg.NewVerbs(b.account).Launch(t.Context(), after(order(1), 0)); !errors.Is(err, asg.ErrUnsent) {
		t.Errorf("error %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("LaunchInstances"))); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// The right that is missing is named, also where it is not the call's own.
func TestLaunchWithoutRights(t *testing.T) {
	for _, right := range []string{"autoscaling:LaunchInstances", "ec2:CreateFleet"} {
		b := twoZones(t, 0)
		b.Deny(right)
		_, err := asg.NewVerbs(b.account).Launch(t.Context(), order(1))
		var call *asg.CallError
		if !errors.As(err, &call) || call.Right() != right {
			t.Errorf("%s: %v", right, err)
		}
	}
}
