package drain_test

import (
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// timeToAsk is how long before a deadline the world must have been left alone so that every
// pod has been asked by then: the Node is closed first, and while pods are left is written once a
// second at most; a pod that could not be asked before is asked again within a dozen seconds.
const timeToAsk = 15 * time.Second

// unasked is law 21. It speaks from below, where other laws bound what is done: before a deadline that
// somebody has announced, every pod that has to leave was asked to. It names those that were
// not, as a deadline comes between now and then, and nothing but the drain itself has
// happened since. That holds where
//
//   - the agent knows the notice and sees the pods, and the API server serves it;
//   - the notice is one to drain for, it was not done with before, and its drain begins soon
//     enough (drain@LEAD);
//
// and but for pods
//
//   - of DaemonSets, static ones, and those that have ended or are being deleted;
//   - behind a budget that has refused: one at a time asks it;
//   - that came back: they are asked at the last call, if they were there, and once for each
//     notice, however often its deadline is put off;
//   - that the agent saw so late that there was no time to ask;
//   - of a step that keeps no time for itself, while there are pods of earlier ones.
func (w *world) unasked(since, then time.Time) (out []string) {
	known := w.podsKnown && (w.heard || !w.silent)
	if w.node == nil || w.policy.DryRun || !known || w.down || w.refuseWrites {
		return nil
	}
	for _, n := range w.announced() {
		deadline := contract.At(n.Deadline).Time
		if !deadline.After(w.now) || deadline.After(then) || deadline.Sub(since) < timeToAsk || !w.drainsFor(n) {
			continue
		}
		for uid, p := range w.visible() {
			news := deadline.Sub(w.watch.since[uid]) < timeToAsk
			if !news && !w.asked[uid] && drainable.MustBePlacedAgain(&p) && !w.missedCall(p, deadline) && !w.refused(p) && w.hasTurn(p) {
				out = append(out, fmt.Sprintf("law 21: nobody has asked pod %s to leave before %s, which %s announces", p.Key(), clock(deadline), n.ID))
			}
		}
	}
	slices.Sort(out)
	return out
}

// announced is what the metadata and the request say. A spot interruption has the earliest time
// that was ever given.
func (w *world) announced() []notice.Notice {
	var before []notice.Notice
	noted, _ := contract.ParseNoticed(w.node.Annotations[contract.AnnotationNotices])
	for _, n := range noted {
		cause, _ := notice.OfMetadata(n.ID)
		before = append(before, notice.Notice{ID: n.ID, Cause: cause, Kind: cause.Kind(), Deadline: n.Deadline.Time})
	}
	all := notice.Interruptions(w.notices, before)
	if request, err := notice.ParseRequest(w.node.Annotations[contract.AnnotationDrainRequest]); err == nil {
		all = append(all, request)
	}
	return notice.Standing(all...)
}

// drainsFor reports whether a notice is one to drain for, soon enough.
func (w *world) drainsFor(n notice.Notice) bool {
	response := w.policy.Responses.To(n)
	if w.node.Annotations[contract.AnnotationTerminating] == n.ID {
		return true
	}
	noted, _ := w.noted(n.ID)
	rebooted := w.fulfilled[n.ID] || noted.Boot != "" && noted.Boot != w.node.BootID
	list, _ := contract.ParseServed(w.node.Annotations[contract.AnnotationServed])
	served, known := list.Find(n.ID)
	report, _ := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	done := known && !served.Withdrawn && !report.AnswersTo(n.ID)
	return response.Do == notice.Drain && (response.Lead == 0 || response.Lead >= timeToAsk) && !rebooted && !done
}

// missedCall reports whether a pod came back after the last call before a deadline, or did
// before.
func (w *world) missedCall(p fleet.Pod, deadline time.Time) bool {
	if !w.returned[p.UID] {
		return false
	}
	const lastCall, slack = 2 * time.Minute, 5 * time.Second
	needs := w.policy.Steps.Reserve(0) + drainable.GraceOf(&p) + 10*time.Second
	report, _ := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport])
	earlier := func(c contract.LastCall) bool { return c.Deadline.Before(deadline) }
	return p.Created.Time().After(deadline.Add(-max(lastCall, needs)-slack)) || slices.ContainsFunc(report.LastCalls, earlier)
}

// refused reports whether a budget of a pod has refused.
func (w *world) refused(p fleet.Pod) bool {
	for key, b := range w.budgets {
		if _, refused := w.tries.Budgets[key]; refused && b.app == p.Labels["app"] {
			return true
		}
	}
	return false
}

// hasTurn reports whether time is kept for a pod's step, or its turn comes first.
func (w *world) hasTurn(p fleet.Pod) bool {
	steps := w.policy.Steps
	if steps.Reserve(steps.Of(&p)) > 0 {
		return true
	}
	for _, other := range w.visible() {
		if steps.TurnOf(&other) < steps.TurnOf(&p) {
			return false
		}
	}
	return true
}
