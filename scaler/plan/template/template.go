package template

import (
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
)

// Templates are the node templates of the cluster's groups.
type Templates struct {
	*cluster.Cluster
	*outcome.Outcome

	// daemonsText is the canonical text of the DaemonSets, once it was asked for.
	daemonsText string
	// asked are the labels that pending pods ask for, nil before it was needed to know.
	asked map[string]bool
}

// New corrects the templates of all groups by the nodes that came of them.
func New(c *cluster.Cluster, out *outcome.Outcome, s fleet.Snapshot) *Templates {
	d := &Templates{Cluster: c, Outcome: out}
	d.learnTemplates(s)
	return d
}
