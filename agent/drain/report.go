package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// writeEvery bounds how often the agent writes to its Node. That it is drained does not wait where pods
	// were reported to be left: the instance is paid for until somebody reads that.
	writeEvery = time.Second
	// mostNamed bounds how many names a report lists, and mostReasons how many
	// it explains, each in so many bytes at most.
	mostNamed, mostReasons, mostReason = 10, 3, 250
)

// report says how the drain stands.
func (d *decision) report(t tally) contract.Report {
	r := contract.Report{
		Answers:   notice.IDs(d.drains),
		Kind:      d.winner().Kind,
		Reason:    d.winner().Reason,
		Wants:     d.pause.wants,
		Since:     contract.At(d.since()),
		Renewed:   contract.At(d.Now),
		Deadline:  contract.At(d.deadline),
		LastCalls: d.returns.NoteCalls(d.calls(), d.sortedPods()),
		Version:   d.policy.Version,
	}
	if d.pause.wants == "" {
		r.Excluded = contract.At(d.excluded())
	} else {
		r.PermitWait = int(d.policy.PermitWait / time.Second)
	}
	switch {
	case !d.PodsKnown:
		d.unseen(&r)
		return r
	case t.Left == 0:
		d.empty(&r)
	case !d.pause.none():
		r.Phase, r.Left, r.Message = contract.PhaseWaiting, t.Left, d.pause.message
	default:
		r.Phase, r.Left = t.Phase(false), t.Left
		r.BlockedBy, r.Owners = t.blockedBy[:min(len(t.blockedBy), mostNamed)], t.owners[:min(len(t.owners), mostNamed)]
		r.Message = t.message(r.Phase)
	}
	if len(t.overdue) > 0 {
		r.Overdue = t.overdue[:min(len(t.overdue), mostNamed)]
		r.Message += "; " + overstay(t.overdue)
	}
	if t.Left > 0 && d.pause.none() && d.hasFailed() {
		r.Phase = contract.PhaseFailed
		r.Message = "the deadline has passed; " + r.Message
	}
	if d.bad != nil {
		bad := "; " + d.bad.Error()
		r.Message = contract.Shorten(r.Message, contract.MostText-len(bad)) + bad
	}
	return r
}

// unseen fills in what was last known, while the pods are not seen (again).
func (d *decision) unseen(r *contract.Report) {
	switch {
	case !d.pause.none():
		r.Phase, r.Message = contract.PhaseWaiting, d.pause.message
	case d.begun():
		r.Phase, r.BlockedBy, r.Owners, r.Overdue, r.Message, r.Emptied = d.old.Phase, d.old.BlockedBy, d.old.Owners, d.old.Overdue, d.old.Message, d.old.Emptied
	default:
		r.Phase, r.Message = contract.PhaseDraining, "listing the pods"
	}
	if d.continues() {
		r.Left = d.old.Left
	}
}

// empty is the report of a node that no pod is left on. It is drained once its
// volumes are.
func (d *decision) empty(r *contract.Report) {
	r.Emptied = d.emptied()
	r.Phase, r.Message = contract.PhaseDrained, "all pods that need another node have left"
	if waiting := d.detaching(r.Emptied.Time); waiting != "" {
		r.Phase, r.Message = contract.PhaseDraining, waiting
	}
}

// emptied is since when no pod is left on the node.
func (d *decision) emptied() contract.Time {
	for _, r := range d.ownReports() {
		if !r.Emptied.IsZero() {
			return r.Emptied
		}
	}
	return contract.At(d.Now)
}

func (t tally) message(phase contract.Phase) string {
	switch phase {
	case contract.PhaseWaiting:
		return fmt.Sprintf("waiting for %s to complete", count(t.Waiting, "pod"))
	case contract.PhaseBlocked:
		return fmt.Sprintf("%s left, blocked by %s", count(t.Left, "pod"), why(t.reasons))
	}
	if len(t.blockedBy) > 0 {
		return fmt.Sprintf("%s left, some blocked by %s", count(t.Left, "pod"), why(t.reasons))
	}
	return count(t.Left, "pod") + " left"
}

// overstay says which pods are there beyond their time to end.
func overstay(pods []string) string {
	its := map[bool]string{true: "its", false: "their"}[len(pods) == 1]
	return fmt.Sprintf("%s still terminating long after %s grace period: %s", count(len(pods), "pod"), its, why(pods))
}

