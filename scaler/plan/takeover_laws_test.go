package plan_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawTakeOver: what is taken off a node a Cluster Autoscaler has left there that is gone, and no
// cordon but beside its harder taint; while another autoscaler lives nothing is.
func lawTakeOver(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	var broken []string
	for a := range action.Only[action.TakeOver](got.Actions) {
		n, i := nodeNamed(s, a.Node.Name), instanceNamed(s, a.Instance)
		if why := livesBeside(s, a.Group); why != "" {
			broken = append(broken, fmt.Sprintf("take over: %s, and %s", a, why))
		}
		if n.InstanceID() != a.Instance || !i.Live() || len(a.Taints) == 0 {
			broken = append(broken, fmt.Sprintf("take over: %s, and its instance is %q of %q", a, a.Instance, i.State))
		}
		for _, key := range []string{contract.AnnotationTerminating, contract.AnnotationDrainRequest, contract.AnnotationDrainReport} {
			if _, drains := n.Annotations[key]; drains {
				broken = append(broken, fmt.Sprintf("take over: %s, and %s stands there", a, key))
			}
		}
		hard := false
		for _, t := range a.Taints {
			seconds, err := strconv.ParseInt(t.Value, 10, 64)
			hard = hard || t.Key == contract.TaintToBeDeleted
			if !slices.Contains(n.Taints, t) || err != nil || s.Now.Sub(time.Unix(seconds, 0)) < 15*time.Minute || t.Key != contract.TaintToBeDeleted && t.Key != contract.TaintDeletionCandidate {
				broken = append(broken, fmt.Sprintf("take over: %s, and the taint is %+v", a, t))
			}
		}
		_, ours := n.Annotations[contract.AnnotationCordonedBy]
		if a.Uncordon && (!hard || !n.Unschedulable || ours) {
			broken = append(broken, fmt.Sprintf("law 8: %s, and the cordon is somebody's", a))
		}
	}
	return broken
}

// livesBeside says which sign there is of another autoscaler that may manage a group: none where each one
// that lives is a Cluster Autoscaler whose status names other groups.
func livesBeside(s fleet.Snapshot, group string) string {
	speaks := map[string][]string{} // what statuses name, by namespace
	var live []fleet.Autoscaler
	for _, a := range s.Autoscalers {
		if !a.Powerless && !a.Younger && s.Now.Before(a.AliveUntil()) {
			live = append(live, a)
			if a.Sign == fleet.SignStatus {
				speaks[a.Namespace] = append(speaks[a.Namespace], a.Groups...)
			}
		}
	}
	var all []string
	for _, a := range live {
		named := speaks[a.Namespace]
		if a.Kind != fleet.ClusterAutoscaler || len(named) == 0 {
			return a.String() + " lives"
		}
		for _, other := range live {
			if other.Namespace == a.Namespace && other.Sign == a.Sign && other.Name != a.Name {
				return a.String() + " lives, and so does " + other.String()
			}
		}
		for _, name := range named {
			parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == ':' })
			if strings.EqualFold(parts[len(parts)-1], group) {
				return a.String() + " lives and manages it"
			}
		}
		all = append(all, named...)
	}
	for _, n := range s.Nodes {
		since, ok := contract.ToBeDeletedSince(n.Taints)
		if !ok || s.Now.Sub(since).Abs() >= 15*time.Minute {
			continue
		}
		of := ""
		for _, g := range s.Groups {
			for _, i := range g.Instances {
				if i.ID == n.InstanceID() && !g.Observed && (g.Owner == "" || g.Owner == s.Cluster) {
					of = g.Name
				}
			}
		}
		if len(all) == 0 || of != "" && !slices.Contains(all, of) {
			return "one has tainted " + n.Name
		}
	}
	return ""
}
