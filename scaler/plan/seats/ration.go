package seats

import (
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Asking is a class of pods of a namespace.
type Asking struct {
	Class     *fit.Class
	Namespace string
}

// RationGrowth lets the namespaces of the pending pods share the work of an evaluation, so that no
// namespace waits for the pods of another for long.
func (d *Seats) RationGrowth(pods []fit.Tenant) {
	spaces := map[string]bool{}
	for _, t := range pods {
		spaces[t.Pod.Namespace] = true
	}
	for _, b := range d.Buffers {
		spaces[b.Namespace] = true
	}
	d.Ration, d.Unasked = d.Fit.Ration(d.Policy.Bounds.Growth, len(spaces)), map[Asking]bool{}
}

// BudgetSpent is a verdict's sentence.
func (d *Seats) BudgetSpent(namespace string) verdict.Details {
	return verdict.Say("it is not evaluated for scale-up now: the other pending pods of namespace {namespace} have used up its share of the evaluation", verdict.Namespace(namespace))
}
