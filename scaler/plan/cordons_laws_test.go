package plan_test

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawCordons: of each group no more nodes stay closed for rebalance recommendations than
// may be; and law 8: what is released an agent has closed for one, and for nothing else.
func lawCordons(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	released := map[string]bool{}
	for _, a := range got.Actions {
		release, ok := a.(action.Release)
		if !ok {
			continue
		}
		released[release.Node.Name] = true
		if n := nodeNamed(s, release.Node.Name); !closedFor(n, release.ID) {
			broken = append(broken, fmt.Sprintf("law 8: %s, which no agent has closed for a rebalance recommendation", release))
		}
	}
	if got.Stopped {
		return broken
	}
	coming := comingUp(got)
	for _, g := range s.Groups {
		most, closed := 0, 0
		if p.MaxRebalanceCordonedPercent > 0 {
			most = max(1, int(p.MaxRebalanceCordonedPercent*float64(liveOf(g))/100))
		}
		for _, i := range g.Instances {
			for _, n := range s.Nodes {
				mark, _ := contract.ParseCordon(n.Annotations[contract.AnnotationCordonedBy])
				if n.InstanceID() == i.ID && i.State == fleet.InService && n.Ready && !coming[n.Name] && closedFor(n, mark.Notice) && !released[n.Name] {
					closed++
				}
			}
		}
		if closed > most {
			broken = append(broken, fmt.Sprintf("cordons: of group %s %d nodes stay closed for rebalance recommendations, of at most %d", g.Name, closed, most))
		}
	}
	return broken
}

// closedFor reports whether an agent has closed a node for the rebalance recommendation of that id,
// and whether it is drained for nothing.
func closedFor(n fleet.Node, id string) bool {
	mark, _ := contract.ParseCordon(n.Annotations[contract.AnnotationCordonedBy])
	list, _ := contract.ParseNoticed(n.Annotations[contract.AnnotationNotices])
	noted, known := list.Find(id)
	for _, key := range []string{contract.AnnotationDrainRequest, contract.AnnotationDrainReport, contract.AnnotationTerminating} {
		if _, drains := n.Annotations[key]; drains {
			return false
		}
	}
	_, tainted := contract.Draining(n.Taints)
	return n.Unschedulable && !tainted && mark.By == contract.AppAgent && mark.Notice == id && known && noted.Kind == contract.KindRebalance && noted.Does == "cordon"
}
