package drain

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// detaching says, of a node that no pod is left on since emptied, what its
// volumes are waited for; empty where they are not. A volume that is still
// attached when its instance goes is attached nowhere else for minutes. It is off
// the way of a spot interruption, and of a node that has been called drained.
func (d *decision) detaching(emptied time.Time) string {
	if d.continues() && d.old.Phase == contract.PhaseDrained {
		return ""
	}
	volumes := max(0, len(d.Attached)-drainable.VolumesInUse(slices.Values(d.sortedPods())))
	if volumes == 0 || d.winner().Kind == contract.KindSpot {
		return ""
	}
	until := notice.Earliest(emptied.Add(d.policy.VolumeWait), d.deadline)
	if d.due(until) {
		return ""
	}
	return fmt.Sprintf("no pod is left; waiting until %s for %s to be detached", clock(until), count(volumes, "volume"))
}

// count prints a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
