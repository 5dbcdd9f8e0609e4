package drain_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// broken says which laws an answer breaks, for the world in which it was given.
func broken(w *world, next drain.Next) []string {
	var out []string
	policy := w.policy
	breaks := func(law string, details ...any) { out = append(out, law+" "+fmt.Sprint(details...)) }
	view := w.view()

	turned := view
	turned.Pods, turned.Notices = slices.Clone(view.Pods), slices.Clone(view.Notices)
	slices.Reverse(turned.Pods)
	slices.Reverse(turned.Notices)
	if other := drain.Decide(turned, policy); !reflect.DeepEqual(next, other) {
		breaks("another order gives another answer:", cmp.Diff(next, other))
	}
	if now := w.view(); !reflect.DeepEqual(view, now) {
		breaks("deciding changed the view:", cmp.Diff(view, now))
	}

	out = append(out, brokenSteps(view, next)...)
	out = append(out, brokenRules(w, view, next)...)
	out = append(out, brokenPermit(w, view, next)...)
	out = append(out, brokenTurn(w, view, next)...)
	out = append(out, brokenBalancers(view, next, policy)...)
	out = append(out, brokenMemory(view, next)...)
	out = append(out, brokenRenewal(view, next)...)
	out = append(out, brokenPatience(w, view, next)...)
	out = append(out, brokenInterruption(view, next)...)
	out = append(out, brokenNode(view, next)...)
	out = append(out, w.told.broken(view.Node, next)...)
	out = append(out, brokenFields(view, next)...)
	out = append(out, brokenWriting(next)...)

	out = append(out, brokenDryRun(view, policy)...)

	// Carry it out, but without an answer to any step yet.
	after := view
	after.Tries = after.Tries.Send(view.Now, next.Steps...)
	if next.Node != nil {
		after.Node, after.Written, after.Unwritten, after.Unlisted = next.Node, view.Now, nil, ""
	}
	again := drain.Decide(after, policy)
	for _, s := range again.Steps {
		if slices.ContainsFunc(next.Steps, func(before drain.Evict) bool { return before.UID == s.UID }) {
			breaks("a step is repeated:", s)
		}
	}
	if next.Node != nil && again.Node != nil {
		breaks("a write is repeated:", drain.Changes(*next.Node, *again.Node))
	}
	return append(out, brokenDates(view, next, policy)...)
}

// turnsDrained reports whether r, which may be nil, says that a node is drained of which pods were reported
// to be left.
func turnsDrained(node *fleet.Node, r *contract.Report) bool {
	old, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
	return err == nil && old.Left > 0 && r != nil && r.Phase == contract.PhaseDrained
}

// brokenRenewal: an open report is renewed as often as it promises, and where the API server has no
// time, so long before its agent counts as gone that there are some tries.
func brokenRenewal(view drain.View, next drain.Next) (out []string) {
	if next.Report == nil || !next.Report.Phase.Open() || next.Node != nil || next.Report.Wants != "" {
		return nil
	}
	report, err := contract.ParseReport(view.Node.Annotations[contract.AnnotationDrainReport])
	if err != nil {
		return nil
	}
	due := report.Renewed.Add(contract.ReportEvery)
	switch {
	case view.Crowded && report.Crowded:
		due = report.Renewed.Add(contract.CrowdedUnresponsiveAfter - 20*time.Second)
	case view.Crowded:
		due = report.Renewed.Add(contract.UnresponsiveAfter - 15*time.Second)
	}
	if next.Wake.IsZero() || next.Wake.After(due) && next.Wake.After(view.Written.Add(time.Second)) {
		out = append(out, fmt.Sprintf("a report of %s is not renewed before %s", report.Renewed, next.Wake))
	}
	return out
}

