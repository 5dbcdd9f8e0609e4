package standin

import (
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
)

// StandIn carries drains on where an agent is unresponsive.
type StandIn struct {
	*cluster.Cluster
	*outcome.Outcome

	// allowance is what budgets allow now, less what this plan evicts, and untouched the same
	// before that; nil before the first question. asking are the budgets of which it evicts a pod.
	allowance, untouched *drainable.Budgets
	asking               map[string]bool
	Carried              []action.Drain
}

// New has done nothing yet.
func New(c *cluster.Cluster, out *outcome.Outcome) *StandIn {
	return &StandIn{Cluster: c, Outcome: out}
}
