package plan_test

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawExcess: where a group has more instances than desired, nodes are scaled down only if Auto
// Scaling can end none of them, and no more go than are too many.
func lawExcess(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	fresh, all := retired(s, got)
	var broken []string
	for _, g := range s.Groups {
		over := liveOf(g) - g.Desired
		if over <= 0 {
			continue
		}
		going, now := map[string]bool{}, 0
		for _, n := range s.Nodes {
			i := instanceNamed(s, n.InstanceID())
			marked := n.Annotations[contract.AnnotationTerminating] != ""
			if !i.Live() || !holds(g, i.ID) || !all[n.Name] && !marked || outlived(s, n) {
				continue
			}
			going[i.ID] = true
			if fresh[n.Name] {
				now++
			}
		}
		if now > 0 && (len(going) > over || !allProtected(g)) {
			broken = append(broken, fmt.Sprintf("excess: with %d of this plan %d nodes of group %s go, which has %d more than desired, all protected: %v", now, len(going), g.Name, over, allProtected(g)))
		}
	}
	return broken
}

func holds(g fleet.Group, id string) bool {
	for _, i := range g.Instances {
		if i.ID == id {
			return true
		}
	}
	return false
}
