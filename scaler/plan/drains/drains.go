package drains

import (
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/standin"
)

// Drains are those under way: which may begin, which go on, and which end.
type Drains struct {
	*cluster.Cluster
	*outcome.Outcome
	*launch.Launches
	*standin.StandIn
	*seats.Seats

	// Turns counts the drains whose turn it is to be permitted.
	Turns int
}

// New has done nothing yet.
func New(c *cluster.Cluster, out *outcome.Outcome, l *launch.Launches, a *standin.StandIn, r *seats.Seats) *Drains {
	return &Drains{Cluster: c, Outcome: out, Launches: l, StandIn: a, Seats: r}
}
