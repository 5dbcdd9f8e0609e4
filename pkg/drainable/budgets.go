package drainable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Budgets holds the PodDisruptionBudgets of a cluster and how many disruptions
// each still allows. A nil *Budgets guards nothing.
type Budgets struct {
	byNamespace map[string]*guards
}

// guards are the budgets of a namespace, by name. Nearly all of them select a label with
// one value, so that a pod need not be held against each.
type guards struct {
	byLabel map[label][]*guard
	others  []*guard
}

// label is a key with its value.
type label struct{ key, value string }

// guard is one budget with what its selector asks for.
type guard struct {
	budget fleet.Budget
	wants  []want
	left   int32
}

// want is one requirement of a selector, with its values in order. A tenant may name thousands of them,
// and labels.Selector looks at each, for each pod of the namespace and each of its budgets.
type want struct {
	key      string
	operator metav1.LabelSelectorOperator
	values   []string
}

func (w want) met(labels map[string]string) bool {
	value, has := labels[w.key]
	_, named := slices.BinarySearch(w.values, value)
	switch w.operator {
	case metav1.LabelSelectorOpIn:
		return has && named
	case metav1.LabelSelectorOpNotIn:
		return !has || !named
	case metav1.LabelSelectorOpExists:
		return has
	}
	return !has
}

// wantsOf are those of a selector, which parses.
func wantsOf(s *metav1.LabelSelector) []want {
	var wants []want
	for key, value := range s.MatchLabels {
		wants = append(wants, want{key, metav1.LabelSelectorOpIn, []string{value}})
	}
	for _, e := range s.MatchExpressions {
		values := e.Values
		if !slices.IsSorted(values) {
			values = slices.Sorted(slices.Values(values))
		}
		wants = append(wants, want{e.Key, e.Operator, values})
	}
	return wants
}

func (g *guard) guards(p *fleet.Pod) bool {
	return !slices.ContainsFunc(g.wants, func(w want) bool { return !w.met(p.Labels) })
}

// NewBudgets indexes budgets by what they guard. In policy/v1 an empty selector
// guards every pod of the namespace and an absent one guards none; one that
// does not parse guards none either.
func NewBudgets(list []fleet.Budget) *Budgets {
	b := &Budgets{byNamespace: map[string]*guards{}}
	for _, budget := range list {
		if budget.Selector == nil {
			continue
		}
		if _, err := metav1.LabelSelectorAsSelector(budget.Selector); err != nil {
			continue
		}
		of, known := b.byNamespace[budget.Namespace]
		if !known {
			of = &guards{byLabel: map[label][]*guard{}}
			b.byNamespace[budget.Namespace] = of
		}
		of.add(&guard{budget: budget, wants: wantsOf(budget.Selector), left: budget.Allowed})
	}
	return b
}

// add keeps a budget under the first of the labels that it asks for.
func (l *guards) add(g *guard) {
	wants := g.budget.Selector.MatchLabels
	if len(wants) == 0 {
		l.others = append(l.others, g)
		return
	}
	key := slices.Min(slices.Collect(maps.Keys(wants)))
	at := label{key, wants[key]}
	l.byLabel[at] = append(l.byLabel[at], g)
}

// of lists those that guard a pod, by name.
func (l *guards) of(p *fleet.Pod) []*guard {
	var list []*guard
	matching := func(some []*guard) {
		for _, g := range some {
			if g.guards(p) {
				list = append(list, g)
			}
		}
	}
	matching(l.others)
	if len(l.byLabel) > 0 {
		for key, value := range p.Labels {
			matching(l.byLabel[label{key, value}])
		}
	}
	if len(list) > 1 {
		slices.SortFunc(list, func(x, y *guard) int { return cmp.Compare(x.budget.Name, y.budget.Name) })
	}
	return list
}

// Guard reports whether a budget guards the pod.
func (b *Budgets) Guard(p *fleet.Pod) bool { return len(b.guards(p)) > 0 }

// Guarding names the budgets that guard a pod, as namespace/name, in order.
func (b *Budgets) Guarding(p *fleet.Pod) []string {
	var keys []string
	for _, g := range b.guards(p) {
		keys = append(keys, g.budget.Key())
	}
	return keys
}

// Refuses reports whether the eviction API would refuse this pod now.
func (b *Budgets) Refuses(p *fleet.Pod) bool { return b.refuses(p).Outcome != "" }

// Take spends the disruption that evicting this pod costs, so that the next
// question finds one less. It returns the way back. It spends nothing for a
// pod that the eviction API does not count.
func (b *Budgets) Take(p *fleet.Pod) (undo func()) {
	guards := b.guards(p)
	if len(guards) == 0 || uncounted(p) || (len(guards) == 1 && guards[0].ignores(p)) {
		return func() {}
	}
	for _, g := range guards {
		g.left--
	}
	return func() {
		for _, g := range guards {
			g.left++
		}
	}
}

// Spent reports whether Take has spent of a budget that guards this pod.
func (b *Budgets) Spent(p *fleet.Pod) bool {
	return slices.ContainsFunc(b.guards(p), func(g *guard) bool { return g.left < g.budget.Allowed })
}

func (b *Budgets) guards(p *fleet.Pod) []*guard {
	if b == nil || len(b.byNamespace) == 0 {
		return nil
	}
	if of, has := b.byNamespace[p.Namespace]; has {
		return of.of(p)
	}
	return nil
}

// refuses answers as the eviction API would.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
func (b *Budgets) refuses(p *fleet.Pod) Verdict {
	guards := b.guards(p)
	if len(guards) == 0 || uncounted(p) {
		return Verdict{}
	}
	if len(guards) > 1 {
		return Verdict{
			Outcome: Block, Rule: RuleBudget, Budget: guards[0].budget.Key(), Lasting: true,
			Reason: fmt.Sprintf("the eviction API refuses a pod with %d budgets (%s and %s)", len(guards), guards[0].budget.Key(), guards[1].budget.Key()),
		}
	}
	g := guards[0]
	if g.ignores(p) || g.left > 0 {
		return Verdict{}
	}
	return Verdict{
		Outcome: Block, Rule: RuleBudget, Budget: g.budget.Key(),
		Reason: fmt.Sprintf("budget %s allows no further disruption", g.budget.Key()),
	}
}

// ignores reports whether an unready pod costs nothing of this budget.
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
func (g *guard) ignores(p *fleet.Pod) bool {
	if p.Ready {
		return false
	}
	if g.budget.AlwaysAllowUnhealthy {
		return true
	}
	return g.budget.Desired > 0 && g.budget.Healthy >= g.budget.Desired
}

// uncounted pods are evicted whatever their budgets say: they have not started,
// have ended, or are being deleted.
func uncounted(p *fleet.Pod) bool {
	return p.Ended() || p.Phase == fleet.PodPending || !p.Deleted.IsZero()
}
