package act

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
)

func launchOf(count int) action.Grow {
	return action.Grow{Group: "web", Zone: "a", From: 2, To: 2 + count, Token: "t", Count: count, Attempt: 1,
		For: []action.PodRef{{Namespace: "default", Name: "app", UID: "u"}}}
}

func refusal(class error, code, message string) error {
	return &asg.CallError{Call: "autoscaling:LaunchInstances", Code: code, Message: message, Class: class}
}

// What AWS answers decides what the next evaluation makes of it.
func TestLaunchAnswers(t *testing.T) {
	short := fleet.Failure{Zone: "a", Cause: "InsufficientInstanceCapacity", Text: "there is not enough"}
	forbidden := fleet.Failure{Zone: "a", Cause: "UnauthorizedOperation", Text: "UnauthorizedOperation: X is not authorized to perform: ec2:CreateFleet on it"}
	two := []string{"i-1", "i-2"}
	const grant = "; statement LaunchForThoseGroupsInAZoneOfOurChoice of manifests/iam/scaler-policy.json grants it where Auto Scaling calls on our behalf"
	for _, c := range []struct {
		name     string
		launched asg.Launched
		err      error
		outcome  Outcome
		answer   launch.Answer
		told     string // the reason of what the pod is told, if anything
	}{
		{"all came", asg.Launched{Instances: two}, nil, Done, launch.Answer{Seen: true, Came: 2, Named: "i-1"}, contract.EventTriggeredScaleUp},
		{"one came", asg.Launched{Instances: two[:1], Failures: []fleet.Failure{short}}, nil, Done,
			launch.Answer{Seen: true, Came: 1, Named: "i-1", Failures: []fleet.Failure{short}}, contract.EventTriggeredScaleUp},
		{"nothing came", asg.Launched{Failures: []fleet.Failure{short}}, nil, Failed,
			launch.Answer{Seen: true, Failures: []fleet.Failure{short}}, contract.EventActionFailed},
		{"nothing came, for want of a right", asg.Launched{Failures: []fleet.Failure{forbidden}}, nil, Failed,
			launch.Answer{Seen: true, Unsteered: "no right to call ec2:CreateFleet" + grant}, contract.EventActionFailed},
		{"it lasts", asg.Launched{}, fmt.Errorf("%w for it", asg.ErrUnderWay), Begun, launch.Answer{}, contract.EventTriggeredScaleUp},
		{"busy", asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnanswered, asg.ErrStillBusy), Stopped, launch.Answer{}, ""},
		{"no answer", asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnanswered, asg.ErrUnavailable), Failed, launch.Answer{}, contract.EventActionFailed},
		{"the group changed", asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnsent, asg.ErrChanged), Stopped, launch.Answer{Unsent: true}, ""},
		{"throttled", asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnsent, asg.ErrThrottled), Failed, launch.Answer{Unsent: true}, contract.EventActionFailed},
		{"no right", asg.Launched{}, refusal(asg.ErrDenied, "AccessDenied", "X is not authorized to perform: ec2:CreateFleet on resource: arn:aws:ec2:::fleet/* because"), Failed,
			launch.Answer{Seen: true, Unsteered: "no right to call ec2:CreateFleet, which autoscaling:LaunchInstances needs, on arn:aws:ec2:::fleet/*" + grant}, contract.EventActionFailed},
		{"not for this group", asg.Launched{}, refusal(nil, "UnsupportedOperation", "warm pool"), Failed,
			launch.Answer{Seen: true, Unsteered: "autoscaling:LaunchInstances: UnsupportedOperation: warm pool"}, contract.EventActionFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(nil)
			b.groups.launched, b.groups.err = c.launched, c.err
			r := b.one(t, launchOf(2))
			if r.Outcome != c.outcome || r.Answer == nil {
				t.Fatalf("%s, answer %v, error %v", r.Outcome, r.Answer, r.Err)
			}
			if diff := cmp.Diff(c.answer, *r.Answer); diff != "" {
				t.Error(diff)
			}
			if told := growths([]Result{r})["u"]; told.reason != c.told {
				t.Errorf("told %q, want %q", told.reason, c.told)
			}
		})
	}
}

// The first launch of an evaluation expects what was seen, those after it go by that, and
// one that is repeated expects nothing: it may have been carried out.
func TestLaunchExpects(t *testing.T) {
	b := newBed(nil)
	b.groups.launched = asg.Launched{Instances: []string{"i-1"}}
	first, second, again := launchOf(1), launchOf(1), launchOf(1)
	second.Part, second.Token, second.Follows = 1, "u", true
	again.Zone, again.Token, again.Again = "b", "v", true
	b.Do(t.Context(), []action.Action{again, first, second})
	want := []string{"launch web b 1 v as it is", "launch web a 1 t from 2", "launch web a 1 u as it is"}
	if diff := cmp.Diff(want, b.groups.calls); diff != "" {
		t.Error(diff)
	}
}

// If the first launch of an evaluation finds the group changed, or is not tried, those
// after it are not made.
func TestLaunchesAreAChain(t *testing.T) {
	first, second := launchOf(1), launchOf(1)
	second.Zone, second.Follows = "b", true
	for name, actions := range map[string][]action.Action{"changed": {first, second}, "not there": {second}} {
		b := newBed(nil)
		b.groups.err = fmt.Errorf("%w: %w", asg.ErrUnsent, asg.ErrChanged)
		results := b.Do(t.Context(), actions)
		last := results[len(results)-1]
		if last.Outcome != Stopped || !errors.Is(last.Err, ErrStopped) || last.Answer != nil {
			t.Errorf("%s: %s: %v", name, last.Outcome, last.Err)
		}
		if len(b.groups.calls) != len(actions)-1 {
			t.Errorf("%s: called %q", name, b.groups.calls)
		}
	}
}

// Reading the answer does not back off: it makes no call.
func TestBegunIsNotPaused(t *testing.T) {
	b := newBed(nil)
	b.groups.err = asg.ErrUnderWay
	again := launchOf(1)
	b.one(t, again)
	again.Again = true
	if r := b.one(t, again); r.Outcome != Begun || len(b.groups.calls) != 2 {
		t.Errorf("%s after %q", r.Outcome, b.groups.calls)
	}
	if due := b.Due(time.Now()); !due.IsZero() {
		t.Errorf("due %s", due)
	}
}

func TestLower(t *testing.T) {
	b := newBed(nil)
	if r := b.one(t, action.Lower{Group: "web", From: 5, To: 2}); r.Outcome != Done {
		t.Error(r.Err)
	}
	if diff := cmp.Diff([]string{"lower web 5→2"}, b.groups.calls); diff != "" {
		t.Error(diff)
	}
}
