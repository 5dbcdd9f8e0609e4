package seats

import (
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Used is the utilization of a node: the greatest of the shares of its cpu and its memory that the pods on a node
// request, and of the devices of its pools that are allocated; on a node with GPUs cpu and memory
// do not count, but these. What is really used of them does not count: kube-scheduler goes by
// requests too.
func (d *Seats) Used(n *cluster.Node) float64 {
	if HasGPUs(n) {
		return max(d.gpuUtilization(n), d.deviceUtilization(n))
	}
	var used Load
	has := Load{n.MilliCPU, n.Memory}
	for kind, load := range d.kept[n.Number].loads {
		if d.leavesOut(n.Group, kind) {
			has = has.Minus(load)
			continue
		}
		used = used.Plus(load)
	}
	return max(share(used.milli, has.milli), share(used.bytes, has.bytes), d.deviceUtilization(n))
}

// deviceUtilization is the greatest share of the devices of one of a node's pools that claims
// hold.
func (d *Seats) deviceUtilization(n *cluster.Node) float64 {
	most := 0.0
	if len(n.Slices) == 0 {
		return most
	}
	devices := map[cluster.DevicePool]int64{}
	for _, s := range cluster.CompletePools(n.Slices) {
		devices[cluster.PoolOf(s)] += int64(len(s.Spec.Devices))
	}
	for pool, of := range devices {
		most = max(most, share(d.Allocated[pool], of))
	}
	return most
}

// gpuUtilization is the greatest share of one of its kinds of GPU. Nothing is used where
// the node reports none: its driver does not work, or not yet.
func (d *Seats) gpuUtilization(n *cluster.Node) float64 {
	most := 0.0
	for _, name := range n.GPUs {
		var used int64
		total := n.Allocatable[name]
		of := total.Value()
		for t := range d.counting(n) {
			count := d.Fit.Requested(t.Class, name)
			if d.leftOut(n.Group, t.Pod) {
				of -= count
				continue
			}
			used += count
		}
		most = max(most, share(used, of))
	}
	return most
}

// counting are the pods that take room of the node: they have not ended, and if they are
// being deleted, their grace period is not long over. Expendable ones take none.
func (d *Seats) counting(n *cluster.Node) func(yield func(fit.Tenant) bool) {
	return func(yield func(fit.Tenant) bool) {
		for i, p := range n.Pods {
			if !p.Ended() && !d.Expendable(p) && !drainable.IsLongTerminating(p, d.Now) && !yield(d.Tenant(n, i)) {
				return
			}
		}
	}
}

// GPUShare is the greatest share of one of a node's kinds of GPU that a pod of the class requests.
func (d *Seats) GPUShare(n *cluster.Node, c *fit.Class) float64 {
	most := 0.0
	for _, name := range n.GPUs {
		total := n.Allocatable[name]
		most = max(most, share(d.Fit.Requested(c, name), total.Value()))
	}
	return most
}

// Load is an amount of thousandths of a cpu and of bytes of memory.
type Load struct{ milli, bytes int64 }

// Plus is the sum of two, and Minus what is left of the first.
func (l Load) Plus(o Load) Load  { return Load{l.milli + o.milli, l.bytes + o.bytes} }
func (l Load) Minus(o Load) Load { return Load{l.milli - o.milli, l.bytes - o.bytes} }

// Covers reports whether there is as much of both.
func (l Load) Covers(o Load) bool { return l.milli >= o.milli && l.bytes >= o.bytes }

// Most is as much of cpu and memory as there is in the proportion of the load. Where the load has
// nothing of one of them, all that there is of it counts.
func (l Load) Most(milli, bytes int64) (cpu, memory int64) {
	if l.milli <= 0 || l.bytes <= 0 {
		return milli, bytes
	}
	share := min(float64(milli)/float64(l.milli), float64(bytes)/float64(l.bytes))
	return int64(share * float64(l.milli)), int64(share * float64(l.bytes))
}

// LoadOfPod is what a pod requests.
func LoadOfPod(t fit.Tenant) Load {
	milli, bytes := t.Class.CPUAndMemory()
	return Load{milli, bytes}
}

// LoadOf is what those pods of a node request that could be on another.
func (d *Seats) LoadOf(n *cluster.Node) Load { return d.kept[n.Number].loads[0] }

// RoomOf is what a node has for such pods, be they there or not.
func (d *Seats) RoomOf(n *cluster.Node) Load {
	room := Load{n.MilliCPU, n.Memory}
	for _, own := range d.kept[n.Number].loads[1:] {
		room = room.Minus(own)
	}
	return room
}

// leftOut reports whether a pod counts neither for what is used of the node nor for what it
// has, and leavesOut so of a kind of load.
func (d *Seats) leftOut(g *cluster.Group, p *fleet.Pod) bool { return d.leavesOut(g, kindOfLoad(p)) }

func (d *Seats) leavesOut(g *cluster.Group, kind int) bool {
	ignored := d.Policy.IgnoreDaemonSets
	if g != nil && g.ScaleDown.IgnoreDaemonSets != nil {
		ignored = *g.ScaleDown.IgnoreDaemonSets
	}
	return ignored && kind&ofDaemonSets != 0 || d.Policy.IgnoreMirrors && kind&ofMirrors != 0
}

// share of nothing is everything, where something is used.
func share(used, of int64) float64 {
	switch {
	case used == 0:
		return 0
	case of <= 0:
		return 1
	}
	return float64(used) / float64(of)
}

// HasGPUs reports whether the node is there for its GPUs, by its label or by what it reports.
func HasGPUs(n *cluster.Node) bool {
	if n.Accelerated || len(n.GPUs) > 0 {
		return true
	}
	if g := n.Group; g != nil && g.GPULabel != "" {
		_, labelled := n.Labels[g.GPULabel]
		return labelled
	}
	return false
}

// Requested says how much of a node is requested, or of its GPUs where those count.
func Requested(n *cluster.Node, used string) verdict.Details {
	if HasGPUs(n) {
		return verdict.Say("{used} of its GPUs are requested", verdict.Used(used))
	}
	return verdict.Say("{used} of it is requested", verdict.Used(used))
}

// Threshold is the utilization up to which a node of a group may go.
func (d *Seats) Threshold(n *cluster.Node) float64 {
	usual, own := d.Policy.UtilizationThreshold, n.Group.ScaleDown.UtilizationThreshold
	if HasGPUs(n) {
		usual, own = d.Policy.GPUUtilizationThreshold, n.Group.ScaleDown.GPUUtilizationThreshold
	}
	if own != nil {
		return *own
	}
	return usual
}
