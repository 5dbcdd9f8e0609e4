package act

import (
	"fmt"
	"testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// The mark of a survivor goes, and the scaler's request with it, if the instance is in
// service at that moment. What people or another termination wrote stays.
func TestSpare(t *testing.T) {
	ours := contract.Request{ID: "a", Kind: contract.KindScaleDown, By: contract.AppScaler}.String()
	people := contract.Request{ID: "a", Kind: contract.KindRequest, By: "ann"}.String()
	for _, tc := range []struct {
		name, mark, request string
		served              error
		want                Outcome
		marked, asked       bool
	}{
		{"it is in service", "a", ours, nil, Done, false, false},
		{"people asked, too", "a", people, nil, Done, false, true},
		{"it is in the pool still", "a", ours, fmt.Errorf("%w: i-1 is Warmed:Stopped", asg.ErrChanged), Stopped, true, true},
		{"AWS does not say", "a", ours, &asg.CallError{Class: asg.ErrUnavailable}, Failed, true, true},
		{"another termination has begun", "b", ours, nil, Stopped, true, true},
		{"the mark has gone", "", ours, nil, Done, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			annotations := map[string]string{contract.AnnotationDrainRequest: tc.request}
			if tc.mark != "" {
				annotations[contract.AnnotationTerminating] = tc.mark
			}
			b := newBed(annotations)
			b.groups.err = tc.served
			if r := b.one(t, action.ClearTerminationMark{Group: "web", Node: n1, Instance: "i-1", ID: "a"}); r.Outcome != tc.want {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			_, marked := b.node(t).Annotations[contract.AnnotationTerminating]
			_, asked := b.node(t).Annotations[contract.AnnotationDrainRequest]
			if marked != tc.marked || asked != tc.asked {
				t.Errorf("marked %v, asked %v", marked, asked)
			}
		})
	}
}

// A busy AWS is no failure: it is asked again within half a second, then more seldom,
// and never later than after five.
func TestABusyAWSIsAskedAgainSoon(t *testing.T) {
	busy := fmt.Errorf("%w: throttled", asg.ErrBusy)
	for count, want := range map[int]string{0: "500ms", 1: "1s", 2: "2s", 9: "5s"} {
		if got := (backOff{outcome: Stopped, err: busy, count: count}).length(); got.String() != want {
			t.Errorf("after %d times: %s, want %s", count, got, want)
		}
	}
	if got := outcomeOf(busy); got != Stopped {
		t.Errorf("outcome %s", got)
	}
}
