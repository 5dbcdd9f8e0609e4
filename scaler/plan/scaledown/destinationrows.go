package scaledown

import (
	"slices"
	"time"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// destinationsBeside lists the places for pods of those of the chosen nodes that go now.
func (r *nodeSearch) destinationsBeside(chosen []*candidate) []*fit.Row {
	if len(chosen) == 0 {
		return nil
	}
	unneeded := map[*cluster.Node]time.Time{}
	for _, c := range chosen {
		unneeded[c.Node] = c.since
		if c.since.IsZero() {
			unneeded[c.Node] = r.Now // it is marked now
		}
	}
	return r.BothWays(slices.DeleteFunc(r.FindDestinations(unneeded), r.isClaimed))
}