// brokenDates: nothing that is to come has begun; and what has begun began then, also
// where it cannot be written down.
func brokenDates(view drain.View, next drain.Next, policy drain.Policy) (out []string) {
	if next.Node == nil || next.Report == nil {
		return nil
	}
	r := next.Report
	for _, at := range []contract.Time{r.Since, r.Renewed, r.Excluded, r.Emptied} {
		if at.After(view.Now) {
			out = append(out, fmt.Sprintf("a report is of what is to come: %s", r))
		}
	}
	unwritten := view
	unwritten.Now, unwritten.Unwritten = view.Now.Add(1500*time.Millisecond), r
	later := drain.Decide(unwritten, policy).Report
	if later == nil || !slices.ContainsFunc(later.Answers, r.AnswersTo) {
		return out
	}
	slides := func(what string, before, after contract.Time) {
		if !before.IsZero() && !after.IsZero() && !before.Equal(after) {
			out = append(out, fmt.Sprintf("%s slides from %s to %s", what, before, after))
		}
	}
	slides("the beginning", r.Since, later.Since)
	slides("the end of the last pod", r.Emptied, later.Emptied)
	if _, excluded := view.Node.Labels[contract.LabelExcludeFromLoadBalancers]; excluded {
		slides("what load balancers know", r.Excluded, later.Excluded)
	}
	return out
}

// brokenWriting: what is written on the Node reads as it was written, and what stands there
// that cannot be read is written anew, or removed.
func brokenWriting(next drain.Next) (out []string) {
	if next.Node == nil {
		return nil
	}
	size := 0
	for key, value := range next.Node.Annotations {
		var again fmt.Stringer
		var err error
		switch key {
		case contract.AnnotationDrainReport:
			again, err = contract.ParseReport(value)
		case contract.AnnotationNotices:
			again, err = contract.ParseNoticed(value)
		case contract.AnnotationServed:
			again, err = contract.ParseServed(value)
		case contract.AnnotationCordonedBy:
			again, err = contract.ParseCordon(value)
		default:
			continue
		}
		if size += len(value); err != nil || again.String() != value {
			out = append(out, fmt.Sprintf("written is %s=%s, which reads as %s, error %v", key, value, again, err))
		}
	}
	if size > heaviest {
		out = append(out, fmt.Sprintf("%d bytes of annotations", size))
	}
	return out
}

func brokenSteps(view drain.View, next drain.Next) (out []string) {
	for _, s := range next.Steps {
		at := slices.IndexFunc(view.Pods, func(p fleet.Pod) bool { return p.UID == s.UID })
		switch {
		case at < 0:
			out = append(out, "a step for a pod that is not there: "+s.String())
		case !mayLeave(&view.Pods[at]):
			out = append(out, "a step for a pod that stays, or leaves already: "+s.String())
		case s.Grace != nil && *s.Grace < 1:
			out = append(out, "a pod has no time to end: "+s.String())
		case s.Grace != nil && !goesSoon(view, view.Pods[at]):
			out = append(out, "a pod gets less time than it asks for, and nobody has said that the machine goes so soon: "+s.String())
		}
	}
	return append(out, crowded(view, next)...)
}

// noticedOf are the notices that are written down, and those that are to be.
func noticedOf(view drain.View) contract.NoticedList {
	list, _ := contract.ParseNoticed(view.Node.Annotations[contract.AnnotationNotices])
	unlisted, _ := contract.ParseNoticed(view.Unlisted)
	for _, n := range unlisted {
		if _, listed := list.Find(n.ID); !listed {
			list = append(list, n)
		}
	}
	return list
}

// goesSoon: somebody has named a moment that is to come, and soon enough for this
// pod and what is kept for others.
func goesSoon(view drain.View, p fleet.Pod) bool {
	named := slices.Clone(view.Notices)
	if request, err := notice.ParseRequest(view.Node.Annotations[contract.AnnotationDrainRequest]); err == nil {
		named = append(named, request)
	}
	list := noticedOf(view)
	for _, n := range list {
		named = append(named, notice.Notice{Deadline: n.Deadline.Time})
	}
	if _, marked := view.Node.Annotations[contract.AnnotationTerminating]; marked {
		report, _ := contract.ParseReport(view.Node.Annotations[contract.AnnotationDrainReport])
		named = append(named, notice.Notice{Deadline: report.Deadline.Time})
	}
	grace := 2*drainable.GraceOf(&p) + 5*time.Second
	return slices.ContainsFunc(named, func(n notice.Notice) bool {
		return n.Deadline.After(view.Now) && n.Deadline.Sub(view.Now) <= grace
	})
}

// mayLeave: pods that need another place, and those of DaemonSets that do not
// tolerate the taint.
func mayLeave(p *fleet.Pod) bool {
	daemon := drainable.IsDaemonSet(p) && len(p.Spec.Tolerations) == 0 && p.Deleted.IsZero() && !p.Ended()
	return drainable.MustBePlacedAgain(p) || daemon
}

