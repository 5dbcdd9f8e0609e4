package policy

import "windlass.dev/windlass/scaler/plan/verdict"

// TooMany reports whether so many unready nodes are more than may be.
func (p Policy) TooMany(sick, all int) bool {
	return sick > p.MaxUnready && float64(sick)*100 > p.MaxUnreadyPercent*float64(all)
}

// Where many nodes of a zone stop being Ready at once, the machines are most likely there
// and the network to them is not: they may serve on, and pods that have been terminating for
// long may still run. So none of these nodes is removed for being unready. Machines that are
// dead Auto Scaling replaces by its own health checks.

// leastCutOff is how many unready nodes a zone must have for that, unless none of it is Ready. The
// node controller counts in the same way when it slows down its evictions.
// https://kubernetes.io/docs/concepts/architecture/nodes/#rate-limits-on-eviction
const leastCutOff = 3

// ZoneHealth counts the nodes of a zone that have been up, or should have been by now.
type ZoneHealth struct{ Unready, All int }

// Partitioned says that too much of a zone is not Ready; nil if it is not.
func (p Policy) Partitioned(zone string, z ZoneHealth) verdict.Details {
	share := float64(z.Unready)*100 > p.MaxUnreadyPercent*float64(z.All)
	if z.Unready < 2 || z.Unready < z.All && (z.Unready < leastCutOff || !share) {
		return nil
	}
	return verdict.Say("{count} of {all} nodes in zone {zone} are not Ready; the zone may be partitioned while its machines serve, so none of them is removed",
		verdict.Count(z.Unready), verdict.All(z.All), verdict.Zone(zone))
}
