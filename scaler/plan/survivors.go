package plan

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// spareSurvivors takes the terminating mark off nodes whose instance is in service
// again though a termination had begun.
//
// The mark is written before Auto Scaling is called, so an instance in service with a
// mark is most likely one whose termination is still to be asked for; see
// terminateAgain. It has outlived its termination only if it was seen out of service
// since, and not on its way out of the world: in a warm pool, in standby, or in no
// group of ours, as where it was detached. While it is there the mark stands. When it
// is back in service the mark goes, after another look at the instance, and with it
// the request that led there. To be wrong here costs one more drain, and no pod.
func (d *decision) spareSurvivors() {
	outlived := map[string]time.Time{}
	for _, n := range d.nodes {
		id := n.InstanceID()
		if n.mark == "" || id == "" {
			continue
		}
		since, seen := d.given.Outlived[id]
		if !seen {
			since = d.now
		}
		switch {
		case n.instance != nil && n.instance.Leaving():
		case n.instance == nil || !n.instance.Live():
			outlived[id] = since
			n.say(NodeTerminating, n.whereabouts())
		case d.outlived(n):
			outlived[id] = since
			d.spare(n)
		}
	}
	d.state.Outlived = outlived
}

// outlived says that a node bears the mark of a termination that its instance has
// outlived.
func (d *decision) outlived(n *node) bool {
	if n.mark == "" || n.instance == nil || !n.instance.Live() {
		return false
	}
	_, seen := d.given.Outlived[n.instance.ID]
	return seen
}

func (d *decision) spare(n *node) {
	if n.instance.State != fleet.InService {
		n.say(NodeKept, "its instance has outlived its termination and comes into service again")
		return
	}
	n.say(NodeKept, "its instance has outlived its termination and is in service again")
	d.do(Spare{Group: n.group.Name, Node: n.ref(), Instance: n.instance.ID, ID: n.mark})
}

// whereabouts of an instance whose termination had begun.
func (n *node) whereabouts() string {
	if n.instance == nil {
		return "its instance was being terminated, and is in none of our groups any more"
	}
	return fmt.Sprintf("its instance was to be terminated, and is %s", n.instance.State)
}
