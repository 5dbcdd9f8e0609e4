package asg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"windlass.dev/windlass/pkg/fleet"
)

// earlyRate and earlyBurst bound the completions of what was not seen to wait, in a second and at once.
const earlyRate, earlyBurst = 5, 20

// Wait is an instance's wait for a lifecycle hook, as somebody saw it.
type Wait struct {
	Group, Instance, Hook string
	// State is the lifecycle state in which it waits, and Since when its transition there
	// began, if that is known: the same instance may wait for the same hook again, as when it
	// moves into a warm pool, out of it, and back.
	State string
	Since time.Time
	// Early: it was not seen in State yet.
	Early bool
}

// Complete lets Auto Scaling go on with an instance that waits for a hook. It always sends
// CONTINUE: ABANDON may leave a terminating instance behind, and running (its group's
// retention policy), and would cut other hooks short.
//
// AWS answers "No active Lifecycle Action" before the instance waits, after it does no more,
// and where another hook holds it; reading the instance tells them apart. Complete returns
// ErrTooEarly in the first case and ErrAlready in the others, or nil if an earlier call of
// ours had no answer. Where the wait is Early the next reading of the groups tells, and Complete
// returns ErrTooEarly, unless an earlier call of ours had no answer; where many are early one reading
// costs less than to ask of each, and Complete returns ErrBusy. While another hook holds an instance
// that it completed it returns ErrAlready without a call. With ErrBusy it may work in a moment.
func (v *Verbs) Complete(ctx context.Context, w Wait) error {
	known := v.waits.recall(w, v.now())
	if known.completed {
		return ErrAlready
	}
	if w.Early && !v.early.Allow() {
		return fmt.Errorf("%w: many instances may have come to wait", ErrBusy)
	}
	_, err := v.scaling.CompleteLifecycleAction(ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &w.Group, InstanceId: &w.Instance, LifecycleHookName: &w.Hook, LifecycleActionResult: aws.String("CONTINUE"),
	}, once)
	err = busy(explain("autoscaling:CompleteLifecycleAction", err))
	switch {
	case err == nil || !noActiveAction(err):
	case w.Early && !known.unanswered:
		return fmt.Errorf("%w: %w", ErrTooEarly, err)
	default:
		known, err = v.refused(ctx, w, known, err)
	}
	if err == nil || errors.Is(err, ErrAlready) {
		known.completed = true
	}
	known.unanswered = errors.Is(err, ErrUnavailable)
	v.waits.remember(w, known)
	return err
}

// refused separates "too early" from "done", and from "not this one".
func (v *Verbs) refused(ctx context.Context, w Wait, known wait, refusal error) (wait, error) {
	state, err := v.stateOf(ctx, w.Group, w.Instance)
	switch {
	case err != nil:
		return known, busy(err)
	case !beforeWaitEnds[state] && known.unanswered:
		return known, nil
	case !beforeWaitEnds[state]:
		return known, ErrAlready
	case known.refused:
		return known, ErrAlready // it waited already when it refused again: for another hook
	}
	known.refused = strings.HasSuffix(state, ":Wait")
	return known, fmt.Errorf("%w: %s is %s: %w", ErrTooEarly, w.Instance, state, refusal)
}

// beforeWaitEnds has the states in which a hook may not have begun to wait.
var beforeWaitEnds = map[string]bool{
	fleet.Pending: true, fleet.PendingWait: true, fleet.Terminating: true, fleet.TerminatingWait: true,
	fleet.WarmedPending: true, fleet.WarmedPendingWait: true, fleet.WarmedTerminating: true, fleet.WarmedTerminatingWait: true,
}

// stateOf reads the state of an instance; empty where the group has it no more. Those of
// a warm pool are in no description of their group.
func (v *Verbs) stateOf(ctx context.Context, group, instance string) (string, error) {
	now, err := v.describe(ctx, group, 0)
	if err != nil {
		return "", err
	}
	if i, ok := now.instances[instance]; ok || !now.pooled {
		return i.State, nil
	}
	pool, err := warmPool(ctx, v.scaling, group)
	if err != nil {
		return "", err
	}
	for _, i := range pool {
		if aws.ToString(i.InstanceId) == instance {
			return string(i.LifecycleState), nil
		}
	}
	return "", nil
}

// Heartbeat restarts the timer of an instance that waits for a hook. It returns
// ErrChanged where the instance does not, and ErrBusy where it may work in a moment.
func (v *Verbs) Heartbeat(ctx context.Context, w Wait) error {
	_, err := v.scaling.RecordLifecycleActionHeartbeat(ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: &w.Group, InstanceId: &w.Instance, LifecycleHookName: &w.Hook,
	}, once)
	err = busy(explain("autoscaling:RecordLifecycleActionHeartbeat", err))
	if err != nil && noActiveAction(err) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// Serves fails with ErrChanged unless the instance is in service at this moment.
func (v *Verbs) Serves(ctx context.Context, group, instance string) error {
	state, err := v.stateOf(ctx, group, instance)
	switch {
	case err != nil:
		return err
	case state == "":
		return fmt.Errorf("%w: %s is not in %s", ErrChanged, instance, group)
	case state != fleet.InService:
		return fmt.Errorf("%w: %s is %s", ErrChanged, instance, state)
	}
	return nil
}

// busy marks a failed call that may work in a moment, where it may.
func busy(err error) error {
	if contended(err) || errors.Is(err, ErrThrottled) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// waits keeps what Complete was asked: while another hook still holds an instance, only this
// process knows that ours does no more.
type waits struct {
	mu sync.Mutex
	of map[string]wait
}

// wait is what is known of an instance's wait for one hook.
type wait struct {
	completed bool
	// unanswered: AWS may have done it, and did not answer.
	unanswered bool
	// refused while it waited: a second refusal cannot mean "too early".
	refused bool
	// asked is when Complete was first asked.
	asked time.Time
}

// forgetWait is for how long an answer is believed without asking again.
const forgetWait = time.Minute + 30*time.Second

func (w Wait) key() string {
	return fmt.Sprintf("%s/%s/%d", fleet.HeartbeatKey(w.Instance, w.Hook), w.State, w.Since.Unix())
}

func (k *waits) recall(w Wait, now time.Time) wait {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.of, func(_ string, old wait) bool { return now.Sub(old.asked) > forgetWait })
	known, ok := k.of[w.key()]
	if !ok {
		known.asked = now
	}
	return known
}

func (k *waits) remember(w Wait, known wait) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[w.key()] = known
}
