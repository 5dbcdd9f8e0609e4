package drain

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// detaching says, of a node that no pod is left on since emptied, what its
// volumes are waited for; empty where they are not, as on a node that has been called
// drained.
func (d *decision) detaching(emptied time.Time) string {
	if d.continues() && d.old.Phase == contract.PhaseDrained {
		return ""
	}
	until, volumes := d.going.VolumesBy(d.winner().Kind, d.sortedPods(), len(d.Attached), emptied, d.deadline)
	if volumes == 0 {
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
