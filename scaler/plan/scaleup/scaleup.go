package scaleup

import (
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/drains"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/template"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ScaleUp finds out which pods are pending, and which groups grow for them.
type ScaleUp struct {
	*cluster.Cluster
	*outcome.Outcome
	*template.Templates
	*seats.Seats
	*drains.Drains

	// Unschedulable are a pod of each class for which there is neither a place nor a new node.
	Unschedulable []fit.Tenant
	// left are the pending pods that found no place so far.
	left []fit.Tenant
	// beside are the pods that got a place that was there already, thanks to new nodes.
	beside []fit.Seat
	// gangs are the pending pods that find places all together or not at all.
	gangs []gang
	// doubts are the groups that are not grown for a class of pods, and why.
	doubts map[distrusted]verdict.Details
	// oldest is what oldestLeft has found; empty before.
	oldest string
	// priorities are the tiers of the expander of that name, nil where all groups
	// pass.
	priorities []tier
	// shape is what usualShape has found; nothing before.
	shape seats.Load
}

// New reads the priorities of groups, where people have given some.
func New(c *cluster.Cluster, out *outcome.Outcome, t *template.Templates, r *seats.Seats, d *drains.Drains, priorities *string) *ScaleUp {
	s := &ScaleUp{Cluster: c, Outcome: out, Templates: t, Seats: r, Drains: d}
	s.prefer(priorities)
	return s
}
