package plan

import "windlass.dev/windlass/pkg/fleet"

// Decide says what to do now. It is a pure function: the same snapshot and
// policy give the same plan, in whatever order the snapshot lists its parts.
func Decide(s fleet.Snapshot, p Policy) Plan {
	return Plan{State: s.State}
}
