package drain

import (
	"fmt"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// detaching says, of a node that no pod is left on since emptied, what its
// volumes are waited for; empty where they are not. A volume that is still
// attached when its instance goes is attached nowhere else for minutes. It is off
// the way of a spot interruption, and of a node that has been called drained.
func (d *decision) detaching(emptied time.Time) string {
	if d.continues() && d.old.Phase == contract.PhaseDrained {
		return ""
	}
	volumes := max(0, len(d.Attached)-d.volumesInUse())
	if volumes == 0 || d.winner().Kind == contract.KindSpot {
		return ""
	}
	until := notice.Earliest(emptied.Add(d.policy.VolumeWait), d.deadline)
	if d.due(until) {
		return ""
	}
	return fmt.Sprintf("no pod is left; waiting until %s for %s to be detached", clock(until), count(volumes, "volume"))
}

// volumesInUse counts the volumes of the pods that stay with the node. Some of
// them may be of a kind that is never attached.
func (d *decision) volumesInUse() int {
	used := map[string]bool{}
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Spec == nil || p.Ended() {
			continue
		}
		for _, v := range p.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				used[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName] = true
			case v.Ephemeral != nil: // its claim is named after pod and volume
				used[p.Namespace+"/"+p.Name+"-"+v.Name] = true
			}
		}
	}
	return len(used)
}

// count prints a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
