package drains

import (
	"time"

	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
)

const (
	// The pods of a burst are created and judged one after the other. The first
	// triggers scale-up at once; for those after it a group grows again at intervals
	// that begin at burstPace and double, so that a thousand pods are a handful
	// of calls.
	burstPace, burstPaceMost = 100 * time.Millisecond, time.Second
	// burstOver is how long after it last grew a group's next growth is the
	// first of another burst.
	burstOver = 10 * time.Second
	// growthShows is how long it may take until an external provider shows by how much it was asked to
	// make a group larger.
	growthShows = time.Minute
)

// Burst is how often the group was grown in the burst that goes on.
func (d *Drains) Burst(group string) (count int, goesOn bool) {
	at, grew := d.State.GrownAt[group]
	if !grew || d.Now.Sub(at) >= burstOver {
		return 0, false
	}
	return d.State.Bursts[group], true
}

// PaceOf is the earliest moment at which the group grows again.
func (d *Drains) PaceOf(group string) time.Time {
	count, goesOn := d.Burst(group)
	if !goesOn || count == 0 {
		return d.Now
	}
	return d.State.GrownAt[group].Add(launch.Doubled(burstPace, count, burstPaceMost))
}

// ShownBy is the moment by which the group's provider shows what a leader before us may have asked of
// it. Only a call with a token can be repeated, and an external provider knows none: what is asked
// for twice comes twice. Zero where there is no such call.
func (d *Drains) ShownBy(g *cluster.Group) time.Time {
	at, grew := d.State.GrownAt[g.Name]
	if !g.External || !grew || !at.Before(d.Leads) {
		return time.Time{}
	}
	return at.Add(growthShows)
}
