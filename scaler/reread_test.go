package main

import (
	"errors"
	"testing"

	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// Groups are read again at once after what AWS may have done without saying so, and only then:
// a hundred launches that end together would otherwise be a hundred readings.
func TestUnsure(t *testing.T) {
	early, late := action.Complete{Early: true}, action.Complete{}
	for _, c := range []struct {
		what   string
		result act.Result
		want   bool
	}{
		{"AWS has confirmed a growth", act.Result{Action: action.Grow{}, Outcome: act.Done}, false},
		{"a growth has begun", act.Result{Action: action.Grow{}, Outcome: act.Begun}, false},
		{"a growth has failed", act.Result{Action: action.Grow{}, Outcome: act.Failed, Err: errors.New("no answer")}, true},
		{"a termination has failed", act.Result{Action: action.Terminate{}, Outcome: act.Failed, Err: errors.New("no answer")}, true},
		{"a hook was completed", act.Result{Action: late, Outcome: act.Done}, false},
		{"the instance does not wait yet", act.Result{Action: early, Outcome: act.Failed, Err: asg.ErrTooEarly}, false},
		{"too many were early, so this one was not asked for", act.Result{Action: early, Outcome: act.Failed, Err: asg.ErrBusy}, false},
		{"a completion that is due was not asked for", act.Result{Action: late, Outcome: act.Failed, Err: asg.ErrBusy}, true},
		{"an early completion has failed", act.Result{Action: early, Outcome: act.Failed, Err: errors.New("no answer")}, true},
	} {
		if got := unsure(c.result); got != c.want {
			t.Errorf("%s: unsure is %t", c.what, got)
		}
	}
}
