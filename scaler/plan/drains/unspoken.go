package drains

import (
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// SayStage gives a verdict to every node that no step has spoken of.
func (d *Drains) SayStage(n *cluster.Node) {
	switch {
	case n.Group == nil:
		d.SayWithoutGroup(n)
	case n.Instance.Terminating():
		n.Say(verdict.NodeDraining, verdict.Say("Auto Scaling terminates its instance"))
	case !n.Instance.Live():
		n.Say(verdict.NodeNotInAnyGroup, n.WhyNotOurs())
	}
	switch n.Stage {
	case cluster.Upcoming:
		n.Say(verdict.NodeUpcoming, n.WhyUpcoming())
	case cluster.Unready:
		n.Say(verdict.NodeUnready, verdict.Say("it is not Ready"))
	case cluster.Returning:
		n.Say(verdict.NodeScaleDownCancelled, verdict.Say("its drain was cancelled, and its agent is undoing it"))
	case cluster.Draining:
		n.Say(verdict.NodeDraining, n.WhyDraining().Then(verdict.FirstOf(d.CarriedOn(n), n.Unheard(), n.ReportedProgress())))
	}
}
