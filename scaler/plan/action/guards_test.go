package action_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
)

// Whatever can be done has its line in Guards, so that a new action does not go unguarded
// unawares, and what guards it is a part of the state.
func TestGuards(t *testing.T) {
	var source strings.Builder
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			text, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	guards, err := os.ReadFile("guards.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`func \(a (\w+)\) Lane\(\)`).FindAllStringSubmatch(source.String(), -1)
	for _, kind := range all {
		if !regexp.MustCompile(`(case |, )` + kind[1] + `\b`).Match(guards) {
			t.Errorf("nothing is said of what guards %s", kind[1])
		}
	}
	if len(all) < 15 {
		t.Errorf("found %d actions", len(all))
	}
	for _, a := range []action.Action{action.Grow{}, action.Suspend{}, action.Terminate{ID: "never-joined:i-1"}, action.Terminate{ID: "never-ready:i-1"}} {
		parts := action.Guards(a)
		for _, part := range parts {
			if !slices.Contains(fleet.StateParts(), part) {
				t.Errorf("%T is guarded by %s, which is no part of the state", a, part)
			}
		}
		if len(parts) == 0 {
			t.Errorf("nothing guards %T", a)
		}
	}
	for _, a := range []action.Action{action.Heartbeat{}, action.Complete{}, action.Keep{}, action.Retire{}, action.Evict{}, action.Terminate{ID: contract.TerminateID("i-1")}} {
		if parts := action.Guards(a); len(parts) > 0 {
			t.Errorf("%T waits for %v to be written", a, parts)
		}
	}
}
