package seats

import (
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Seats is the simulation: where pods are, and where they could be.
type Seats struct {
	*cluster.Cluster

	Fit *fit.Cluster
	// kept is what was found out about nodes, by their numbers.
	kept []keptNode
	// Upcoming are the nodes that will be there soon, as places for pods.
	Upcoming []*fit.Place
	// Headrooms are kept free beside all of them. Those of one list add up.
	Headrooms [][]*Headroom
	Buffers   []*Buffer
	// Unheard are the pending pods that are not considered now, and why.
	Unheard map[*fleet.Pod]verdict.Details
	// Ration divides the work for pending pods, and Unasked are those for which none was
	// left.
	Ration  *fit.Ration
	Unasked map[Asking]bool
	// quotas bound buffers, by namespace and name.
	quotas []*fleet.Quota
	// Foresees: pods spread over zones that have no node yet; see Expect.
	Foresees bool
}

// New puts the pods of the cluster on its nodes. What it finds out about rules and classes of
// pods stays in the cache.
func New(c *cluster.Cluster, k *Cache, s fleet.Snapshot) *Seats {
	d := &Seats{Cluster: c}
	d.imagine(s, k)
	return d
}
