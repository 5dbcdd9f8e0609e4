package asg_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
)

// hooked is a group with one instance, whose terminations these hooks hold.
func hooked(t *testing.T, hooks ...fakeaws.Hook) (b *bed, instance string) {
	t.Helper()
	slow := timing
	slow.Terminating = fakeaws.Seconds(.3)
	b = start(t, fakeaws.Spec{Timing: slow, Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(1), Type: "m5.large", Hooks: hooks}}})
	return b, b.settled(t, "web", 1)[0].ID
}

func onTerminate(name string) fakeaws.Hook {
	return fakeaws.Hook{Name: name, Transition: fleet.OnTerminate, HeartbeatSeconds: 300}
}

func wait(instance, hook, state string) asg.Wait {
	return asg.Wait{Group: "web", Instance: instance, Hook: hook, State: state}
}

// "No active Lifecycle Action" means too early before the wait, and done after.
func TestComplete(t *testing.T) {
	b, id := hooked(t, onTerminate("windlass"), onTerminate("backup"))
	if err := b.Terminate(id, true); err != nil {
		t.Fatal(err)
	}
	v := asg.NewVerbs(b.account)
	ours, theirs := wait(id, "windlass", fleet.TerminatingWait), wait(id, "backup", fleet.TerminatingWait)
	if err := v.Complete(t.Context(), ours); !errors.Is(err, asg.ErrTooEarly) {
		t.Fatalf("in Terminating: %v", err)
	}
	if err := v.Heartbeat(t.Context(), ours); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("heartbeat in Terminating: %v", err)
	}
	b.await(t, id, fakeaws.TerminatingWait)
	if err := v.Heartbeat(t.Context(), ours); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
	if err := v.Complete(t.Context(), ours); err != nil {
		t.Fatalf("in Terminating:Wait: %v", err)
	}
	// The other hook still holds it. Asking again makes no call.
	calls := len(b.Calls(fakeaws.Operation("CompleteLifecycleAction")))
	if err := v.Complete(t.Context(), ours); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("completed, and still held by another: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("CompleteLifecycleAction"))); n != calls {
		t.Errorf("%d calls, then %d", calls, n)
	}
	// A new leader does not know that, and finds out at its second try.
	next := asg.NewVerbs(b.account)
	if err := next.Complete(t.Context(), ours); !errors.Is(err, asg.ErrTooEarly) {
		t.Errorf("a new leader's first try: %v", err)
	}
	if err := next.Complete(t.Context(), ours); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("a new leader's second try: %v", err)
	}
	if err := next.Complete(t.Context(), theirs); err != nil {
		t.Errorf("the other hook: %v", err)
	}
	if err := v.Complete(t.Context(), wait("i-0123456789abcdef0", "windlass", fleet.TerminatingWait)); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("an instance that is gone: %v", err)
	}
	for _, c := range b.Calls(fakeaws.Operation("CompleteLifecycleAction")) {
		if c.Params["LifecycleActionResult"] != "CONTINUE" {
			t.Errorf("sent %s", c.Params["LifecycleActionResult"])
		}
	}
}

