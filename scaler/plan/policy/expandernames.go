package policy

import "strings"

// Names of expanders, as Cluster Autoscaler has them. An expander says which of
// several groups shall take pods. Several, separated by commas, are a chain: each
// chooses among those that the one before it found equally good.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-are-expanders
const (
	// LeastWaste: the new nodes keep the least of their cpu and memory free.
	LeastWaste = "least-waste"
	// LeastNodes: the fewest nodes for the pods that they take.
	LeastNodes = "least-nodes"
	// MostPods: the most pods find a place.
	MostPods = "most-pods"
	// Priority: as the ConfigMap cluster-autoscaler-priority-expander says.
	Priority = "priority"
	// Price: the least money for what the pods request.
	Price = "price"
	// Random: any, the same one while the same pods wait.
	Random = "random"
)

// expanderNames are all of them.
var expanderNames = []string{LeastNodes, LeastWaste, MostPods, Price, Priority, Random}

// Expanders are the names of a chain.
func (p Policy) Expanders() []string { return strings.Split(p.Expander, ",") }