// firstDeadline is the first moment that anything names for which the drain is, be it past: a machine that is
// there still may go at any moment.
func firstDeadline(view drain.View, r contract.Report) time.Time {
	first := r.Deadline.Time
	noted := noticedOf(view)
	for _, n := range noted {
		if r.AnswersTo(n.ID) {
			first = notice.Earliest(first, n.Deadline.Time)
		}
	}
	given := view.Notices
	if request, err := notice.ParseRequest(view.Node.Annotations[contract.AnnotationDrainRequest]); err == nil {
		given = append(slices.Clone(given), request)
	}
	for _, n := range given {
		if r.AnswersTo(n.ID) || n.Kind == contract.KindSpot { // two ids of that are one drain
			first = notice.Earliest(first, n.Deadline)
		}
	}
	return first
}

// brokenRules: what an answer may not ask for, given what stands and what it
// reports.
func brokenRules(w *world, view drain.View, next drain.Next) (out []string) {
	if next.Report != nil {
		for id := range w.fulfilled {
			if next.Report.AnswersTo(id) && view.Node.Annotations[contract.AnnotationTerminating] != id {
				out = append(out, "a drain for what a reboot has fulfilled: "+id)
			}
		}
		if next.Report.Wants != "" && (len(next.Steps) > 0 || next.Report.Phase != contract.PhaseWaiting) {
			out = append(out, "a drain goes on without its permit")
		}
	}
	if len(next.Steps) == 0 {
		return out
	}
	_, tainted := contract.Draining(view.Node.Taints)
	if closed := tainted && view.Node.Unschedulable; !closed && view.Unwritable.IsZero() {
		out = append(out, "an eviction from a node that is open to new pods")
	}
	if (!view.Heard || len(view.Unclear) > 0) && !slices.ContainsFunc(next.Report.Answers, func(id string) bool { return stillStands(view, id) }) {
		out = append(out, "an eviction for what an earlier agent heard, and whose moment has passed")
	}
	deadline := firstDeadline(view, *next.Report)
	for _, s := range next.Steps {
		pod := w.pods[s.UID]
		safe := contract.SafeToEvictOf(pod.Annotations)
		if patient := isPatient(view, next.Report); patient && (safe == contract.SafeNo || safe == contract.SafeOnCompletion) {
			out = append(out, "a pod is evicted against its word, and there is time: "+s.String())
		}
		if s.Delete && (len(w.lastChances) == 0 || deadline.IsZero() || deadline.Sub(view.Now) > w.policy.LastChanceTime) {
			out = append(out, "a pod is deleted without need: "+s.String())
		}
		if s.Delete && !slices.ContainsFunc(next.Report.Answers, w.deletes) {
			out = append(out, "a pod is deleted, and nobody asked for that: "+s.String())
		}
		if s.Delete && view.Tries.Pods[s.UID].Count == 0 {
			out = append(out, "a pod is deleted that was not asked to leave: "+s.String())
		}
		if s.Delete && s.Override() == "" {
			out = append(out, "a deletion without an Event: "+s.String())
		}
	}
	return out
}

// stillStands: somebody says so now, or an earlier agent heard of it and its moment is
// still to come, or not known, or the machine has not been down since that was so.
func stillStands(view drain.View, id string) bool {
	request, err := notice.ParseRequest(view.Node.Annotations[contract.AnnotationDrainRequest])
	if err == nil && request.ID == id || view.Node.Annotations[contract.AnnotationTerminating] == id || isGiven(view, id) {
		return true
	}
	list := noticedOf(view)
	noted, ok := list.Find(id)
	stayedUp := noted.Boot == view.Node.BootID && !strings.HasPrefix(id, string(notice.SpotHibernate))
	return ok && (noted.Deadline.IsZero() || noted.Deadline.After(view.Now) || stayedUp)
}

// isGiven: the metadata say so, whatever time they give a spot interruption now.
func isGiven(view drain.View, id string) bool {
	cause, _ := notice.OfMetadata(id)
	return slices.ContainsFunc(view.Notices, func(n notice.Notice) bool {
		return n.ID == id || cause.Kind() == contract.KindSpot && n.Cause == cause
	})
}

