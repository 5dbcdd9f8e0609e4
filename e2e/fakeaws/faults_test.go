package fakeaws_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"windlass.dev/windlass/e2e/fakeaws"
)

func (b *bed) setDesired(group string, n int32) error {
	_, err := b.asg.SetDesiredCapacity(b.ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: &group, DesiredCapacity: &n})
	return err
}

// Injected errors have the status and text that AWS documents, hit what they name, and end after their count.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
func TestInjectedErrors(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"}, fakeaws.Group{Name: "other", Max: 9, Type: "m5.large"})
	for code, want := range map[string]struct {
		status int
		text   string
	}{
		"ResourceContention": {500, "You already have a pending update to an Amazon EC2 Auto Scaling resource (for example, an Auto Scaling group, instance, or load balancer)."},
		"Throttling":         {400, "Rate exceeded"},
		"InternalFailure":    {500, "We encountered an internal error. Please try again."},
		"ServiceUnavailable": {503, "The request has failed due to a temporary failure of the server."},
		"ExpiredToken":       {403, "The security token included in the request is expired"},
	} {
		b.Inject(fakeaws.Fault{Operation: "SetDesiredCapacity", Group: "web", Code: code, Count: 1, Skip: 1})
		if err := b.setDesired("web", 0); err != nil {
			t.Fatal(err)
		}
		if err := b.setDesired("other", 0); err != nil {
			t.Fatal(err)
		}
		wantError(t, b.setDesired("web", 0), want.status, code, want.text)
		if err := b.setDesired("web", 0); err != nil {
			t.Fatal(err)
		}
	}
	var contention *types.ResourceContentionFault
	id := b.Inject(fakeaws.Fault{Code: "ResourceContention"})
	if !errors.As(b.setDesired("web", 0), &contention) {
		t.Error("the SDK does not know the error as ResourceContentionFault")
	}
	b.RemoveFault(id)
	if err := b.setDesired("web", 0); err != nil {
		t.Fatal(err)
	}
	if failed := b.Calls(fakeaws.Failed("ResourceContention")); len(failed) != 2 {
		t.Errorf("%d calls are logged with the error, want 2", len(failed))
	}
}

// One bucket over all calls of Auto Scaling; the bucket fills again.
func TestThrottling(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	b.SetThrottles(fakeaws.Throttle{Service: "autoscaling", PerSecond: 0.001, Burst: 2}, fakeaws.Throttle{Service: "ec2", PerSecond: 0.001, Burst: 0})
	must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t)
	must(b.asg.DescribeScalingActivities(b.ctx, nil))(t)
	wantError(t, b.setDesired("web", 1), 400, "Throttling", "Rate exceeded")
	_, err := b.ec2.DescribeImages(b.ctx, &ec2.DescribeImagesInput{})
	wantError(t, err, 503, "RequestLimitExceeded", "Request limit exceeded.")
	b.SetThrottles(fakeaws.Throttle{PerSecond: 1, Burst: 3})
	for range 3 {
		if err := b.setDesired("web", 1); err != nil {
			t.Fatal(err)
		}
	}
	b.SetThrottles()
	if err := b.setDesired("web", 1); err != nil {
		t.Fatal(err)
	}
}

// Latency holds a call up; a caller that goes away changes nothing.
func TestLatency(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	b.Inject(fakeaws.Fault{Operation: "SetDesiredCapacity", Latency: fakeaws.Seconds(.05), Count: 1})
	began := time.Now()
	if err := b.setDesired("web", 1); err != nil || time.Since(began) < 50*time.Millisecond {
		t.Errorf("took %v, %v", time.Since(began), err)
	}
	b.Inject(fakeaws.Fault{Operation: "SetDesiredCapacity", Latency: fakeaws.Seconds(60)})
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := b.asg.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: ptr("web"), DesiredCapacity: ptr(int32(5))}); err == nil {
		t.Error("no error")
	}
	if _, err := b.WaitCall(b.ctx, fakeaws.Operation("SetDesiredCapacity"), fakeaws.Failed("")); err != nil {
		t.Fatal(err)
	}
	if g, _ := b.Group("web"); g.Desired != 1 {
		t.Errorf("desired %d, want 1", g.Desired)
	}
}

