package act

import (
	"context"
	"errors"
	"fmt"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
)

// grow makes a group larger.
func (a *Actor) grow(ctx context.Context, x action.Grow) (*launch.Answer, error) {
	if x.Token != "" {
		return a.launch(ctx, x)
	}
	return nil, a.Groups.SetDesired(ctx, x.Group, x.From, x.To)
}

// launch launches instances in one zone. That only some came is no failure.
func (a *Actor) launch(ctx context.Context, x action.Grow) (*launch.Answer, error) {
	order := asg.LaunchOrder{Group: x.Group, Zone: x.Zone, Token: x.Token, Count: x.Count}
	if !x.Again && !x.Follows {
		order.From = &x.From
	}
	got, err := a.Groups.Launch(ctx, order)
	answer := answerOf(got, err)
	switch {
	case err == nil && answer.Came == 0:
		err = fmt.Errorf("no instance was launched: %s", got.Failures[0].Text)
	case err == nil && answer.Came < x.Count:
		a.Logger.Warn("fewer instances launched than asked for", "action", x.String(), "launched", answer.Came, "why", got.Failures[0].Text)
	}
	return &answer, err
}

// answerOf returns what an answer means for the next evaluation.
func answerOf(got asg.Launched, err error) launch.Answer {
	switch {
	case errors.Is(err, asg.ErrUnsent):
		return launch.Answer{Unsent: true}
	case errors.Is(err, asg.ErrUnderWay), errors.Is(err, asg.ErrUnanswered):
		return launch.Answer{}
	}
	answer := launch.Answer{Seen: true, Came: len(got.Instances), Failures: got.Failures}
	if answer.Came > 0 {
		answer.Named = got.Instances[0]
	}
	var refusal *asg.CallError
	switch {
	case errors.As(err, &refusal) && refusal.Lack() != "":
		answer.Unsteered = refusal.Lack()
	case err != nil:
		answer.Unsteered = err.Error()
	case answer.Came == 0:
		if answer.Unsteered = forbidden(got.Failures); answer.Unsteered != "" {
			answer.Failures = nil // SetDesiredCapacity is to be tried at once
		}
	}
	return answer
}

// forbidden names the right that is missing if that is why nothing came. It is no
// failure of the group: Auto Scaling has rights of its own and may do without ours.
func forbidden(failures []fleet.Failure) string {
	for _, f := range failures {
		if lack := asg.LackIn(f.Text); lack != "" {
			return lack
		}
	}
	return ""
}
