package observe

import (
	"maps"
	"strings"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// machines is what EC2 reports of the machines of nodes that are not Ready.
type machines struct {
	known map[string]fleet.Machine
	fault string
}

// askMachines asks of those that may be down and have volumes, where people want that, and of
// those that are marked as down, and counts an answer with something new.
func (o *Observer) askMachines() machines {
	if o.config.Machines == nil {
		return machines{}
	}
	nodes, _, _ := o.copies()
	var ids []string
	for i := range nodes {
		n := &nodes[i]
		if n.Ready {
			continue // as most are
		}
		_, marked := n.Annotations[contract.AnnotationOutOfService]
		if id := n.InstanceID(); strings.HasPrefix(id, "i-") && (n.Attached > 0 && o.config.OutOfService || marked) {
			ids = append(ids, id)
		}
	}
	now := machines{}
	now.known, now.fault = o.config.Machines(ids)
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.fault != o.machines.fault || !maps.Equal(now.known, o.machines.known) {
		o.version.Add(1)
		o.machines = now
	}
	return now
}
