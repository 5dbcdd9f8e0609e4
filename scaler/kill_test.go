package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// mishap is what may happen to the scaler or to AWS at one moment.
type mishap string

const (
	fine mishap = "fine"
	// killed with kill -9, before or after the moment's work was done.
	killedBefore mishap = "killed before"
	killedAfter  mishap = "killed after"
	// AWS does it and the answer is lost; or AWS never receives the call. The caller cannot
	// know which.
	answerLost mishap = "answer lost"
	callLost   mishap = "call lost"
	throttled  mishap = "throttled"
	late       mishap = "late"
)

var errDead = errors.New("the scaler is dead")

// killing is an AWS and a persisted state that outlive the scaler, which dies at random.
type killing struct {
	*rapid.T
	world *scenario.World
	// written is the ConfigMap.
	written fleet.State
	// read is the group as it was at some earlier moment, if readings are stale.
	read []fleet.Group
	// fate is what will happen, one moment after the other.
	fate []mishap
	// dead: whatever the scaler still seems to do does not happen.
	dead bool
	// done is what happened, for people.
	done []string
	// peaceful: nothing goes wrong any more.
	peaceful bool
}

func (k *killing) note(format string, args ...any) {
	k.done = append(k.done, fmt.Sprintf(format, args...))
}

// happens returns what happens at a moment that so many things may happen at, and
// kills the scaler if it is that.
func (k *killing) happens(at string, may ...mishap) mishap {
	if k.dead {
		return killedBefore
	}
	if k.peaceful {
		return fine
	}
	if len(k.fate) == 0 {
		return fine
	}
	m := k.fate[0]
	k.fate = k.fate[1:]
	if !slices.Contains(may, m) {
		return fine
	}
	if m != fine {
		k.note("%s: %s", at, m)
	}
	k.dead = m == killedBefore || m == killedAfter
	return m
}

func (k *killing) remember(_ context.Context, state fleet.State) error {
	if fleet.Equal(k.written, state) {
		return nil
	}
	m := k.happens("write", killedBefore, killedAfter)
	if m != killedBefore {
		k.written = state
	}
	if k.dead {
		return errDead
	}
	return nil
}

var errLost = fmt.Errorf("%w: %w", asg.ErrUnanswered, asg.ErrUnavailable)

func (k *killing) Launch(_ context.Context, o asg.LaunchOrder) (asg.Launched, error) {
	if o.From != nil && k.world.Groups[0].Desired != *o.From {
		return asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnsent, asg.ErrChanged)
	}
	m := k.happens("launch", killedBefore, killedAfter, answerLost, callLost, throttled, late)
	switch m {
	case callLost, killedBefore:
		return asg.Launched{}, errLost
	case throttled:
		return asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnsent, asg.ErrThrottled)
	}
	came, err := k.world.LaunchIn(o.Group, o.Zone, o.Token, o.Count)
	k.note("launch %d in %s with %s: %d, %v", o.Count, o.Zone, o.Token[:4], came, err)
	switch {
	case m == answerLost, m == killedAfter:
		return asg.Launched{}, errLost
	case m == late:
		return asg.Launched{}, asg.ErrUnderWay
	case err != nil:
		return asg.Launched{}, &asg.CallError{Call: "autoscaling:LaunchInstances", Code: "ValidationError", Message: err.Error(), Class: asg.ErrRefused}
	}
	return asg.Launched{Instances: make([]string, came)}, nil
}

func (k *killing) SetDesired(_ context.Context, group string, from, to int) error {
	m := k.happens("set", killedBefore, killedAfter, answerLost, callLost)
	if m == callLost || m == killedBefore {
		return asg.ErrUnavailable
	}
	if err := k.world.SetDesired(group, from, to); err != nil {
		return fmt.Errorf("%w: %w", asg.ErrChanged, err)
	}
	k.note("set %d→%d", from, to)
	if m == answerLost || m == killedAfter {
		return asg.ErrUnavailable
	}
	return nil
}