// brokenMemory: no boot opens a node whose instance is to be stopped or retired, and whose
// moment has come, before the metadata report that it is not.
func brokenMemory(view drain.View, next drain.Next) (out []string) {
	if view.Heard || next.Node == nil || view.Node.BootID == "" {
		return nil
	}
	old, _ := contract.ParseReport(view.Node.Annotations[contract.AnnotationDrainReport])
	list := noticedOf(view)
	for _, n := range list {
		cause, _ := notice.OfMetadata(n.ID)
		goes := cause == notice.InstanceStop || cause == notice.InstanceRetirement
		waits := next.Report != nil && next.Report.Wants != ""
		if _, closed := contract.Draining(next.Node.Taints); goes && old.AnswersTo(n.ID) && !closed && !waits {
			out = append(out, "nobody has said that it is over, and the node is open: "+n.ID)
		}
	}
	return out
}

// brokenInterruption: a spot interruption is over by its time or a boot and not for want of
// an answer, and stays what it is whatever time the metadata give it.
func brokenInterruption(view drain.View, next drain.Next) (out []string) {
	if next.Node == nil {
		return nil
	}
	old, _ := contract.ParseReport(view.Node.Annotations[contract.AnnotationDrainReport])
	before := noticedOf(view)
	now, _ := contract.ParseNoticed(next.Node.Annotations[contract.AnnotationNotices])
	for _, n := range before {
		cause, _ := notice.OfMetadata(n.ID)
		if cause.Kind() != contract.KindSpot || n.At.IsZero() || n.At.After(view.Now) {
			continue
		}
		if n.Boot != view.Node.BootID && cause != notice.SpotTerminate && !n.Deadline.After(view.Now) {
			continue // it was stopped, and is back
		}
		stands := isGiven(view, n.ID) || view.Now.Before(notice.Earliest(n.Deadline.Time, n.At.Add(10*time.Minute)).Add(2*time.Minute))
		if _, listed := now.Find(n.ID); stands && !listed {
			out = append(out, "a spot interruption is forgotten, and not over: "+n.ID)
		}
		if stands && old.AnswersTo(n.ID) && (next.Report == nil || !next.Report.AnswersTo(n.ID)) {
			out = append(out, "the drain for a spot interruption is given up, or becomes another one: "+n.ID)
		}
	}
	return out
}

// brokenPermit: a drain of which every notice wants a permit starts with one, when
// its time is up, before its deadline, or on a node that is empty.
func brokenPermit(w *world, view drain.View, next drain.Next) (out []string) {
	if next.Report == nil {
		return nil
	}
	starts := slices.ContainsFunc(next.Events, func(e drain.Event) bool { return e.Reason == contract.EventDrainStarted })
	old, _ := contract.ParseReport(view.Node.Annotations[contract.AnnotationDrainReport])
	begun := slices.Contains(old.Told, contract.EventDrainStarted) || ofOlderAgent(old)
	if !starts && len(next.Steps) == 0 || begun || next.Report.Emptied != (contract.Time{}) {
		return nil
	}
	r := next.Report
	_, terminating := view.Node.Annotations[contract.AnnotationTerminating]
	noPermit := func(id string) bool { return !w.wantsPermit(id) }
	late := waited(w, view, r)
	longest := 200 * time.Second
	for _, p := range view.Pods {
		longest = max(longest, min(drainable.GraceOf(&p), 2*time.Hour))
	}
	short := !r.Deadline.IsZero() && r.Deadline.Sub(view.Now) <= time.Minute+longest+w.policy.Steps.Reserve(0)
	given := r.AnswersTo(view.Node.Annotations[contract.AnnotationDrainPermit])
	if !terminating && !late && !short && !given && !slices.ContainsFunc(r.Answers, noPermit) {
		out = append(out, fmt.Sprintf("a drain starts without its permit: %s", r))
	}
	return out
}

// waited reports whether the scaler has been silent for as long as a drain waits for it, by
// when its word arrived and not by its date, or that the drain has waited for as long as
// it may in all.
func waited(w *world, view drain.View, r *contract.Report) bool {
	silent := view.Now.Sub(r.Since.Time) >= w.policy.PermitWait
	word, err := contract.ParseNotYet(view.Node.Annotations[contract.AnnotationDrainNotYet])
	if err == nil && r.AnswersTo(word.ID) {
		silent = silent && view.Now.Sub(view.NotYet) >= w.policy.PermitWait
	}
	return silent || view.Now.Sub(r.Since.Time) >= w.policy.MaxPermitWait
}

