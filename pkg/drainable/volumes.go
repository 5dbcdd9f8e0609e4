package drainable

import (
	"iter"

	"windlass.dev/windlass/pkg/fleet"
)

// VolumesInUse counts the volumes of pods that stay with their node. Some of them may
// be of a kind that is never attached.
func VolumesInUse(pods iter.Seq[*fleet.Pod]) int {
	used := map[string]bool{}
	for p := range pods {
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