// One that was not seen to wait is completed as soon as it does. Until then AWS refuses, and no
// description of it is asked for: the next reading tells.
func TestCompleteEarly(t *testing.T) {
	b, id := hooked(t, onTerminate("windlass"))
	if err := b.Terminate(id, true); err != nil {
		t.Fatal(err)
	}
	v, ours := asg.NewVerbs(b.account), wait(id, "windlass", fleet.TerminatingWait)
	ours.Early = true
	for range 3 {
		if err := v.Complete(t.Context(), ours); !errors.Is(err, asg.ErrTooEarly) {
			t.Fatalf("in Terminating: %v", err)
		}
	}
	b.await(t, id, fakeaws.TerminatingWait)
	b.Inject(fakeaws.Fault{Operation: "CompleteLifecycleAction", LoseReply: true, Count: 1})
	if err := v.Complete(t.Context(), ours); !errors.Is(err, asg.ErrUnavailable) {
		t.Errorf("the answer is lost: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("DescribeAutoScalingGroups"))); n != 0 {
		t.Errorf("%d descriptions", n)
	}
	if err := v.Complete(t.Context(), ours); err != nil {
		t.Errorf("again: %v", err)
	}
}

// Where a hundred of ten groups are early at once, AWS is asked of a few, and all are completed by one
// reading that shows them to wait.
func TestCompleteManyEarly(t *testing.T) {
	slow := timing
	slow.Terminating = fakeaws.Seconds(.3)
	spec := fakeaws.Spec{Timing: slow}
	for g := range 10 {
		spec.Groups = append(spec.Groups, fakeaws.Group{Name: fmt.Sprint("g", g), Max: 10, Desired: desired(10), Type: "m5.large", Hooks: []fakeaws.Hook{onTerminate("windlass")}})
	}
	b := start(t, spec)
	var waits []asg.Wait
	for g := range 10 {
		for _, i := range b.settled(t, fmt.Sprint("g", g), 10) {
			waits = append(waits, asg.Wait{Group: fmt.Sprint("g", g), Instance: i.ID, Hook: "windlass", State: fleet.TerminatingWait, Early: true})
			if err := b.Terminate(i.ID, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := asg.NewVerbs(b.account)
	open, busy := waits[:0:0], 0
	for _, w := range waits {
		switch err := v.Complete(t.Context(), w); {
		case errors.Is(err, asg.ErrBusy):
			busy++
			open = append(open, w)
		case errors.Is(err, asg.ErrTooEarly):
			open = append(open, w)
		case err != nil:
			t.Fatal(err)
		}
	}
	if busy < 50 {
		t.Errorf("%d of 100 are put off", busy)
	}
	for _, w := range open {
		b.await(t, w.Instance, fakeaws.TerminatingWait)
		w.Early = false
		if err := v.Complete(t.Context(), w); err != nil {
			t.Errorf("%s: %v", w.Instance, err)
		}
	}
	if n := len(b.Calls(fakeaws.Operation("CompleteLifecycleAction"))); n > 150 {
		t.Errorf("%d calls for 100 instances", n)
	}
	if n := len(b.Calls(fakeaws.Operation("DescribeAutoScalingGroups"))); n != 0 {
		t.Errorf("%d descriptions", n)
	}
}

// Where AWS is busy, or has too much to do, nothing was done, and it is to be tried
// again soon; nothing is tried again in here.
func TestHooksOfABusyAWS(t *testing.T) {
	for _, code := range []string{"ResourceContention", "Throttling"} {
		t.Run(code, func(t *testing.T) {
			b, id := hooked(t, onTerminate("windlass"))
			if err := b.Terminate(id, true); err != nil {
				t.Fatal(err)
			}
			b.await(t, id, fakeaws.TerminatingWait)
			v, ours := asg.NewVerbs(b.account), wait(id, "windlass", fleet.TerminatingWait)
			for operation, call := range map[string]func() error{
				"RecordLifecycleActionHeartbeat": func() error { return v.Heartbeat(t.Context(), ours) },
				"CompleteLifecycleAction":        func() error { return v.Complete(t.Context(), ours) },
			} {
				b.Inject(fakeaws.Fault{Operation: operation, Code: code, Count: 1})
				if err := call(); !errors.Is(err, asg.ErrBusy) {
					t.Errorf("%s: %v", operation, err)
				}
				if n := len(b.Calls(fakeaws.Operation(operation))); n != 1 {
					t.Errorf("%s: %d calls, want 1", operation, n)
				}
			}
			if err := v.Complete(t.Context(), ours); err != nil {
				t.Errorf("at the next look: %v", err)
			}
		})
	}
}

// The call was carried out and its answer lost: at the next try the instance is
// past its hook, which is as good.
func TestCompleteWithoutAnAnswer(t *testing.T) {
	b, id := hooked(t, onTerminate("windlass"))
	if err := b.Terminate(id, true); err != nil {
		t.Fatal(err)
	}
	b.await(t, id, fakeaws.TerminatingWait)
	b.Inject(fakeaws.Fault{Operation: "CompleteLifecycleAction", LoseReply: true, Count: 1})
	v, ours := asg.NewVerbs(b.account), wait(id, "windlass", fleet.TerminatingWait)
	if err := v.Complete(t.Context(), ours); !errors.Is(err, asg.ErrUnavailable) {
		t.Errorf("the answer is lost: %v", err)
	}
	if err := v.Complete(t.Context(), ours); err != nil {
		t.Errorf("again: %v", err)
	}
}

// An instance of a warm pool waits for the launch hook when it enters and again when it
// leaves. In the pool no description of its group shows it.
func TestCompleteInAWarmPool(t *testing.T) {
	slow := timing
	slow.Pending = fakeaws.Seconds(.3)
	boot := fakeaws.Hook{Name: "boot", Transition: fleet.OnLaunch, HeartbeatSeconds: 300}
	b := start(t, fakeaws.Spec{Timing: slow, Groups: []fakeaws.Group{{Name: "web", Max: 1, Desired: desired(0), Type: "m5.large",
		Hooks: []fakeaws.Hook{boot, onTerminate("windlass")}, WarmPool: &fakeaws.WarmPool{}}}})
	id := b.Instances()[0].ID
	v, in := asg.NewVerbs(b.account), wait(id, "boot", fleet.WarmedPendingWait)
	if err := v.Complete(t.Context(), in); !errors.Is(err, asg.ErrTooEarly) {
		t.Errorf("in Warmed:Pending: %v", err)
	}
	b.await(t, id, fleet.WarmedPendingWait)
	// Which of its hooks hold it there shows nowhere but in the answers.
	other := wait(id, "windlass", fleet.WarmedPendingWait)
	if err := v.Complete(t.Context(), other); !errors.Is(err, asg.ErrTooEarly) {
		t.Errorf("a hook that does not hold it: %v", err)
	}
	if err := v.Complete(t.Context(), other); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("a hook that does not hold it, again: %v", err)
	}
	if err := v.Complete(t.Context(), in); err != nil {
		t.Errorf("in Warmed:Pending:Wait: %v", err)
	}
	b.await(t, id, "Warmed:Stopped")
	// It comes back in the same state, and that is another wait.
	back := other
	back.Since = time.Unix(1, 0)
	calls := len(b.Calls(fakeaws.Operation("CompleteLifecycleAction")))
	if err := v.Complete(t.Context(), back); !errors.Is(err, asg.ErrAlready) {
		t.Errorf("another wait: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("CompleteLifecycleAction"))); n != calls+1 {
		t.Errorf("another wait: %d calls, then %d: AWS was not asked", calls, n)
	}
	if err := v.Serves(t.Context(), "web", id); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("it serves in the pool: %v", err)
	}
	if err := b.SetDesired("web", 1); err != nil {
		t.Fatal(err)
	}
	b.await(t, id, fakeaws.PendingWait)
	if err := v.Complete(t.Context(), wait(id, "boot", fleet.PendingWait)); err != nil {
		t.Errorf("in Pending:Wait, a moment later: %v", err)
	}
	b.await(t, id, fakeaws.InService)
	if err := v.Serves(t.Context(), "web", id); err != nil {
		t.Errorf("in service: %v", err)
	}
}

// An instance that is retained does not move: it makes no reading faster.
func TestRetained(t *testing.T) {
	b, id := hooked(t, onTerminate("windlass"))
	if err := b.Force(id, "Terminating:Retained", false); err != nil {
		t.Fatal(err)
	}
	g := read(t, b.reader(t, []string{"0:5:web"}, nil))["web"]
	for _, i := range g.Instances {
		if i.ID == id && (!i.Retained() || i.Live() || !i.TerminatingSince.IsZero()) {
			t.Errorf("%+v", i)
		}
	}
}

// A hook that people put on a group which is there already changes nothing of its description: it is known
// when an instance waits for it.
func TestHookOfAKnownGroup(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large"}}})
	r := b.reader(t, []string{"0:5:web"}, nil)
	if hooks := read(t, r)["web"].Hooks; len(hooks) > 0 {
		t.Fatalf("hooks %+v", hooks)
	}
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autoscaling.NewFromConfig(c).PutLifecycleHook(t.Context(), &autoscaling.PutLifecycleHookInput{
		AutoScalingGroupName: aws.String("web"), LifecycleHookName: aws.String("late"), LifecycleTransition: aws.String(fleet.OnLaunch), HeartbeatTimeout: aws.Int32(300),
	}); err != nil {
		t.Fatal(err)
	}
	if err := asg.NewVerbs(b.account).SetDesired(t.Context(), "web", 0, 1); err != nil {
		t.Fatal(err)
	}
	for {
		g := read(t, r)["web"]
		if len(g.Instances) == 0 || g.Instances[0].State != fleet.PendingWait {
			continue
		}
		if len(g.Hooks) != 1 || g.Hooks[0].Name != "late" {
			t.Errorf("hooks %+v of a group whose instance is %s", g.Hooks, g.Instances[0].State)
		}
		return
	}
}
