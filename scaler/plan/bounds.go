package plan

import (
	"fmt"

	"windlass.dev/windlass/scaler/fit"
)

// Bounds are what one evaluation may cost. They are counted and not timed, so that deciding
// stays a function of the snapshot.
type Bounds struct {
	// PodTerms is about how many kinds of pods the affinity, anti-affinity and spread terms
	// may speak, one after the other, of pods that wait and of pods that run; see fit.Scales.
	PodTerms int
	// Buffers is how many CapacityBuffers keep room.
	Buffers int
	// Growth and ScaleDown are steps as fit.Cluster.Steps counts them: for pods that wait,
	// and for the search for nodes that nobody needs.
	Growth, ScaleDown int64
	// Explained is for how many kinds of pods of a namespace it is worked out what keeps
	// them from each group.
	Explained int
}

// DefaultBounds take about a second, and 100 MiB, each.
func DefaultBounds() Bounds {
	return Bounds{PodTerms: 500_000, Buffers: 300, Growth: 20_000_000, ScaleDown: 20_000_000, Explained: 500}
}

// asking is a class of pods of a namespace.
type asking struct {
	class     *fit.Class
	namespace string
}

// rationGrowth lets the namespaces of the waiting pods share the work of an evaluation, so
// that nobody waits for the pods of another for long.
func (d *decision) rationGrowth(pods []fit.Tenant) {
	spaces := map[string]bool{}
	for _, t := range pods {
		spaces[t.Pod.Namespace] = true
	}
	for _, b := range d.buffers {
		spaces[b.Namespace] = true
	}
	d.ration, d.unasked = d.fit.Ration(d.policy.Bounds.Growth, len(spaces)), map[asking]bool{}
}

// budgetSpent is a verdict's sentence.
func (d *decision) budgetSpent(namespace string) string {
	return fmt.Sprintf("whether a group can have a node for it is not known: an evaluation bears so much work, and the other pods of namespace %s that wait have used up its share", namespace)
}

// Shares of the budget of scale-down, in hundredths, at which each part of the search ends:
// trying orders, choosing in the best of them, asking by turns who was not reached,
// improving the choice. What is left is for nodes that go now.
const (
	shareRehearsals = 40
	shareChoice     = 60
	shareTurns      = 75
	shareExchanges  = 85
)

// searchEnded is the verdict of a node that was not asked.
const searchEnded = "whether it is needed is not known: the search for nodes that nobody needs has used up the work that an evaluation bears; it is asked in its turn, and its mark, if it has one, stays"

// spent says that so many hundredths of the budget are.
func (r *retirement) spent(share int64) bool {
	return r.fit.Steps()-r.began > r.policy.Bounds.ScaleDown/100*share
}
