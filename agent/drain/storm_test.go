package drain_test

import (
	"fmt"
	"time"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// storm counts the evictions of one drain.
type storm struct {
	since contract.Time
	// again counts by owner the evictions of pods that came to the node in the stead of
	// evicted ones, most how many pods it had here at once.
	again, most map[string]int
	// deadlines are all that were announced meanwhile.
	deadlines map[time.Time]bool
	restarts  int
	// open says that pods left though the node could not be closed.
	open bool
}

// mostReturns is how often a drain evicts pods that an owner puts in the stead of evicted
// ones.
const mostReturns = 10

// after begins anew with each drain.
func (s storm) after(w *world, next drain.Next) storm {
	if next.Report == nil || s.again == nil || !s.since.Equal(next.Report.Since) {
		s = storm{again: map[string]int{}, most: map[string]int{}, deadlines: map[time.Time]bool{}}
	}
	if next.Report == nil {
		return s
	}
	s.since = next.Report.Since
	s.open = s.open || len(next.Steps) > 0 && w.closed.IsZero()
	for _, n := range w.notices {
		s.deadlines[n.Deadline] = true
	}
	if request, err := notice.ParseRequest(w.node.Annotations[contract.AnnotationDrainRequest]); err == nil {
		s.deadlines[request.Deadline] = true
	}
	delete(s.deadlines, time.Time{})
	here := map[string]int{}
	for _, p := range w.pods {
		here[ownerOf(p)]++
		s.most[ownerOf(p)] = max(s.most[ownerOf(p)], here[ownerOf(p)])
	}
	return s
}

func (s storm) evict(w *world, p fleet.Pod) {
	if w.returned[p.UID] {
		s.again[ownerOf(p)]++
	}
}

// broken is law 19: a drain evicts the pods that it found, and in the stead of those a few of
// each owner. Where a deadline is named after another, all that are there have their last
// call once more, and from a node that cannot be closed they leave together; an agent that
// starts anew may ask one pod too many.
func (s storm) broken() (out []string) {
	for owner, n := range s.again {
		calls := max(0, len(s.deadlines)-1)
		if s.open {
			calls++
		}
		most := mostReturns + s.restarts + calls*s.most[owner]
		if n > most {
			out = append(out, fmt.Sprintf("law 19: %d pods of %s were evicted that came in the stead of others, %d are enough", n, owner, most))
		}
	}
	return out
}

func ownerOf(p fleet.Pod) string {
	if p.Owner == nil {
		return p.Key()
	}
	return p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name
}