func (k *killing) Lower(context.Context, string, int, int) error { return asg.ErrChanged }
func (k *killing) Terminate(context.Context, string, string, bool) error {
	return errors.New("nothing is to be terminated")
}
func (k *killing) Complete(context.Context, asg.Wait) error      { return nil }
func (k *killing) Heartbeat(context.Context, asg.Wait) error     { return nil }
func (k *killing) Serves(context.Context, string, string) error  { return nil }
func (k *killing) Down(context.Context, string) error            { return nil }
func (k *killing) Suspend(context.Context, string, string) error { return nil }
func (k *killing) Claim(context.Context, string, types.UID) error {
	return errors.New("nothing is to be claimed")
}

func (k *killing) Write(kube.Event) bool { return true }

// look is one evaluation of a scaler that knows nothing but what is written. Readings may
// be those of before.
func (k *killing) look() {
	k.world.Now = k.world.Now.Add(2 * time.Second)
	if k.peaceful || rapid.IntRange(0, 2).Draw(k.T, "stale") > 0 {
		k.read = slices.Clone(k.world.Groups)
		k.read[0].Instances = slices.Clone(k.read[0].Instances)
	}
	snapshot := k.world.Snapshot
	snapshot.Groups, snapshot.State = k.read, k.written
	actor := &act.Actor{Groups: k, Events: k, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	policy := policy.DefaultPolicy()
	l := &loop{
		judge: func(fleet.Snapshot) {}, awaits: func(bool) {},
		decide: func(s fleet.Snapshot) (plan.Urgent, func() plan.Plan) { return plan.NewPlanner().Begin(s, policy) },
		keep:   func(fleet.State) {}, reread: func(context.Context, []act.Result) {},
		policy: policy, remember: k.remember, paused: func(action.Action) (act.Result, bool) { return act.Result{}, false },
		act:  actor.Do,
		tell: func(evaluation) {}, logger: actor.Logger,
	}
	withSnapshot(l, snapshot)
	if _, err := l.turn(k.T.Context()); err != nil && !k.dead {
		k.Fatal(err)
	}
	k.dead = false // somebody starts it again
}

// TestKilledAnywhere: wherever the scaler is killed, whatever answer is lost and
// however old its readings are, no more instances come than pods need, and in the
// end as many do.
func TestKilledAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &killing{T: t, world: scenario.NewWorld()}
		pods, steered := rapid.IntRange(1, 4).Draw(t, "pods"), rapid.SampledFrom([]string{"steered", ""}).Draw(t, "way")
		world := fmt.Sprintf("group web max=20 zones=a,b %s\npod app-1..%d cpu=1500m\npod in-b cpu=1500m selector=topology.kubernetes.io/zone=b", steered, pods)
		if steered == "" {
			world = fmt.Sprintf("group web max=20 zones=a\npod app-1..%d cpu=1500m", pods+1)
		}
		if err := k.world.Apply(world); err != nil {
			t.Fatal(err)
		}
		k.read = slices.Clone(k.world.Groups)
		k.fate = rapid.SliceOfN(rapid.SampledFrom([]mishap{fine, killedBefore, killedAfter, answerLost, callLost, throttled, late}), 0, 40).Draw(t, "fate")
		needed := pods + 1
		for range rapid.IntRange(1, 12).Draw(t, "looks") {
			k.look()
			if got := k.world.Groups[0].Desired; got > needed {
				t.Fatalf("%d instances for %d pods:\n%s", got, needed, lines(k.done))
			}
		}
		k.peaceful = true
		for range 12 {
			k.look()
		}
		if got := k.world.Groups[0].Desired; got != needed {
			t.Fatalf("in the end %d instances for %d pods:\n%s\n%s", got, needed, lines(k.done), scenario.Format(k.world.Snapshot))
		}
		for key, l := range k.written.Launches {
			if !l.Answered {
				t.Errorf("in the end launch %s is not answered: %+v", key, l)
			}
		}
	})
}

func lines(list []string) (out string) {
	for _, line := range list {
		out += "  " + line + "\n"
	}
	return out
}

func withSnapshot(l *loop, s fleet.Snapshot) {
	l.observe = func(time.Time) (fleet.Snapshot, uint64, error) { return s, 0, nil }
}
