package action

import (
	"cmp"
	"slices"
)

// Sizes says that an action makes a group larger or smaller. Those of one group go
// together and in their order, as each expects to find the size that the one before it
// leaves; so they wait for the part of the plan that knows of growth.
func Sizes(a Action) bool {
	switch a.(type) {
	case Grow, Lower, Terminate:
		return true
	}
	return false
}

// Ordered sorts actions by lane; within one, what is most pressing goes first.
func Ordered(actions []Action) []Action {
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Lane(), b.Lane()), cmp.Compare(rank(a), rank(b)))
	})
	return actions
}

// rank within a lane. Grow goes before anything that lowers desired, which it
// expects to find as it was.
func rank(a Action) int {
	switch a.(type) {
	case Suspend, Claim: // before anything of which Auto Scaling would make something
		return -1
	case Grow:
		return 0
	case Complete:
		return 1
	case Heartbeat, Cordon, Evict:
		return 2
	case Spare, Keep, Release, Permit, NotYet, OutOfService, InServiceAgain:
		return 3
	case Retire:
		return 4
	case Terminate:
		return 5
	case Lower:
		return 6
	case Unmark:
		return 7
	}
	return 8
}
