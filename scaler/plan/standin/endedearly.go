package standin

import (
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// EndsEarly is the notice for which a node is drained whose instance is ended before EC2
// takes it, and why; empty where it is not to end, or not yet.
func (d *StandIn) EndsEarly(n *cluster.Node) (id string, why verdict.Details) {
	if n.Stage != cluster.Draining || n.Instance == nil || !n.Instance.Live() || len(n.Report.Answers) == 0 {
		return "", nil
	}
	if drained := n.Reported && n.Report.Phase == contract.PhaseDrained || d.Emptied(n); !drained {
		return "", nil
	}
	_, held := contract.Held(n.Annotations)
	if _, occupied := n.Occupied(d.Now); held || occupied {
		return "", nil
	}
	return givenUp(n)
}

// givenUp is the notice for which the instance of a drained node is ended, and why:
// it is not to stay, or its machine is degraded. A node that is drained for a reboot
// serves again after it.
func givenUp(n *cluster.Node) (id string, why verdict.Details) {
	kind := n.Draining()
	if kind == contract.KindSpot || kind == contract.KindRebalance {
		return n.Report.Answers[0], verdict.Say("it is drained for {notice}", verdict.Notice(string(kind)))
	}
	if i := slices.IndexFunc(n.Report.Answers, contract.Degraded); kind == contract.KindMaintenance && i >= 0 {
		return n.Report.Answers[i], verdict.Say("it is drained, and its machine is degraded")
	}
	return "", nil
}
