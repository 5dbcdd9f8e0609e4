package plan_test

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// lawAlone: where an agent is responsive nothing is done in its place, and nothing is evicted from
// a node that new pods may come to. What this plan evicts no budget forbids, all of it together,
// and each budget loses one at a time.
func lawAlone(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	room, asked := drainable.NewBudgets(s.Budgets), map[string]bool{}
	for _, a := range got.Actions {
		switch a := a.(type) {
		case action.Cordon:
			if n := nodeNamed(s, a.Node.Name); heard(s, n) {
				broken = append(broken, fmt.Sprintf("alone: %s, and its agent is heard", a))
			}
		case action.Evict:
			n := nodeNamed(s, a.Node.Name)
			if heard(s, n) {
				broken = append(broken, fmt.Sprintf("alone: %s, and its agent is heard", a))
			}
			if _, tainted := contract.Draining(n.Taints); !tainted || !n.Unschedulable {
				broken = append(broken, fmt.Sprintf("alone: %s, which is open to pods", a))
			}
			broken = append(broken, mayBeEvicted(s, p, a, room, asked)...)
		}
	}
	return broken
}

func mayBeEvicted(s fleet.Snapshot, policy policy.Policy, a action.Evict, room *drainable.Budgets, asked map[string]bool) []string {
	i := slices.IndexFunc(s.Pods, func(p *fleet.Pod) bool { return p.UID == a.Pod.UID })
	if i < 0 || s.Pods[i].Node != a.Node.Name {
		return []string{fmt.Sprintf("law 4: %s, where it is not", a)}
	}
	p := s.Pods[i]
	v := drainable.Judge(drainable.Question{Pod: p, Now: s.Now, Budgets: room, Policy: policy.Manner.Rules(p, true, false), Urgency: drainable.Pressing})
	var broken []string
	if v.Outcome != drainable.Leave {
		broken = append(broken, fmt.Sprintf("law 4: %s: %s", a, v.Reason))
	}
	if v.Overrides != "" && a.Overrides == "" {
		broken = append(broken, fmt.Sprintf("law 4: %s goes past %s and does not say so", a, v.Overrides))
	}
	for _, b := range room.Guarding(p) {
		if asked[b] {
			broken = append(broken, fmt.Sprintf("law 4: %s is the second that budget %s loses at once", a, b))
		}
		asked[b] = true
	}
	room.Take(p)
	return broken
}

// heard reports whether the agent of a node reports its drain: the last request of the scaler is
// answered or fresh, and a report that is open is young.
func heard(s fleet.Snapshot, n fleet.Node) bool {
	request, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	asked := err == nil && request.By == contract.AppScaler
	report, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	reported := err == nil
	ready, known := s.Agents[n.Name]
	down := known && !ready
	if asked && (!reported || !report.AnswersTo(request.ID)) {
		return !(down && request.Kind == contract.KindASG) && s.Now.Sub(request.At.Time) < 10*time.Second
	}
	if !reported {
		// No report says that there is a drain, but for the mark of its end.
		return n.Annotations[contract.AnnotationTerminating] == "" || s.Agents[n.Name]
	}
	age := s.Now.Sub(report.Renewed.Time)
	if !report.Phase.Open() {
		return ready || !known && age < contract.UnresponsiveAfter
	}
	if waits := report.Wants != "" && report.PermitWait > 0 && report.Phase == contract.PhaseWaiting; waits && standsOpen(n) && !tooLate(s, report) {
		return age < contract.WaitGoneAfter
	}
	if report.Crowded && ready {
		return age < 60*time.Second
	}
	return age < 15*time.Second || !down && age < 30*time.Second
}

// standsOpen reports whether nothing keeps pods off a node.
func standsOpen(n fleet.Node) bool {
	_, tainted := contract.Draining(n.Taints)
	return !tainted && !n.Unschedulable
}

// emptied reports whether nothing is left on a node that nothing comes to, and whether its agent is
// unresponsive.
func emptied(s fleet.Snapshot, n fleet.Node) bool {
	_, tainted := contract.Draining(n.Taints)
	return tainted && n.Unschedulable && !occupied(s, n.Name) && !heard(s, n)
}
