package hooks

import (
	"windlass.dev/windlass/scaler/plan/action"
)

// TakeOver takes off nodes what a Cluster Autoscaler left there that is gone.
func (d *Hooks) TakeOver() {
	for _, n := range d.Nodes {
		if left := d.Leftover(n); len(left.Taints) > 0 {
			d.Do(action.TakeOver{Group: n.Group.Name, Node: n.Ref(), Instance: n.Instance.ID, Taints: left.Taints, Uncordon: left.Cordon, Cordoned: n.Unschedulable && !left.Cordon})
		}
	}
}
