package world

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// budgets are the PodDisruptionBudgets. How many pods one lets be missing stays as it was at
// the start, in whole pods.
type budgets struct {
	given []fleet.Budget
	seen  []fleet.Budget
	// missing is how many pods each lets be missing, expected how many it guards.
	missing, expected []int32
	// made are those of workloads that have one.
	made map[*workload]int
	// known are those that guard the pods of a workload, all of which have the same labels.
	known map[*workload][]int
	// judge is what the eviction API goes by; nil when counts have changed since.
	judge *drainable.Budgets
}

// expect makes the budget of a workload when it has its first replica.
func (b *budgets) expect(w *World, of *workload) {
	b.adopt()
	if of.MaxUnavailable == nil || b.made[of] > 0 {
		return
	}
	if b.made == nil {
		b.made = map[*workload]int{}
	}
	b.add(fleet.Budget{Namespace: of.Namespace, Name: of.Name, Selector: &metav1.LabelSelector{MatchLabels: of.Labels}}, int32(*of.MaxUnavailable))
	b.made[of] = len(b.seen)
	for _, p := range w.podAt {
		if b.seen[len(b.seen)-1].Matches(*p.seen) {
			p.guards = append(p.guards, len(b.seen)-1)
			b.tally(p, len(b.seen)-1, 1)
		}
	}
}

// adopt takes over those of a snapshot.
func (b *budgets) adopt() {
	for _, g := range b.given {
		b.add(g, max(0, g.Allowed))
	}
	b.given = nil
}

func (b *budgets) add(g fleet.Budget, missing int32) {
	g.Allowed, g.Healthy, g.Desired = 0, 0, 0
	b.seen, b.missing, b.expected = append(b.seen, g), append(b.missing, missing), append(b.expected, 0)
	b.known = map[*workload][]int{}
}

// guard finds the budgets of a pod.
func (b *budgets) guard(p *pod) {
	b.adopt()
	if p.replica != nil {
		if guards, known := b.known[p.replica.workload]; known {
			p.guards = slices.Clone(guards)
			return
		}
	}
	for i := range b.seen {
		if b.seen[i].Matches(*p.seen) {
			p.guards = append(p.guards, i)
		}
	}
	if p.replica != nil && len(b.seen) > 0 {
		b.known[p.replica.workload] = slices.Clone(p.guards)
	}
}

// count counts a pod in, or out by -1, as it is at the moment.
func (b *budgets) count(p *pod, n int32) {
	for _, i := range p.guards {
		b.tally(p, i, n)
	}
}

func (b *budgets) tally(p *pod, i int, n int32) {
	b.judge = nil
	if p.leaving {
		return // its successor counts
	}
	b.expected[i] += n
	if p.on != nil {
		b.seen[i].Healthy += n
	}
	b.settle(i)
}

// await counts on so many pods more that are not there.
func (b *budgets) await(p *pod, n int32) {
	b.judge = nil
	for _, i := range p.guards {
		b.expected[i] += n
		b.settle(i)
	}
}

func (b *budgets) settle(i int) {
	g := &b.seen[i]
	g.Desired = max(0, b.expected[i]-b.missing[i])
	g.Allowed = max(0, g.Healthy-g.Desired)
}

// ask is what the eviction API goes by.
func (b *budgets) ask() *drainable.Budgets {
	if b.judge == nil {
		b.judge = drainable.NewBudgets(b.seen)
	}
	return b.judge
}