// why lists the first reasons.
func why(reasons []string) string {
	var shown []string
	for _, reason := range reasons[:min(len(reasons), mostReasons)] {
		shown = append(shown, contract.Shorten(reason, mostReason))
	}
	text := strings.Join(shown, "; ")
	if more := len(reasons) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// write completes next: with what the Node shall be, if it is not so yet and
// the last write is long enough ago, and with when to decide again.
func (d *decision) write(next *Next) {
	defer func() { next.Wake = d.wake }()
	if next.Report != nil {
		d.putReport(next.Report)
	}
	if sameState(d.want, *d.Node) {
		return
	}
	if !d.Written.IsZero() && !d.turnsDrained(next.Report) && !d.due(d.Written.Add(writeEvery)) {
		return
	}
	if next.Report != nil && len(d.events) > 0 { // they are recorded now: what lists them goes along
		d.want.Annotations[contract.AnnotationDrainReport] = next.Report.String()
	}
	next.Node, next.Events = &d.want, d.events
	if next.Report != nil && next.Report.Phase.Open() {
		d.due(d.Now.Add(d.renewsAfter(*next.Report)))
	}
}

// turnsDrained reports whether r is the first to say that the node is drained, after one that said that pods
// are left. Where pods come and go, every second report is. A node that had none has its second, in
// which pods arrive that were bound while it was closed.
func (d *decision) turnsDrained(r *contract.Report) bool {
	return r != nil && r.Phase == contract.PhaseDrained && d.old != nil && d.old.Left > 0
}

// putReport puts the report on want, but leaves the one that is there if that
// says the same, or nearly so, and is fresh enough.
func (d *decision) putReport(r *contract.Report) {
	r.Renewed, r.Crowded = contract.At(d.Now), d.Crowded && r.Phase.Open()
	if d.old != nil && !d.stale(*r) {
		d.want.Annotations[contract.AnnotationDrainReport] = d.Node.Annotations[contract.AnnotationDrainReport]
		return
	}
	d.want.Annotations[contract.AnnotationDrainReport] = r.String()
}

// stale reports whether the report on the Node must be written anew: at once if there is
// news or it is misdated, and now and then while the drain is open. That fewer pods are
// left is no news, nor that others stay beyond their time: where a loaded server's watch is
// late, all seem to. Both come with the next renewal, and leave the API server to evictions
// until then; so does the first count, which comes soon after the drain has begun. Nor is news what
// comes to and goes from a node that waits for its permit, nor that a budget refuses the same in other
// numbers.
func (d *decision) stale(r contract.Report) bool {
	if d.misdated {
		return true
	}
	old, open := d.old, r.Phase.Open()
	firstCount := !old.Counted() && (d.pause.none() || old.Message == d.pause.message)
	fewer := open && r.Left > 0 && (old.Left > r.Left || firstCount)
	waits := r.Wants != "" && old.Wants == r.Wants && old.Phase == r.Phase
	overdue := open && r.Wants == "" && (fewer || old.Left == r.Left) && !slices.Equal(old.Overdue, r.Overdue)
	words := open && d.bad == nil && len(r.BlockedBy) > 0 && old.Phase == r.Phase && old.Left == r.Left && slices.Equal(old.BlockedBy, r.BlockedBy)
	r.Renewed, r.Crowded = old.Renewed, old.Crowded
	if fewer || waits || overdue || words {
		r.Left, r.Message = old.Left, old.Message
	}
	if overdue {
		r.Overdue = old.Overdue
		if slices.Equal(toldOfOthers(old.Told), toldOfOthers(r.Told)) {
			r.Told = old.Told
		}
	}
	if r.String() != d.Node.Annotations[contract.AnnotationDrainReport] {
		return true
	}
	return open && d.due(old.Renewed.Add(d.renewsAfter(*old)))
}

// toldOfOthers are the recorded Events but those about pods beyond their time.
func toldOfOthers(told []string) []string {
	return slices.DeleteFunc(slices.Clone(told), func(word string) bool { return strings.HasPrefix(word, contract.EventPodOverdue+" ") })
}

// renewsAfter is how old an open report becomes. That of an open node whose scaler has
// written that it is not its turn is not read for now. One that does not say yet how many pods there are
// does so when the evictions of most nodes are through. Where the API server has no time, one that does
// not say that or the number is renewed long enough before its agent counts as gone for tries that are
// refused.
func (d *decision) renewsAfter(r contract.Report) time.Duration {
	switch {
	case d.pause.open && d.isToldToWait():
		return contract.WaitReportEvery
	case d.Crowded && r.Crowded && r.Counted():
		return contract.CrowdedReportEvery
	case d.Crowded:
		return contract.UnresponsiveAfter / 2
	case !r.Counted():
		return contract.ReportEvery / 2
	}
	return contract.ReportEvery
}

// sameState compares what the agent writes of a Node. When a taint was added
// is left out: the API server fills it in for some.
func sameState(a, b fleet.Node) bool {
	return a.Unschedulable == b.Unschedulable &&
		maps.Equal(a.Annotations, b.Annotations) &&
		maps.Equal(a.Labels, b.Labels) &&
		slices.EqualFunc(a.Taints, b.Taints, func(x, y corev1.Taint) bool {
			return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
		})
}