// brokenTurn, which is of law 17: a node takes pods until its turn or until its deadline is
// near, and none waits longer than it may.
func brokenTurn(w *world, view drain.View, next drain.Next) (out []string) {
	if next.Report == nil || next.Report.Wants == "" {
		return nil
	}
	r := next.Report
	if waited(w, view, r) {
		out = append(out, fmt.Sprintf("a drain waits though it need not any more: %s", r))
	}
	if next.Node == nil {
		return out
	}
	request, err := notice.ParseRequest(view.Node.Annotations[contract.AnnotationDrainRequest])
	near := !r.Deadline.IsZero() && r.Deadline.Sub(view.Now) <= 10*time.Minute+time.Minute+200*time.Second+w.policy.Steps.Reserve(0)
	if near || err == nil && r.AnswersTo(request.ID) {
		return out
	}
	mark, _ := contract.ParseCordon(next.Node.Annotations[contract.AnnotationCordonedBy])
	_, tainted := contract.Draining(next.Node.Taints)
	if tainted || next.Node.Unschedulable && r.AnswersTo(mark.Notice) {
		out = append(out, fmt.Sprintf("the node is closed before its turn: %s", r))
	}
	return out
}

// ofOlderAgent reports whether the report is of a drain under way, by an agent that did not
// list the Events that it wrote.
func ofOlderAgent(r contract.Report) bool {
	return len(r.Answers) > 0 && len(r.Told) == 0 && (r.Phase != contract.PhaseWaiting || r.Wants == "")
}

// deletes reports whether people chose to delete pods at the last chance before what a
// notice announces.
func (w *world) deletes(id string) bool { return w.response(id).LastChance == notice.Delete }

// wantsPermit reports whether the policy lets a notice wait for one.
func (w *world) wantsPermit(id string) bool { return w.response(id).Permit }

func (w *world) response(id string) notice.Response {
	if request, err := notice.ParseRequest(w.node.Annotations[contract.AnnotationDrainRequest]); err == nil && request.ID == id {
		return w.policy.Responses.To(request)
	}
	cause, _ := notice.OfMetadata(id)
	return w.policy.Responses[cause]
}

// isPatient: what is left is more than half an hour, and more than half of the whole
// time, or nothing announces that the instance goes.
func isPatient(view drain.View, r *contract.Report) bool {
	deadline := firstDeadline(view, *r)
	switch {
	case r.Kind == contract.KindSpot:
		return false
	case r.Kind == contract.KindASG: // its deadline may be a guess, which counts as none
		return !slices.ContainsFunc(r.Answers, func(id string) bool { return !awaitsDate(view, id) })
	case deadline.IsZero():
		return true
	}
	return deadline.Sub(view.Now) > max(2*time.Minute, min(30*time.Minute, deadline.Sub(r.Since.Time)/2))
}

// awaitsDate: the metadata alone say that Auto Scaling takes the instance, and have said
// so for less than half a minute.
func awaitsDate(view drain.View, id string) bool {
	cause, _ := notice.OfMetadata(id)
	if request, err := notice.ParseRequest(view.Node.Annotations[contract.AnnotationDrainRequest]); err == nil && request.ID == id {
		return false
	}
	list := noticedOf(view)
	noted, listed := list.Find(id)
	old, _ := contract.ParseReport(view.Node.Annotations[contract.AnnotationDrainReport])
	known := view.Now.Sub(noted.At.Time)
	fresh := known >= 0 && known < 30*time.Second && noted.Deadline.IsZero()
	if !listed {
		fresh = !old.AnswersTo(id) && view.Unwritten == nil
	}
	at := slices.IndexFunc(view.Notices, func(n notice.Notice) bool { return n.ID == id })
	fresh = fresh && (at >= 0 && view.Notices[at].Deadline.IsZero() || at < 0 && listed)
	return (cause == notice.ASGTerminate || cause == notice.ASGWarm) && fresh
}

// told are the Events that were written of one interruption.
type told struct {
	since   time.Time
	kind    contract.Kind
	answers []string
	reasons map[string]bool
}

// of is what was recorded before of the interruption that the report on a node is
// about.
func (t told) of(node *fleet.Node) told {
	report, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
	now := told{since: report.Since.Time, kind: report.Kind, answers: report.Answers}
	if err == nil && report.Since.Time.Equal(t.since) && report.Kind == t.kind && slices.ContainsFunc(t.answers, report.AnswersTo) {
		now.reasons = t.reasons
	}
	return now
}

