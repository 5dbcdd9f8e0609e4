package cluster

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// A drain without hurry, for a rebalance recommendation or maintenance, does not begin by itself:
// its agent cordons the node, reports that it waits, and names the id for which it wants a permit.
// It gets it when fewer drains than --max-drain-parallelism are under way, and when every pod that
// leaves has a place on a node that serves: those that have none count as pending and trigger
// scale-up first. No drain waits for what cannot come.
//
// An agent waits for a bounded time only, since the scaler last wrote that it is not its turn
// (contract.NotYet): a dead scaler holds up no drain, and a live one is waited for. What an agent
// begins by itself counts as under way like any other.

// noPermitWithin is how long before its deadline a drain is not permitted any more:
// its agent has begun, or begins in this moment.
const noPermitWithin = 2 * time.Minute

// AsksPermit reports whether the node's drain waits for a permit that does not stand on it.
func (n *Node) AsksPermit() bool {
	return n.WaitsForPermit() && n.Annotations[contract.AnnotationDrainPermit] != n.Report.Wants
}

// WaitsForPermit reports whether the node's agent has not begun its drain, as far as it has
// reported.
func (n *Node) WaitsForPermit() bool {
	return n.Reported && n.Report.Phase == contract.PhaseWaiting && n.Report.Wants != ""
}

// Unhurried reports whether the node is drained for something that has time, and whether only we
// replace it.
func (n *Node) Unhurried() bool {
	if n.Stage != Draining || n.Instance != nil && n.Instance.Terminating() {
		return false
	}
	kind := n.Draining()
	return kind == contract.KindRebalance || kind == contract.KindMaintenance
}

// TakesPods reports whether the agent has left the node open while its drain waits.
func (n *Node) TakesPods() bool {
	_, tainted := contract.Draining(n.Taints)
	return !tainted && !n.Unschedulable
}

// TooLate reports whether the deadline of a drain is so near that it has begun without a
// permit.
func (d *Cluster) TooLate(n *Node) bool {
	if n.Report.Deadline.IsZero() {
		return false
	}
	from := n.Report.Deadline.Add(-noPermitWithin)
	d.Clock.At(from)
	return !d.Now.Before(from)
}

func (d *Cluster) DrainLimit() int {
	if d.Policy.MaxDrainParallelism > 0 {
		return d.Policy.MaxDrainParallelism
	}
	return max(2, len(d.Nodes)/10)
}
