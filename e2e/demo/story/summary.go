package story

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/cli/view"
)

// Summary is what there is to say at the end.
type Summary struct {
	Elapsed time.Duration `json:"elapsed"`
	// PodWaits are the times from the first sight of a pod to Running,
	// CallWaits those to the call that grew a group for it. (Not from its
	// Unschedulable condition: the scaler often calls before a watch has told
	// us of it. The benchmarks measure that.)
	PodWaits  Spread `json:"podWaits"`
	CallWaits Spread `json:"callWaits"`
	// Launched and Ended count instances.
	Launched int `json:"launched"`
	Ended    int `json:"ended"`
	// Calls counts the requests that reached AWS, by operation; Refused those
	// among them that were answered with an error.
	Calls   map[string]int `json:"calls,omitempty"`
	Refused int            `json:"refused"`
	// Pods counts all that there were, Left those among them that ran and are
	// gone.
	Pods   int     `json:"pods"`
	Left   int     `json:"left"`
	Floors []Floor `json:"floors,omitempty"`
	// Faults are sentences, each on something that was promised and not kept.
	Faults []string `json:"faults,omitempty"`
}

// Spread tells of several durations.
type Spread struct {
	Count    int           `json:"count"`
	P50, Max time.Duration `json:",omitempty"`
}

// SpreadOf sorts durations and takes the middle one (the upper of two) and
// the last.
func SpreadOf(durations []time.Duration) Spread {
	if len(durations) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	return Spread{Count: len(sorted), P50: sorted[len(sorted)/2], Max: sorted[len(sorted)-1]}
}

func (s Spread) String() string {
	if s.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %s  max %s  (of %d)", precise(s.P50), precise(s.Max), s.Count)
}

// precise prints a duration with the figures that matter.
func precise(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// Evictions counts all of them.
func (s Summary) Evictions() int {
	n := 0
	for _, f := range s.Floors {
		n += f.Evictions
	}
	return n
}

// hurry is how much sooner than the end of its grace period a pod may be gone
// without having been cut short: API times are whole seconds.
const hurry = 1500 * time.Millisecond

// Summary tells of the whole story until now.
func (s *Story) Summary(now time.Time) Summary {
	sum := Summary{Elapsed: now.Sub(s.began), Calls: map[string]int{}, Launched: s.launched, Ended: s.ended, Pods: len(s.lives)}
	for _, c := range s.calls {
		sum.Calls[c.Operation]++
		if c.Error != "" {
			sum.Refused++
		}
	}
	for _, l := range s.lives {
		if !l.running.IsZero() && !l.gone.IsZero() {
			sum.Left++
		}
	}
	sum.PodWaits, sum.CallWaits = s.podWaits(), s.callWaits()
	for _, name := range slices.Sorted(maps.Keys(s.floors)) {
		f := *s.floors[name]
		sum.Floors = append(sum.Floors, f)
		if !f.Held() {
			sum.Faults = append(sum.Faults, fmt.Sprintf("the budget of %s was violated: %d pods served after an eviction, want at least %d", name, f.Serving, f.Allowed))
		}
	}
	sum.Faults = append(sum.Faults, s.dropped()...)
	sum.Faults = append(sum.Faults, s.unreplaced()...)
	return sum
}

func (s *Story) podWaits() Spread {
	var waits []time.Duration
	for _, l := range s.lives {
		if !l.running.IsZero() && l.running.After(l.seen) {
			waits = append(waits, l.running.Sub(l.seen))
		}
	}
	return SpreadOf(waits)
}

// callWaits goes by the Events that name the pods for which a group grew.
func (s *Story) callWaits() Spread {
	var waits []time.Duration
	for _, l := range s.lives {
		if called, ok := s.callFor(l); ok {
			waits = append(waits, max(0, called.Sub(l.seen)))
		}
	}
	return SpreadOf(waits)
}

// callFor finds the call that the Event on a pod speaks of: the last one before
// it that grew a group which it names.
func (s *Story) callFor(l *life) (at time.Time, found bool) {
	if l.triggered.IsZero() {
		return time.Time{}, false
	}
	for _, c := range s.calls {
		if c.Grows && c.Error == "" && !c.At.After(l.triggered) && slices.Contains(strings.Fields(l.growth), c.Group) {
			at, found = c.At, true
		}
	}
	return at, found
}

// dropped names the pods that did not leave in the two proper ways, evicted or
// deleted by their owner, with their whole grace period.
func (s *Story) dropped() []string {
	var faults []string
	for _, l := range s.inOrder() {
		if why := l.fault(); why != "" {
			faults = append(faults, fmt.Sprintf("pod %s/%s of %s %s", l.pod.Namespace, l.pod.Name, view.ShortName(l.pod.Node), why))
		}
	}
	return faults
}

func (s *Story) inOrder() []*life {
	return slices.SortedFunc(maps.Values(s.lives), func(a, b *life) int {
		return cmp.Or(a.seen.Compare(b.seen), strings.Compare(a.pod.UID, b.pod.UID))
	})
}

func (l *life) fault() string {
	switch {
	case l.killed:
		return "was still there when its instance ended"
	case l.pod.Disrupted != "" && l.pod.Disrupted != evictedByAPI:
		return "was disrupted otherwise than by eviction: " + l.pod.Disrupted
	case l.running.IsZero() || l.gone.IsZero() || l.pod.Ended:
		return ""
	case l.until.IsZero():
		return "vanished without having been deleted"
	case l.gone.Before(l.until.Add(-hurry)):
		return fmt.Sprintf("had its grace period cut short by %s", l.until.Sub(l.gone).Round(100*time.Millisecond))
	}
	return ""
}

// unreplaced names the workloads that lost pods to evictions and do not have
// all that they want.
func (s *Story) unreplaced() []string {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(s.floors)) {
		if want, have := s.workloads[name].Replicas, s.Serving(name); have < want {
			faults = append(faults, fmt.Sprintf("%s has %d of its %d pods after %d evictions", name, have, want, s.floors[name].Evictions))
		}
	}
	return faults
}
