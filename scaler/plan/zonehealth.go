package plan

import (
	"fmt"
	"maps"
	"slices"
)

// Where many nodes of a zone stop being Ready at once, the machines are most likely there
// and the network to them is not: they may serve on, and pods that have been terminating for
// long may still run. So none of these nodes is removed for being unready. Machines that are
// dead Auto Scaling replaces by its own health checks.

// leastCutOff is how many unready nodes a zone must have for that, unless none of it is
// Ready. The node controller counts alike when it slows down its evictions.
// https://kubernetes.io/docs/concepts/architecture/nodes/#rate-limits-on-eviction
const leastCutOff = 3

// zoneHealth counts the nodes of a zone that have been up, or should have been by now.
type zoneHealth struct{ unready, all int }

// findZones counts them. A node is where Auto Scaling says: the label is its own word. One
// that is Ready and whose instance is being terminated by us vouches for nothing: it is gone
// at the next evaluation, and what was begun on its word would be taken back then.
func (d *decision) findZones() {
	d.zones = map[string]zoneHealth{}
	for _, n := range d.nodes {
		if n.instance == nil || !n.instance.Live() || n.stage == pooled || n.stage == terminating && n.Ready || d.comingUp(n) {
			continue
		}
		z := d.zones[n.instance.Zone]
		z.all++
		if !n.Ready {
			z.unready++
		}
		d.zones[n.instance.Zone] = z
	}
}

// cutOff says that the node is not Ready and that its zone may be partitioned; empty
// otherwise.
func (d *decision) cutOff(n *node) string {
	if n.Ready || n.instance == nil {
		return ""
	}
	return d.policy.partitioned(n.instance.Zone, d.zones[n.instance.Zone])
}

// partitioned says that too much of a zone is not Ready; empty if it is not.
func (p Policy) partitioned(zone string, z zoneHealth) string {
	share := float64(z.unready)*100 > p.MaxUnreadyPercent*float64(z.all)
	if z.unready < 2 || z.unready < z.all && (z.unready < leastCutOff || !share) {
		return ""
	}
	return fmt.Sprintf("%d of %d nodes in zone %s are not Ready; the zone may be partitioned while its machines serve, so none of them is removed", z.unready, z.all, zone)
}

// zonesCutOff says so of the zones in which the group has nodes.
func (d *decision) zonesCutOff(g *group) []string {
	texts := map[string]string{}
	for _, n := range g.nodes {
		if why := d.cutOff(n); why != "" {
			texts[n.instance.Zone] = why
		}
	}
	var list []string
	for _, zone := range slices.Sorted(maps.Keys(texts)) {
		list = append(list, texts[zone])
	}
	return list
}
