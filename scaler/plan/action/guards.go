package action

import "strings"

// Guards names the parts of the state, as fleet.State spells them, that must be persisted
// before an action is carried out: without them the next leader would do it again, or do
// too much of it. An action without any is safe twice, or has its memory on the Node, on
// the group or at AWS; what the state remembers of it saves calls.
func Guards(a Action) []string {
	switch x := a.(type) {
	case Grow:
		// The token of the call, and how much was asked for, when and for whom: a launch
		// template that keeps no promise would bring nodes up to the group's maximum.
		return []string{"launches", "grownAt", "bursts", "promises", "swap", "recognition"}
	case Terminate:
		if neverCame(x) {
			// Since when it has been missed, how often that has happened in its group, and how
			// many were ended lately.
			return []string{"unjoined", "deserted", "backOffs", "recognition"}
		}
		return nil // the mark on its Node
	case Suspend:
		return []string{"suspending"} // whoever resumed it wants it to run
	case Retire, Keep, Permit, NotYet, Release, Mark, Unmark, Spare, Cordon, Evict, OutOfService, InServiceAgain: // the Node
		return nil
	case Heartbeat, Complete, Lower, Claim, Inform: // AWS, and the buffer
		return nil
	}
	return []string{anyPart}
}

// anyPart guards an action of which nobody has said what does: it waits until all is
// persisted.
const anyPart = "*"

// neverCame says that an instance is ended that never became a node that served. No drain
// of it, and so no mark, remembers why.
func neverCame(x Terminate) bool { return strings.HasPrefix(x.ID, "never-") }
