package plan

import "windlass.dev/windlass/pkg/drainable"

// utilization is the greater of the shares of its cpu and its memory that the
// pods on a node request.
func (d *decision) utilization(n *node) float64 {
	var cpu, memory, ofCPU, ofMemory int64
	ofCPU, ofMemory = n.Allocatable.Cpu().MilliValue(), n.Allocatable.Memory().Value()
	for _, p := range n.pods {
		if p.Ended() {
			continue
		}
		c, m := d.fit.Tenant(p).Class.CPUAndMemory()
		if drainable.IsDaemonSet(p) && d.policy.IgnoreDaemonSets {
			ofCPU, ofMemory = ofCPU-c, ofMemory-m
			continue
		}
		cpu, memory = cpu+c, memory+m
	}
	return max(share(cpu, ofCPU), share(memory, ofMemory))
}

// share of nothing is everything: a node that reports no room is not unneeded.
func share(used, of int64) float64 {
	if of <= 0 {
		return 1
	}
	return float64(used) / float64(of)
}
