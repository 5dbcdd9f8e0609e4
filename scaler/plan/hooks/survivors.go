package hooks

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ClearTerminationMarks takes the terminating mark off nodes whose instance is in service
// again though a termination had begun.
//
// The mark is written before Auto Scaling is called, so an instance in service with a mark is most
// likely one whose termination is still to be asked for; see drains.Drains.terminateAgain. It has
// outlived its termination only if it was seen out of service since, and not being terminated: in a
// warm pool, in standby, or in no group of ours, as where it was detached. While it is there the
// mark stands. When it is back in service the mark is cleared, after another reading of the
// instance, and with it the request that led there. To be wrong here costs one more drain, and no
// pod.
func (d *Hooks) ClearTerminationMarks() {
	outlived := map[string]time.Time{}
	for _, n := range d.Nodes {
		id := n.InstanceID()
		if n.Mark == "" || id == "" {
			continue
		}
		since, seen := d.Given.Outlived[id]
		if !seen {
			since = d.Now
		}
		switch {
		case n.Instance != nil && n.Instance.Terminating():
		case n.Instance == nil || !n.Instance.Live():
			outlived[id] = since
			n.Say(verdict.NodeTerminating, whereabouts(n))
		case d.Outlived(n):
			outlived[id] = since
			d.clearTerminationMark(n)
		}
	}
	d.State.Outlived = outlived
}

func (d *Hooks) clearTerminationMark(n *cluster.Node) {
	if n.Instance.State != fleet.InService {
		n.Say(verdict.NodeScaleDownCancelled, verdict.Say("its instance has outlived its termination and is returning to service"))
		return
	}
	n.Say(verdict.NodeScaleDownCancelled, verdict.Say("its instance has outlived its termination and is in service again"))
	d.Do(action.ClearTerminationMark{Group: n.Group.Name, Node: n.Ref(), Instance: n.Instance.ID, ID: n.Mark})
}

// whereabouts of an instance whose termination had begun.
func whereabouts(n *cluster.Node) verdict.Details {
	if n.Instance == nil {
		return verdict.Say("its instance was being terminated, and is in no group of this scaler any more")
	}
	return verdict.Say("its instance was to be terminated, and is {state}", verdict.State(n.Instance.State))
}
