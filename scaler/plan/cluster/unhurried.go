package cluster

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// A drain without hurry, for a rebalance recommendation or maintenance, does not
// begin by itself: its agent cordons the node, reports that it waits, and names the
// id for which it wants a permit. It gets it when fewer drains than
// --max-drain-parallelism are under way, and when every pod that leaves has a place
// on a node that serves: those that have none count as waiting and bring nodes
// first. Nobody waits for what cannot come.
//
// An agent waits for a bounded time only, since the scaler last told it that it is not its
// turn (contract.NotYet): so a scaler that is dead holds up nobody, and one that lives is
// waited for. What an agent begins by itself counts as under way like any other.

// noPermitWithin is how long before its deadline a drain is not permitted any more:
// its agent has begun, or begins in this moment.
const noPermitWithin = 2 * time.Minute

// AsksPermit says that the node's drain waits for a permit that does not stand on it.
func (n *Node) AsksPermit() bool {
	return n.WaitsForPermit() && n.Annotations[contract.AnnotationDrainPermit] != n.Report.Wants
}

// WaitsForPermit says that the node's agent has not begun its drain, as far as it has
// told.
func (n *Node) WaitsForPermit() bool {
	return n.Reported && n.Report.Phase == contract.PhaseWaiting && n.Report.Wants != ""
}

// Unhurried says that the node is drained for something that has time, and that
// nobody but us replaces it.
func (n *Node) Unhurried() bool {
	if n.Stage != Draining || n.Instance != nil && n.Instance.Terminating() {
		return false
	}
	kind := n.Draining()
	return kind == contract.KindRebalance || kind == contract.KindMaintenance
}

// TakesPods says that the agent has left the node open while its drain waits.
func (n *Node) TakesPods() bool {
	_, tainted := contract.Draining(n.Taints)
	return !tainted && !n.Unschedulable
}

// TooLate says that the deadline of a drain is so near that it has begun without a
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