// A lost reply: the call is carried out, the caller sees a broken connection.
func TestLostReply(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	b.Inject(fakeaws.Fault{Operation: "SetDesiredCapacity", LoseReply: true, Count: 1})
	if err := b.setDesired("web", 3); err == nil {
		t.Error("the reply came")
	}
	if g, _ := b.Group("web"); g.Desired != 3 {
		t.Errorf("desired %d, want 3", g.Desired)
	}
}

// Every call is in the log, with its parameters and its caller, and can be waited for.
func TestCalls(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	began := time.Now()
	waited := make(chan fakeaws.Call)
	go func() {
		c, err := b.WaitCall(b.ctx, fakeaws.Operation("SetDesiredCapacity"), fakeaws.ForGroup("web"), fakeaws.Param("DesiredCapacity", "2"))
		if err != nil {
			t.Error(err)
		}
		waited <- c
	}()
	for n := range int32(3) {
		if err := b.setDesired("web", n); err != nil {
			t.Fatal(err)
		}
	}
	c := <-waited
	if c.Service != "autoscaling" || c.AccessKey != "AKIATEST" || c.Status != 200 || c.Error != "" || c.RequestID == "" || c.Time.Before(began) || c.Took <= 0 || !contains(c.UserAgent, "aws-sdk-go-v2") {
		t.Errorf("%+v", c)
	}
	must(b.asg.DescribeAutoScalingGroups(b.ctx, nil))(t)
	if n := len(b.Calls(fakeaws.Mutating)); n != 3 {
		t.Errorf("%d calls that change something, want 3", n)
	}
	if after := b.Calls(fakeaws.After(c.Seq)); len(after) != 1 || after[0].Operation != "DescribeAutoScalingGroups" {
		t.Errorf("after %d: %v", c.Seq, after)
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Millisecond)
	defer cancel()
	if _, err := b.WaitCall(ctx, fakeaws.Operation("LaunchInstances")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes: %v", err)
	}
	b.ForgetCalls()
	if all := b.Calls(); len(all) != 0 {
		t.Errorf("forgotten calls: %v", all)
	}
}

// Calls that describe are answered with what was so a while ago, each with another age; calls that change are not held up by that, and read what is.
func TestStaleReads(t *testing.T) {
	b := start(t, fakeaws.Group{Name: "web", Max: 9, Type: "m5.large"})
	if status, body := b.send(b.ctx, "POST", b.ControlURL()+"/stale-reads", `{"in":"1s","id":7}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	read := func() int { return int(*b.group("web").DesiredCapacity) }
	if got := read(); got != 0 {
		t.Fatalf("desired %d before anything happens", got)
	}
	begun := time.Now()
	if err := b.setDesired("web", 3); err != nil {
		t.Fatal(err)
	}
	if err := b.setDesired("web", 10); err == nil { // It is judged by what is.
		t.Error("desired above max was taken")
	}
	seen := map[int]time.Duration{}
	back := false // a read after one of the new state gives the old one
	for last := 0; time.Since(begun) < 1200*time.Millisecond; {
		got := read()
		back = back || last == 3 && got == 0
		last, seen[got] = got, time.Since(begun)
	}
	if len(seen) != 2 || !back {
		t.Errorf("want the old capacity and the new, back and forth: back %v, last seen %v", back, seen)
	}
	if old := seen[0]; old > 1100*time.Millisecond {
		t.Errorf("an answer is older than a second: %s after the change", old)
	}
	for range 20 {
		if got := read(); got != 3 {
			t.Errorf("desired %d, want 3: what was long ago is gone", got)
		}
	}
	if err := b.setDesired("web", 1); err != nil {
		t.Fatal(err)
	}
	b.RemoveFault(0)
	if got := read(); got != 1 {
		t.Errorf("desired %d without the fault, want 1", got)
	}
}

// Reads of a world may lag from its beginning; who takes all faults back leaves that as it is.
func TestLag(t *testing.T) {
	timing := quick
	timing.Lag = fakeaws.Seconds(1)
	b := startSpec(t, fakeaws.Spec{Timing: timing, Groups: []fakeaws.Group{{Name: "web", Max: 9, Type: "m5.large"}}})
	b.RemoveFault(0)
	if err := b.setDesired("web", 3); err != nil {
		t.Fatal(err)
	}
	changed, old := time.Now(), false
	for time.Since(changed) < 900*time.Millisecond {
		old = old || *b.group("web").DesiredCapacity == 0
	}
	if !old {
		t.Error("no answer was old")
	}
}
