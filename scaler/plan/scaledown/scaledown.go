package scaledown

import (
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/drains"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/scaleup"
	"windlass.dev/windlass/scaler/plan/seats"
)

// ScaleDown chooses the unneeded nodes.
type ScaleDown struct {
	*cluster.Cluster
	*outcome.Outcome
	*seats.Seats
	*drains.Drains
	*scaleup.ScaleUp
}

// New has done nothing yet.
func New(c *cluster.Cluster, out *outcome.Outcome, r *seats.Seats, d *drains.Drains, g *scaleup.ScaleUp) *ScaleDown {
	return &ScaleDown{Cluster: c, Outcome: out, Seats: r, Drains: d, ScaleUp: g}
}
