package cluster

import (
	"maps"
	"slices"

	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// findZones counts them. A node is where Auto Scaling says: the label is its own word.
func (d *Cluster) findZones() {
	d.zones = map[string]policy.ZoneHealth{}
	for _, n := range d.Nodes {
		if !d.tellsOfZone(n) {
			continue
		}
		z := d.zones[n.Instance.Zone]
		z.All++
		if !n.Ready {
			z.Unready++
		}
		d.zones[n.Instance.Zone] = z
	}
}

// tellsOfZone reports whether a node counts for its zone. One that is Ready and whose instance is being
// terminated by us vouches for nothing: it is removed at the next evaluation, and what was begun
// because of it would be cancelled then.
func (d *Cluster) tellsOfZone(n *Node) bool {
	return n.Instance != nil && n.Instance.Live() && n.Stage != inWarmPool && !(n.Stage == Terminating && n.Ready) && !d.upcoming(n)
}

// NoteEnding notes that this evaluation terminates the node's instance: if the node is Ready, it
// vouches for its zone no longer.
func (d *Cluster) NoteEnding(n *Node) {
	if z := d.zones[n.Instance.Zone]; n.Ready && d.tellsOfZone(n) {
		z.All--
		d.zones[n.Instance.Zone] = z
	}
}

// CutOff says that the node is not Ready and that its zone may be partitioned; empty
// otherwise.
func (d *Cluster) CutOff(n *Node) verdict.Details {
	if n.Ready || n.Instance == nil {
		return nil
	}
	return d.Policy.Partitioned(n.Instance.Zone, d.zones[n.Instance.Zone])
}

// ZonesCutOff says so of the zones in which the group has nodes.
func (d *Cluster) ZonesCutOff(g *Group) verdict.Details {
	zones := map[string]verdict.Details{}
	for _, n := range g.Nodes {
		if why := d.CutOff(n); why != nil {
			zones[n.Instance.Zone] = why
		}
	}
	var all verdict.Details
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		all = all.Then(zones[zone])
	}
	return all
}
