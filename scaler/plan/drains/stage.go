package drains

import (
	"cmp"

	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// SayStage gives a verdict to every node that no step has spoken of.
func (d *Drains) SayStage(n *cluster.Node) {
	switch {
	case n.Group == nil:
		n.Say(verdict.NodeNotOurs, "its instance is in none of our groups")
	case n.Instance.Leaving():
		n.Say(verdict.NodeLeaving, "Auto Scaling terminates its instance")
	case !n.Instance.Live():
		n.Say(verdict.NodeNotOurs, n.WhyNotOurs())
	}
	switch n.Stage {
	case cluster.Coming:
		n.Say(verdict.NodeComing, n.WhyComing())
	case cluster.Unready:
		n.Say(verdict.NodeUnready, "it is not Ready")
	case cluster.Returning:
		n.Say(verdict.NodeKept, "its drain was cancelled, and its agent is undoing it")
	case cluster.Leaving:
		n.Say(verdict.NodeLeaving, n.WhyLeaving()+cmp.Or(d.CarriedOn(n), n.Unheard(), n.ReportedProgress()))
	}
}