func (t told) after(was *fleet.Node, next drain.Next) told {
	t = t.of(next.Node)
	t.reasons = maps.Clone(t.reasons)
	if t.reasons == nil {
		t.reasons = map[string]bool{}
	}
	for _, e := range next.Events {
		t.reasons[news(e)] = true
	}
	return t
}

// news is what an Event is about: what blocks is recorded for each keeper.
func news(e drain.Event) string {
	if e.Reason == contract.EventPodOverdue {
		return e.Reason + " " + e.Message
	}
	if e.Reason != contract.EventDrainBlocked {
		return e.Reason
	}
	_, keepers, _ := strings.Cut(e.Message, "blocked by ")
	return e.Reason + " " + keepers
}

// broken: of each kind of news there is one Event for each interruption, and one
// for each notice.
func (t told) broken(was *fleet.Node, next drain.Next) (out []string) {
	if next.Node == nil {
		return nil
	}
	before, now := t.of(next.Node), map[string]int{}
	for _, e := range next.Events {
		now[e.Reason]++
		if e.Reason != contract.EventNoticed && now[e.Reason] > 1 {
			out = append(out, "an Event is told twice at once: "+e.Reason)
		}
		if (strings.HasPrefix(e.Reason, "Drain") || e.Reason == contract.EventPodOverdue) && e.Reason != contract.EventDrainUndone && before.reasons[news(e)] {
			out = append(out, "an Event is told again: "+e.Reason+" "+e.Message)
		}
	}
	old, _ := contract.ParseNoticed(was.Annotations[contract.AnnotationNotices])
	list, _ := contract.ParseNoticed(next.Node.Annotations[contract.AnnotationNotices])
	fresh := 0
	for _, n := range list {
		if _, known := old.Find(n.ID); !known {
			fresh++
		}
	}
	if now[contract.EventNoticed] > fresh {
		out = append(out, "a notice is told of again")
	}
	return out
}

// brokenDryRun: a dry run writes one annotation, once, and does nothing else. It says what
// Decide does in earnest, and its end takes that away.
func brokenDryRun(view drain.View, policy drain.Policy) (out []string) {
	if view.Node == nil {
		return nil
	}
	dry := policy
	dry.DryRun, policy.DryRun = true, false
	view.Written = time.Time{}
	next := drain.Decide(view, dry)
	out = append(out, brokenRehearsal(view, policy, dry)...)
	if len(next.Steps)+len(next.Events)+len(next.WatchBudgets) > 0 || next.Report != nil {
		out = append(out, fmt.Sprintf("a dry run does something: %v", next))
	}
	if next.Node == nil {
		return out
	}
	said := next.Node.Annotations[contract.AnnotationDryRun]
	other := *next.Node
	other.Annotations = maps.Clone(view.Node.Annotations)
	delete(other.Annotations, contract.AnnotationDryRun)
	if said != "" {
		other.Annotations[contract.AnnotationDryRun] = said
	}
	if diff := cmp.Diff(*next.Node, other); diff != "" || !reflect.DeepEqual(withoutAnnotations(*next.Node), withoutAnnotations(*view.Node)) {
		out = append(out, fmt.Sprintf("a dry run writes %q %s", drain.Changes(*view.Node, *next.Node), diff))
	}
	if _, err := contract.ParseDryRun(said); err != nil || len(said) > heaviest {
		out = append(out, fmt.Sprintf("a dry run says %d bytes, error %v", len(said), err))
	}
	// What a drain in earnest has left on the Node may be thought over once or twice.
	again := next
	for tries := 0; again.Node != nil; tries++ {
		if tries == 3 {
			out = append(out, fmt.Sprintf("a dry run is written again and again: %q", drain.Changes(*view.Node, *again.Node)))
			break
		}
		view.Node = again.Node
		again = drain.Decide(view, dry)
	}
	said = view.Node.Annotations[contract.AnnotationDryRun]
	if done := drain.Decide(view, policy); said != "" && (done.Node == nil || done.Node.Annotations[contract.AnnotationDryRun] != "") {
		out = append(out, "a dry run is left on the Node")
	}
	return out
}

