package drainable

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"windlass.dev/windlass/pkg/fleet"
)

// Step is one step of a drain: pods of a priority and above, up to the next
// step's.
type Step struct {
	Priority int32
	// Grace is kept for this step before a deadline: the pods of the steps before
	// it end so much earlier, and if they do not, this step begins all the same.
	Grace time.Duration
}

// Steps order a drain by the priority of pods: those of a lower step have left
// before one of a higher step is asked, because they may need it to end in good
// order. They are sorted by priority. Kubelet's graceful shutdown has the same
// form; there a step's grace bounds its pods, here it only keeps time for them.
// https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#pod-priority-graceful-node-shutdown
type Steps []Step

// systemCritical is the least priority of Kubernetes' own critical classes.
// https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
const systemCritical = 2_000_000_000

var criticalClasses = sets.New("system-node-critical", "system-cluster-critical")

// DefaultSteps let critical pods leave last, and keep a quarter of a minute for
// them.
func DefaultSteps() Steps {
	return Steps{{Priority: 0}, {Priority: systemCritical, Grace: 15 * time.Second}}
}

// ParseSteps reads a list such as "0:0s,2000000000:15s". The order of the steps
// in it means nothing.
func ParseSteps(text string) (Steps, error) {
	var steps Steps
	for item := range strings.SplitSeq(text, ",") {
		step, err := parseStep(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Priority == step.Priority }) {
			return nil, fmt.Errorf("drain steps %q: priority %d stands twice", text, step.Priority)
		}
		steps = append(steps, step)
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.Priority, b.Priority) })
	return steps, nil
}

func parseStep(text string) (Step, error) {
	number, long, _ := strings.Cut(text, ":")
	priority, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return Step{}, fmt.Errorf("drain step %q: want PRIORITY:GRACE such as 1000:30s, the priority from %d to %d", text, math.MinInt32, math.MaxInt32)
	}
	grace, err := time.ParseDuration(long)
	if err != nil || grace < 0 {
		return Step{}, fmt.Errorf("drain step %q: want PRIORITY:GRACE such as 1000:30s, the grace not below 0s", text)
	}
	return Step{Priority: int32(priority), Grace: grace}, nil
}

// String prints the steps as ParseSteps reads them.
func (s Steps) String() string {
	items := make([]string, 0, len(s))
	for _, step := range s {
		items = append(items, fmt.Sprintf("%d:%s", step.Priority, step.Grace))
	}
	return strings.Join(items, ",")
}

// Of is the index of the step that a pod belongs to: the last one whose priority
// is not above its own. A pod below all of them belongs to the first.
func (s Steps) Of(p *fleet.Pod) int {
	priority := p.Priority()
	if p.Spec != nil && criticalClasses.Has(p.Spec.PriorityClassName) {
		priority = max(priority, systemCritical)
	}
	after, _ := slices.BinarySearchFunc(s, priority, func(step Step, priority int32) int {
		if step.Priority <= priority {
			return -1
		}
		return 1
	})
	return max(0, after-1)
}

// Reserve is what the steps from index on keep of the time before a deadline.
func (s Steps) Reserve(from int) time.Duration {
	var sum time.Duration
	for _, step := range s[min(from, len(s)):] {
		sum += step.Grace
	}
	return sum
}

// spare is what a drain is given beyond what its pods ask for.
const spare = time.Minute

// mostNeeded is the most of a pod's grace that its drain begins early for. A tenant who asks for weeks
// would have all nodes that an event was announced for drain at once, without a permit.
const mostNeeded = 2 * time.Hour

// Needs is how long a drain of these pods takes if no budget is in its way, as far as it counts.
func (s Steps) Needs(pods iter.Seq[*fleet.Pod]) time.Duration {
	longest := time.Duration(0)
	for p := range pods {
		if MustBePlacedAgain(p) {
			longest = max(longest, min(GraceOf(p), mostNeeded))
		}
	}
	return s.Reserve(0) + longest + spare
}

// Turn orders the pods of a drain finer than steps do: within one step the pods
// of DaemonSets, where they are evicted at all, leave after all others, which
// they may serve.
type Turn int

// TurnOf a pod. Pods of a lower turn have left before one of a higher is asked.
func (s Steps) TurnOf(p *fleet.Pod) Turn {
	turn := Turn(2 * s.Of(p))
	if IsDaemonSet(p) {
		turn++
	}
	return turn
}

// Step is the index of the turn's step.
func (t Turn) Step() int { return int(t) / 2 }

// Waits reports whether a pod of an earlier turn is still to go, and may: its turn is held.
func (t Turn) Waits(held sets.Set[Turn]) bool {
	for earlier := range held {
		if earlier < t {
			return true
		}
	}
	return false
}
