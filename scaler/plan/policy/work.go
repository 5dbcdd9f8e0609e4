package policy

// Bounds are what one evaluation may cost. They are counted and not timed, so that deciding
// stays a function of the snapshot.
type Bounds struct {
	// PodTerms is about how many kinds of pods the affinity, anti-affinity and spread terms may
	// speak, one after the other, of pending pods and of running pods; see fit.Scales.
	PodTerms int
	// Buffers is how many CapacityBuffers keep room.
	Buffers int
	// Growth and ScaleDown are steps as fit.Cluster.Steps counts them: for pending pods, and for
	// the search for unneeded nodes.
	Growth, ScaleDown int64
	// Explained is for how many kinds of pods of a namespace it is worked out what keeps
	// them from each group.
	Explained int
}

// DefaultBounds take about a second, and 100 MiB, each.
func DefaultBounds() Bounds {
	return Bounds{PodTerms: 500_000, Buffers: 300, Growth: 20_000_000, ScaleDown: 20_000_000, Explained: 500}
}
