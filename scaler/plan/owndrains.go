package plan

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// A node drains of its own accord when its instance metadata say so, and only its agent
// reports that. The report counts for other nodes, too: a replacement is upcoming, a turn is
// taken, a budget is spent. So it counts only for as long as it can be true, by the scaler's
// own clock: whoever can write the Node can write any date, and write it again.

// readWithin is how long a group may be read without what the agent of one of its nodes
// has heard of its instance.
const readWithin = time.Minute

// ownDrainForgotten is how long after its beginning a drain is forgotten that is over. One
// that comes sooner goes on by the first one's time.
const ownDrainForgotten = 24 * time.Hour

// hearOwnDrains remembers since when nodes drain of their own accord, and since when one
// says that Auto Scaling terminates its instance, while that is in service.
//
// Where that was said and the group was read before, a replacement is coming: the node's
// pods need bring none. Where it has not come true in time, the group goes by what was read
// until that instance is gone. Where we end the instance, the group may have become smaller
// by it.
func (d *decision) hearOwnDrains() {
	replaced, doubted := map[*group]int{}, map[*group]bool{}
	for _, n := range d.nodes {
		if n.instance == nil || !n.instance.Live() || n.mark != "" {
			continue
		}
		d.hear(n.instance.ID, n, n.stage == leaving && !n.requested && !n.asksPermit())
		id := contract.TerminateID(n.instance.ID)
		_, answers := n.answered(id)
		terminates := answers && n.stage == leaving // what came back is not replaced
		since, told := d.hear(id, n, terminates)
		until := since.Add(readWithin)
		switch {
		case !told:
		case !d.now.Before(until):
			doubted[n.group] = true
		case terminates:
			d.clock.at(until)
			replaced[n.group]++
		}
	}
	for g, n := range replaced {
		if !doubted[g] {
			g.replaced = n
		}
	}
}

// beganToLeave is since when pods leave the node by its own word: a drain without hurry may
// have waited for its turn for weeks before.
func (n *node) beganToLeave() time.Time {
	if begun := n.report.Excluded.Time; !begun.IsZero() {
		return begun
	}
	return n.report.Since.Time
}

// hear is since when a node tells something, by its own date only where that is earlier:
// it makes the time shorter.
func (d *decision) hear(key string, n *node, tells bool) (since time.Time, told bool) {
	since, told = d.given.OwnDrains[key]
	over := since.Add(ownDrainForgotten)
	switch {
	case !told && !tells, told && !tells && !d.now.Before(over):
		return time.Time{}, false
	case !told:
		since = firstKnown(d.now, n.beganToLeave())
	case !tells:
		d.clock.at(over)
	}
	d.state.OwnDrains[key] = since
	return since, true
}

// unproven says that a node has drained of its own accord for longer than a drain may take,
// that no pod of it is in its grace period, and that Auto Scaling has its instance in
// service all the same: it takes no turn and no budget from others any more.
func (d *decision) unproven(n *node) bool {
	since, told := d.state.OwnDrains[n.InstanceID()]
	_, occupied := n.occupied(d.now)
	if !told || !occupied || n.stage != leaving || n.ending(d.now) {
		return false
	}
	until := since.Add(d.policy.MaxDrainTime)
	d.clock.at(until)
	return !d.now.Before(until)
}
