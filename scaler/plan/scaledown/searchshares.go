package scaledown

import "windlass.dev/windlass/scaler/plan/verdict"

// Shares of the budget of scale-down, in hundredths, at which each part of the search ends:
// trying orders, choosing in the best of them, asking by turns who was not reached, keeping
// those that are marked where it is not known who would be chosen again, seeking replacements.
// What is left is for nodes that go now.
const (
	shareRehearsals   = 40
	shareChoice       = 60
	shareTurns        = 70
	shareMarked       = 80
	shareReplacements = 85
)

// searchEnded is the verdict of a node that was not asked.
var searchEnded = verdict.Say("it is not evaluated now: the search for unneeded nodes has used up the budget of the evaluation").
	Then(verdict.Say("it is evaluated in its turn, and its unneeded mark, if it has one, stays"))

// begin begins a part of the search. What the part before took beyond its own share is not this one's
// to bear: one pod's search for devices may take most of the budget, and a tenant may have several.
func (r *nodeSearch) begin(part int64) {
	if over := r.Fit.Steps() - r.began - r.Policy.Bounds.ScaleDown/100*r.part; over > 0 {
		r.began += over
	}
	r.part = part
}

// spent reports whether so many hundredths of the budget are.
func (r *nodeSearch) spent(share int64) bool {
	return r.Fit.Steps()-r.began > r.Policy.Bounds.ScaleDown/100*share
}
