package drains

import (
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// SayStage gives a verdict to every node that no step has spoken of.
func (d *Drains) SayStage(n *cluster.Node) {
	switch {
	case n.Group == nil:
		n.Say(verdict.NodeNotOurs, verdict.Say("its instance is in none of our groups"))
	case n.Instance.Leaving():
		n.Say(verdict.NodeLeaving, verdict.Say("Auto Scaling terminates its instance"))
	case !n.Instance.Live():
		n.Say(verdict.NodeNotOurs, n.WhyNotOurs())
	}
	switch n.Stage {
	case cluster.Coming:
		n.Say(verdict.NodeComing, n.WhyComing())
	case cluster.Unready:
		n.Say(verdict.NodeUnready, verdict.Say("it is not Ready"))
	case cluster.Returning:
		n.Say(verdict.NodeKept, verdict.Say("its drain was cancelled, and its agent is undoing it"))
	case cluster.Leaving:
		n.Say(verdict.NodeLeaving, n.WhyLeaving().Then(verdict.FirstOf(d.CarriedOn(n), n.Unheard(), n.ReportedProgress())))
	}
}
