package standin

import (
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// StandIn carries drains on where an agent is unresponsive.
type StandIn struct {
	*cluster.Cluster

	allowance, untouched *drainable.Budgets
	asking               map[string]bool
	Carried              []action.Drain
}

// New has done nothing yet.
func New(c *cluster.Cluster) *StandIn { return &StandIn{Cluster: c} }