func withoutAnnotations(n fleet.Node) fleet.Node {
	n.Annotations = nil
	return n
}

// brokenRehearsal: a dry run that begins now says what is done in earnest, of the Node and,
// when that is closed, of the pods. It keeps nothing of evictions, and nothing comes back to
// a node that is open.
func brokenRehearsal(view drain.View, policy, dry drain.Policy) (out []string) {
	node := *view.Node
	node.Annotations = maps.Clone(node.Annotations)
	delete(node.Annotations, contract.AnnotationDryRun)
	view.Node, view.Tries, view.Unwritable, view.Unwritten, view.Unlisted = &node, drain.Tries{}, time.Time{}, nil, ""
	view.Pods = slices.Clone(view.Pods)
	for i := range view.Pods {
		view.Pods[i].Created = fleet.SecondOf(start.Add(-time.Hour))
	}
	done, rehearsed := drain.Decide(view, policy), drain.Decide(view, dry)
	after, value := node, ""
	if done.Node != nil {
		after = *done.Node
	}
	if rehearsed.Node != nil {
		value = rehearsed.Node.Annotations[contract.AnnotationDryRun]
	}
	said, _ := contract.ParseDryRun(value)
	var would []string
	for _, change := range drain.Changes(node, after) {
		if !strings.Contains(change, "annotation ") {
			would = append(would, change)
		}
	}
	ofPods := slices.DeleteFunc(slices.Clone(said.Would), func(what string) bool { return slices.Contains(would, what) })
	if len(ofPods) > 1 || len(ofPods)+len(would) != len(said.Would) {
		out = append(out, fmt.Sprintf("a dry run would do %q, and in earnest it is %q", said.Would, would))
	}
	report := ""
	if said.Report != nil {
		report = said.Report.String()
	}
	if done.Report != nil && report != after.Annotations[contract.AnnotationDrainReport] || done.Report == nil && report != "" {
		out = append(out, fmt.Sprintf("a dry run would report %s, and in earnest it is %s", report, after.Annotations[contract.AnnotationDrainReport]))
	}
	if is := after.Annotations[contract.AnnotationNotices]; is != node.Annotations[contract.AnnotationNotices] && said.Notices.String() != is {
		out = append(out, fmt.Sprintf("a dry run keeps %q of the notices, and in earnest it is %q", said.Notices, is))
	}
	if is := after.Annotations[contract.AnnotationServed]; is != node.Annotations[contract.AnnotationServed] {
		served, _ := contract.ParseServed(is)
		served = slices.DeleteFunc(served, func(s contract.Served) bool { return s.Withdrawn })
		if said.Served.String() != served.String() {
			out = append(out, fmt.Sprintf("a dry run keeps %q of what is served, and in earnest it is %q", said.Served, served))
		}
	}
	view.Node = &after
	for _, s := range drain.Decide(view, policy).Steps {
		named := slices.ContainsFunc(ofPods, func(what string) bool {
			return strings.Contains(what, s.Namespace+"/"+s.Name) || strings.Contains(what, " more")
		})
		if !named {
			out = append(out, fmt.Sprintf("a dry run would %q, and in earnest there is %s", ofPods, s))
		}
	}
	return out
}

// brokenFields: an Event about a notice says which, and of which kind, and others do not.
func brokenFields(view drain.View, next drain.Next) (out []string) {
	for _, e := range next.Events {
		id, kind, source := e.Notice[contract.AnnotationEventID], e.Notice[contract.AnnotationEventKind], e.Notice[contract.AnnotationEventSource]
		switch e.Reason {
		case contract.EventNoticed:
			list, _ := contract.ParseNoticed(next.Node.Annotations[contract.AnnotationNotices])
			noted, listed := list.Find(id)
			if deadline := e.Notice[contract.AnnotationEventDeadline]; !listed || kind != string(noted.Kind) || (deadline == "") != noted.Deadline.IsZero() || source == "" {
				out = append(out, fmt.Sprintf("an Event says %v of its notice %v", e.Notice, noted))
			}
		case contract.EventDrainStarted, contract.EventDrainWaiting:
			r := next.Report
			if !r.AnswersTo(id) || kind != string(r.Kind) || source == "" || e.Notice[contract.AnnotationEventInstance] != view.Node.InstanceID() {
				out = append(out, fmt.Sprintf("an Event says %v of the drain %s", e.Notice, r))
			}
		default:
			if e.Notice != nil {
				out = append(out, fmt.Sprintf("an Event says %v of no notice", e.Notice))
			}
		}
	}
	return out
}

