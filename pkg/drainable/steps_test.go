package drainable_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Each row is one value of the flag; wrong is what the error says beside it.
func TestParseSteps(t *testing.T) {
	for _, tc := range []struct{ text, want, wrong string }{
		{"0:0s,2000000000:15s", "0:0s,2000000000:15s", ""},
		{" 2000000000:15s , 0:0s ", "0:0s,2000000000:15s", ""},
		{"0:1m30s", "0:1m30s", ""},
		{"-10:1s,0:2s", "-10:1s,0:2s", ""},
		{"", "", `drain step ""`},
		{"0:0s,", "", `drain step ""`},
		{"0", "", "the grace not below 0s"},
		{"0:15", "", "the grace not below 0s"},
		{"0:-15s", "", "the grace not below 0s"},
		{"high:15s", "", "the priority from -2147483648 to 2147483647"},
		{"3000000000:15s", "", "the priority from -2147483648 to 2147483647"},
		{"0:1s,0:2s", "", "priority 0 stands twice"},
	} {
		steps, err := drainable.ParseSteps(tc.text)
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%q: error %v, want one with %q", tc.text, err, tc.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
		}
		if got := steps.String(); got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.text, got, tc.want)
		}
	}
}

func TestStepsRoundTrip(t *testing.T) {
	step := rapid.Custom(func(t *rapid.T) drainable.Step {
		return drainable.Step{
			Priority: rapid.Int32().Draw(t, "priority"),
			Grace:    time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "grace")),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		steps := drainable.Steps(rapid.SliceOfNDistinct(step, 1, 6, func(s drainable.Step) int32 { return s.Priority }).Draw(t, "steps"))
		parsed, err := drainable.ParseSteps(steps.String())
		if err != nil {
			t.Fatal(err)
		}
		again, err := drainable.ParseSteps(parsed.String())
		if diff := cmp.Diff(parsed, again); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
		for i := 1; i < len(parsed); i++ {
			if parsed[i-1].Priority >= parsed[i].Priority {
				t.Fatalf("not sorted: %s", parsed)
			}
		}
	})
}

// Each row says in which step a pod leaves, by default and with steps of three,
// and in which turn of the latter.
func TestStepsOf(t *testing.T) {
	priority := func(n int32) func(*fleet.Pod) { return func(p *fleet.Pod) { p.Spec.Priority = &n } }
	class := func(name string) func(*fleet.Pod) { return func(p *fleet.Pod) { p.Spec.PriorityClassName = name } }
	three := drainable.Steps{{Priority: 0}, {Priority: 1000, Grace: 20 * time.Second}, {Priority: 2_000_000_000, Grace: 10 * time.Second}}
	for _, tc := range []struct {
		name          string
		pod           *fleet.Pod
		usual, ofThem int
		turn          drainable.Turn
	}{
		{"ordinary", web(), 0, 0, 0},
		{"below all steps", web(priority(-5)), 0, 0, 0},
		{"just below a step", web(priority(999)), 0, 0, 0},
		{"at a step", web(priority(1000)), 0, 1, 2},
		{"between steps", web(priority(1_999_999_999)), 0, 1, 2},
		{"daemon", web(ownedBy("DaemonSet")), 0, 0, 1},
		{"daemon of a middle step", web(ownedBy("DaemonSet"), priority(5000)), 0, 1, 3},
		{"critical by priority", web(priority(2_000_001_000)), 1, 2, 4},
		{"critical by class", web(class("system-cluster-critical")), 1, 2, 4},
		{"critical daemon", web(ownedBy("DaemonSet"), class("system-node-critical")), 1, 2, 5},
		{"without a spec", web(func(p *fleet.Pod) { p.Spec = nil }), 0, 0, 0},
	} {
		if got := drainable.DefaultSteps().Of(tc.pod); got != tc.usual {
			t.Errorf("%s: step %d by default, want %d", tc.name, got, tc.usual)
		}
		if got := three.Of(tc.pod); got != tc.ofThem {
			t.Errorf("%s: step %d of three, want %d", tc.name, got, tc.ofThem)
		}
		if got := three.TurnOf(tc.pod); got != tc.turn || got.Step() != tc.ofThem {
			t.Errorf("%s: turn %d of step %d, want %d", tc.name, got, got.Step(), tc.turn)
		}
		if got := (drainable.Steps{}).Of(tc.pod); got != 0 {
			t.Errorf("%s: step %d of none, want 0", tc.name, got)
		}
	}
	for from, want := range []time.Duration{30 * time.Second, 30 * time.Second, 10 * time.Second, 0} {
		if got := three.Reserve(from); got != want {
			t.Errorf("Reserve(%d) = %s, want %s", from, got, want)
		}
	}
}

// A drain needs the steps' graces, the longest that a pod asks for which must be placed
// again, and a minute.
func TestStepsNeeds(t *testing.T) {
	pod := func(grace int64, owner string) *fleet.Pod {
		return &fleet.Pod{Spec: &corev1.PodSpec{TerminationGracePeriodSeconds: &grace}, Owner: &metav1.OwnerReference{Kind: owner}}
	}
	steps := drainable.Steps{{Priority: 0, Grace: 5 * time.Second}, {Priority: 1000, Grace: 20 * time.Second}}
	for _, tc := range []struct {
		name string
		pods []*fleet.Pod
		want time.Duration
	}{
		{"no pod", nil, 85 * time.Second},
		{"the longest grace", []*fleet.Pod{pod(10, "ReplicaSet"), pod(90, "Job"), pod(40, "Job")}, 175 * time.Second},
		{"a pod that says nothing", []*fleet.Pod{{}}, 115 * time.Second},
		{"one that asks for weeks", []*fleet.Pod{pod(700_000, "Job"), pod(40, "Job")}, 2*time.Hour + 85*time.Second},
		{"one that asks for more than can be counted", []*fleet.Pod{pod(math.MaxInt64, "Job")}, 2*time.Hour + 85*time.Second},
		{"a pod that stays with its node", []*fleet.Pod{pod(10, "Job"), pod(90, "DaemonSet")}, 95 * time.Second},
	} {
		if got := steps.Needs(slices.Values(tc.pods)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// Pods wait for those of earlier turns alone.
func TestTurnWaits(t *testing.T) {
	held := sets.New[drainable.Turn](2, 5)
	for turn, want := range []bool{false, false, false, true, true, true} {
		if got := drainable.Turn(turn).Waits(held); got != want {
			t.Errorf("turn %d waits: %t, want %t", turn, got, want)
		}
	}
}
