package cluster

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// A node drains of its own accord when its instance metadata (IMDS) say so, and only its agent
// reports that. The report counts for other nodes, too: a replacement is upcoming, a turn is taken,
// a budget is spent. So it counts only for as long as it can be true, by the scaler's own clock:
// one who can write the Node can write any date, and write it again.

// readWithin is how long a group may be read without what the agent of one of its nodes has read of
// its instance.
const readWithin = time.Minute

// ownDrainForgotten is how long after its beginning a drain is forgotten that is over. One
// that comes sooner goes on by the first one's time.
const ownDrainForgotten = 24 * time.Hour

// hearOwnDrains keeps since when nodes drain of their own accord, and since when one reports that
// Auto Scaling terminates its instance, while that is in service.
//
// Where that was reported and the group was read before, a replacement is upcoming: the node's pods
// need trigger none. Where it has not come true in time, the group goes by what was read until that
// instance is terminated. Where we end the instance, the group may have become smaller by it.
func (d *Cluster) hearOwnDrains() {
	replaced, doubted := map[*Group]int{}, map[*Group]bool{}
	for _, n := range d.Nodes {
		if n.Instance == nil || !n.Instance.Live() || n.Mark != "" || n.Stage != Draining && len(d.Given.OwnDrains) == 0 {
			continue
		}
		d.hear(n.Instance.ID, n, n.Stage == Draining && !n.Requested && !n.AsksPermit())
		id := contract.TerminateID(n.Instance.ID)
		_, answers := n.Answered(id)
		terminates := answers && n.Stage == Draining // what came back is not replaced
		since, told := d.hear(id, n, terminates)
		until := since.Add(readWithin)
		switch {
		case !told:
		case !d.Now.Before(until):
			doubted[n.Group] = true
		case terminates:
			d.Clock.At(until)
			replaced[n.Group]++
		}
	}
	for g, n := range replaced {
		if !doubted[g] {
			g.toBeReplaced = n
		}
	}
}

// DrainsSince is since when pods leave the node by its own report: a drain without hurry may have
// waited for its turn for weeks before.
func (n *Node) DrainsSince() time.Time {
	if begun := n.Report.Excluded.Time; !begun.IsZero() {
		return begun
	}
	return n.Report.Since.Time
}

// hear is since when a node reports something, by its own date only where that is earlier: it makes
// the time shorter.
func (d *Cluster) hear(key string, n *Node, tells bool) (since time.Time, told bool) {
	since, told = d.Given.OwnDrains[key]
	over := since.Add(ownDrainForgotten)
	switch {
	case !told && !tells, told && !tells && !d.Now.Before(over):
		return time.Time{}, false
	case !told:
		since = FirstKnown(d.Now, n.DrainsSince())
	case !tells:
		d.Clock.At(over)
	}
	d.OwnDrains[key] = since
	return since, true
}

// Unproven reports whether a node has drained of its own accord for longer than a drain may take,
// whether no pod of it is in its grace period, and whether Auto Scaling has its instance in service
// all the same: it takes no turn and no budget from others any more.
func (d *Cluster) Unproven(n *Node) bool {
	since, told := d.OwnDrains[n.InstanceID()]
	_, occupied := n.Occupied(d.Now)
	if !told || !occupied || n.Stage != Draining || n.Ending(d.Now) {
		return false
	}
	until := since.Add(d.Policy.MaxDrainTime)
	d.Clock.At(until)
	return !d.Now.Before(until)
}
