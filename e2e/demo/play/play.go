// Package play carries out a script on a living world: each act does
// something, and ends when what it promises has come true.
//
//	play.go   Act, Condition, Run
//	day.go    the script of the demo
//	condition.go  what its acts promise
package play

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
)

// Stage is the world that a play is played on.
type Stage interface {
	// Apply applies manifests as an administrator.
	Apply(ctx context.Context, manifests string) error
	// Scale sets the replicas of a Deployment.
	Scale(ctx context.Context, deployment string, replicas int) error
	// SpotNotice lets EC2 announce that it reclaims an instance.
	SpotNotice(ctx context.Context, instance string) error
	// ScaleIn lets a scaling policy lower a group's desired capacity by one;
	// Auto Scaling chooses who leaves.
	ScaleIn(ctx context.Context, group string) error

	// Look lends what is known now; it must not be kept.
	Look(func(*story.Story))
	// Changed is closed when something new is known.
	Changed() <-chan struct{}
	// Show tells the viewer which act is on.
	Show(story.Act)
}

// Act is a part of the play.
type Act struct {
	Title, About string
	// Do begins it and says what must come true.
	Do func(context.Context, Stage) ([]Condition, error)
	// Within bounds the wait for it: far more than it takes, so that whoever
	// runs into it has found a defect.
	Within time.Duration
	// Lasts is how long the act takes at least, so that a viewer can follow.
	Lasts time.Duration
}

// Condition is something that must come true.
type Condition struct {
	// What says what, for the viewer and for whoever reads of the failure.
	What string
	// Once marks what only has to have been true at some moment. All others
	// must be true together.
	Once bool
	// Holds looks; where it does not hold, saw says what is there instead.
	Holds func(*story.Story) (holds bool, saw string)
}

// Failure is an act whose conditions did not come true in time.
type Failure struct {
	Act    string
	Within time.Duration
	Unmet  []string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("act %q: not come true within %s:\n  %s", f.Act, f.Within, strings.Join(f.Unmet, "\n  "))
}

// Run plays all acts in order. It ends early with a *Failure, the error of
// what an act does, or that of ctx.
func Run(ctx context.Context, stage Stage, acts []Act) error {
	for i, act := range acts {
		show := story.Act{Number: i + 1, Of: len(acts), Title: act.Title, About: act.About}
		if err := run(ctx, stage, act, show); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, stage Stage, act Act, show story.Act) error {
	stage.Show(show)
	lasts := time.NewTimer(act.Lasts)
	defer lasts.Stop()
	conditions, err := act.Do(ctx, stage)
	if err != nil {
		return fmt.Errorf("act %q: %w", act.Title, err)
	}
	if err := await(ctx, stage, act, show, conditions); err != nil {
		return err
	}
	select {
	case <-lasts.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await looks again whenever something has changed.
func await(ctx context.Context, stage Stage, act Act, show story.Act, conditions []Condition) error {
	within, cancel := context.WithTimeoutCause(ctx, act.Within, errLate)
	defer cancel()
	was := make([]bool, len(conditions))
	for {
		changed := stage.Changed()
		var unmet, saw []string
		stage.Look(func(s *story.Story) { unmet, saw = check(conditions, was, s) })
		show.Awaited = unmet
		stage.Show(show)
		if len(unmet) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-within.Done():
			if !errors.Is(context.Cause(within), errLate) {
				return ctx.Err()
			}
			return &Failure{Act: act.Title, Within: act.Within, Unmet: saw}
		}
	}
}

var errLate = errors.New("the act took too long")

// check says what is not true yet, and what is seen instead. was remembers,
// for each condition, whether it was true once.
func check(conditions []Condition, was []bool, s *story.Story) (unmet, saw []string) {
	for i, c := range conditions {
		if c.Once && was[i] {
			continue
		}
		holds, instead := c.Holds(s)
		was[i] = holds
		if holds {
			continue
		}
		unmet = append(unmet, c.What)
		saw = append(saw, c.What+": "+instead)
	}
	return unmet, saw
}