// crowded names budgets, or owners where the budgets are not known, of whose
// pods more than one is asked for at once.
func crowded(view drain.View, next drain.Next) (out []string) {
	asking := map[string]int{}
	for i := range view.Pods {
		p := &view.Pods[i]
		due := slices.ContainsFunc(next.Steps, func(s drain.Evict) bool { return s.UID == p.UID && !s.Delete })
		sent := view.Tries.Pods[p.UID]
		if !due && (!sent.Sent || sent.Deleted) {
			continue
		}
		for _, together := range guardedTogether(view, p) {
			if asking[together]++; asking[together] == 2 {
				out = append(out, "two pods at once are asked for of "+together)
			}
		}
	}
	return out
}

func guardedTogether(view drain.View, p *fleet.Pod) []string {
	if view.Budgets != nil {
		return view.Budgets.Guarding(p)
	}
	if p.Owner == nil {
		return nil
	}
	return []string{p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name}
}

// brokenBalancers: no node leaves them while it waits for its permit, and kube-proxy is
// recorded of drains only, by who asked for it.
func brokenBalancers(view drain.View, next drain.Next, policy drain.Policy) (out []string) {
	if next.Report == nil || next.Node == nil {
		return nil
	}
	_, was := view.Node.Annotations[contract.AnnotationExcluded]
	if _, is := next.Node.Annotations[contract.AnnotationExcluded]; is && !was && next.Report.Wants != "" {
		out = append(out, "out of the load balancers before its permit")
	}
	told := slices.ContainsFunc(next.Node.Taints, contract.IsKubeProxyTaint)
	if _, draining := contract.Draining(next.Node.Taints); told && !draining {
		out = append(out, "kube-proxy is told of a node that does not drain")
	}
	if before := slices.ContainsFunc(view.Node.Taints, contract.IsKubeProxyTaint); told && !before && (!policy.KubeProxyTaint || next.Report.Wants != "") {
		out = append(out, "kube-proxy is told before the permit, or where nobody wants that")
	}
	return out
}

func brokenNode(view drain.View, next drain.Next) (out []string) {
	if next.Node == nil {
		if len(next.Events) > 0 {
			out = append(out, "an event without a change")
		}
		if view.Node != nil && turnsDrained(view.Node, next.Report) {
			out = append(out, "that the node is drained is not written")
		}
		return out
	}
	was, want := *view.Node, *next.Node
	_, ours := was.Annotations[contract.AnnotationCordonedBy]
	if was.Unschedulable && !ours {
		if !want.Unschedulable {
			out = append(out, "a human's cordon is undone")
		}
		if _, marked := want.Annotations[contract.AnnotationCordonedBy]; marked {
			out = append(out, "a human's cordon is marked as ours")
		}
	}
	if _, terminating := was.Annotations[contract.AnnotationTerminating]; terminating && was.Unschedulable && !want.Unschedulable {
		out = append(out, "uncordoned past the point of no return")
	}
	if !view.Written.IsZero() && view.Now.Sub(view.Written).Seconds() < 1 && !turnsDrained(view.Node, next.Report) {
		out = append(out, "two writes within a second")
	}
	for _, t := range was.Taints {
		if t.Key != contract.TaintDraining && !contract.IsKubeProxyTaint(t) && !slices.Contains(want.Taints, t) {
			out = append(out, "a foreign taint is gone: "+t.ToString())
		}
	}
	for key, value := range was.Labels {
		_, excluded := was.Annotations[contract.AnnotationExcluded]
		if want.Labels[key] != value && (key != contract.LabelExcludeFromLoadBalancers || !excluded) {
			out = append(out, "a foreign label is changed: "+key)
		}
	}
	for key, value := range was.Annotations {
		if want.Annotations[key] != value && !strings.HasPrefix(key, contract.Prefix) {
			out = append(out, "a foreign annotation is changed: "+key)
		}
	}
	for _, key := range []string{contract.AnnotationDrainRequest, contract.AnnotationTerminating, contract.AnnotationHold} {
		if want.Annotations[key] != was.Annotations[key] {
			out = append(out, "another's annotation is changed: "+key)
		}
	}
	return out
}
