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

// lawPermits: a permit is for what a node's report wants and does not have. With those of this plan
// no more nodes with pods are drained without hurry than may be at once, and as many beside them
// that stand still, and none is permitted for whose pods the same plan launches nodes.
func lawPermits(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	_, retiring := retired(s, got)
	busy, stuck, permits := 0, 0, 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		report, _ := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
		permit, permitted := permitOf(got, n.Name)
		if permitted && (report.Phase != contract.PhaseWaiting || permit.ID != report.Wants || n.Annotations[contract.AnnotationDrainPermit] == permit.ID) {
			broken = append(broken, fmt.Sprintf("permits: %s, which nobody waits for", permit))
		}
		unhurried := drainsUnhurried(s, n, report)
		if permitted && unhurried {
			permits++
			broken = append(broken, replacedAtOnce(s, n, permit, got)...)
		}
		waits := report.Phase == contract.PhaseWaiting && report.Wants != "" && n.Annotations[contract.AnnotationDrainPermit] != report.Wants
		late := tooLate(s, report)
		if (permitted && unhurried || retiring[n.Name] || unhurried && report.Phase.Open() && (!waits || late)) && occupied(s, n.Name) {
			if unhurried && unproven(s, p, n, got) {
				continue
			}
			if !permitted && standsStill(s, n, report) {
				if retiring[n.Name] {
					stuck++
				}
				continue
			}
			busy++
		}
	}
	limit := p.MaxDrainParallelism
	if limit == 0 {
		limit = max(2, len(s.Nodes)/10)
	}
	if busy += max(0, stuck-limit); permits > 0 && busy > limit {
		broken = append(broken, fmt.Sprintf("permits: with %d of this plan %d nodes drain at once, of at most %d", permits, busy, limit))
	}
	return broken
}

// tooLate reports whether the deadline is so near that an agent has begun without a permit.
func tooLate(s fleet.Snapshot, report contract.Report) bool {
	return !report.Deadline.IsZero() && report.Deadline.Sub(s.Now) <= 2*time.Minute
}

// standsStill reports whether a drain is a minute old, and no pod of it may be moving. Whether one
// does that no agent reports is not asked: it may stand still.
func standsStill(s fleet.Snapshot, n *fleet.Node, report contract.Report) bool {
	request, _ := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	since := report.Since.Time
	if since.IsZero() {
		since = request.At.Time
	}
	silent := !report.Phase.Open() || s.Now.Sub(report.Renewed.Time) >= contract.ReportEvery
	return s.Now.Sub(since) >= time.Minute && (silent || report.Phase == contract.PhaseBlocked || report.Phase == contract.PhaseWaiting && report.Wants == "")
}

// unproven reports whether a node has drained of its own accord for longer than a drain may take,
// by the scaler's clock, and whether no pod of it ends.
func unproven(s fleet.Snapshot, p policy.Policy, n *fleet.Node, got plan.Plan) bool {
	since, told := got.State.OwnDrains[n.InstanceID()]
	return told && s.Now.Sub(since) >= p.MaxDrainTime && !slices.ContainsFunc(s.Pods, func(pod *fleet.Pod) bool {
		return pod.Node == n.Name && !pod.Deleted.IsZero() && drainable.Occupies(pod, s.Now)
	})
}

func permitOf(got plan.Plan, node string) (action.Permit, bool) {
	for _, a := range got.Actions {
		if permit, ok := a.(action.Permit); ok && permit.Node.Name == node {
			return permit, true
		}
	}
	return action.Permit{}, false
}

// drainsUnhurried reports whether a node is drained for nothing that is stronger than
// maintenance, nor for a wish of ours or of people alone.
func drainsUnhurried(s fleet.Snapshot, n *fleet.Node, report contract.Report) bool {
	request, _ := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	kind, _ := contract.Draining(n.Taints)
	strength := max(request.Kind.Strength(), kind.Strength(), report.Kind.Strength())
	return strength >= contract.KindRebalance.Strength() && strength <= contract.KindMaintenance.Strength() &&
		n.Annotations[contract.AnnotationTerminating] == "" && !leavingInstance(s, n.InstanceID())
}

func occupied(s fleet.Snapshot, node string) bool {
	return slices.ContainsFunc(s.Pods, func(p *fleet.Pod) bool { return p.Node == node && drainable.Occupies(p, s.Now) })
}

func replacedAtOnce(s fleet.Snapshot, n *fleet.Node, permit action.Permit, got plan.Plan) []string {
	var broken []string
	for _, a := range got.Actions {
		grow, ok := a.(action.Grow)
		if !ok {
			continue
		}
		for _, p := range s.Pods {
			if p.Node == n.Name && slices.ContainsFunc(grow.For, func(ref action.PodRef) bool { return ref.UID == p.UID }) {
				broken = append(broken, fmt.Sprintf("permits: %s, and %s for its pod %s", permit, grow, p.Key()))
			}
		}
	}
	return broken
}
