package plan

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/hooks"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/recognition"
	"windlass.dev/windlass/scaler/plan/scaledown"
	"windlass.dev/windlass/scaler/plan/scaleup"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/template"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// decision is all that was settled.
type decision struct {
	kept *Planner
	*cluster.Cluster
	*outcome.Outcome
	*recognition.Recognition
	*hooks.Hooks
	*scaledown.ScaleDown
}

// plan puts together what was settled. Beside another autoscaler it returns the verdicts and drops
// the rest.
func (d decision) plan() Plan {
	p := Plan{
		Verdicts: d.verdicts(), Others: d.Others, Stopped: d.OtherAutoscalerActs(), Unrecognised: d.UnrecognisedByGroup(), Braked: d.Brake != nil,
		Wake: d.Clock.Next, Steps: d.Fit.Steps(), State: outcome.Compact(d.Given),
		AwaitsAnswer: slices.ContainsFunc(d.Groups, func(g *cluster.Group) bool { return g.Unanswered && len(g.Fresh) > 0 }),
	}
	if !p.Stopped {
		p.Actions, p.Drains, p.State = action.Ordered(d.Actions), d.Carried, outcome.Compact(d.State)
	}
	return p
}

// verdicts has one for each pending pod, node and group, by kind and name.
func (d decision) verdicts() []*verdict.Verdict {
	groups := d.DisownedVerdicts
	for _, g := range d.Groups {
		reason, details := d.groupVerdict(g)
		groups = append(groups, &verdict.Verdict{Of: verdict.OfGroup, Name: g.Name, Group: g.Name, Reason: reason, Details: details})
	}
	slices.SortFunc(groups, byName)
	slices.SortFunc(d.PodVerdicts, byName)
	list := slices.Grow(groups, len(d.Nodes)+len(d.PodVerdicts))
	d.kept.said = append(d.kept.said[:min(len(d.kept.said), len(d.Nodes))], make([]*verdict.Verdict, max(0, len(d.Nodes)-len(d.kept.said)))...)
	for _, n := range d.Nodes { // by name already
		details := n.Details
		if n.Garbled != nil {
			details = details.Then(n.Garbled)
		}
		list = append(list, d.kept.say(n.Number, verdict.Verdict{Of: verdict.OfNode, Name: n.Name, UID: string(n.UID), Group: n.GroupName(), Reason: n.Reason, Details: details}))
	}
	return append(list, d.PodVerdicts...)
}

func byName(a, b *verdict.Verdict) int { // cmp.Or would compare all of it each time
	if by := cmp.Compare(a.Name, b.Name); by != 0 {
		return by
	}
	return cmp.Compare(a.UID, b.UID)
}

// say is the verdict on the node of a row: that of the last plan where it says the same. Others may
// still hold that plan, so that no verdict is ever changed.
func (k *Planner) say(row int, v verdict.Verdict) *verdict.Verdict {
	if last := k.said[row]; last == nil || !v.Repeats(last) {
		fresh := v // a copy, so that v is on the heap only where it is kept
		k.said[row] = &fresh
	}
	return k.said[row]
}

// groupVerdict is the most important of all that is true of a group; its details add what else
// people should know.
func (d decision) groupVerdict(g *cluster.Group) (verdict.Reason, verdict.Details) {
	reason, details := d.condition(g)
	details = details.Then(seats.RestingBeside(g), verdict.QuoteAll(g.Faults), g.Notes)
	if g.Synchronous && g.Unsteered != nil {
		details = details.Then(verdict.Say("Auto Scaling chooses its zones: {why}", verdict.Why(g.Unsteered)))
	}
	details = details.Then(template.Differing(g))
	replaced := d.WhyReplacing(g)
	if replaced != nil {
		details = details.Then(replaced.And(": it is not made smaller meanwhile"))
	}
	rebalanced := d.Rebalanced(g)
	unrecognised, why := d.Unrecognised(g)
	if why != nil {
		if reason == verdict.GroupSteady || reason == verdict.GroupBackOff || unrecognised == verdict.GroupForeign && reason != verdict.GroupOtherAutoscaler {
			reason = unrecognised
		}
	}
	above := scaledown.AboveDesired(g)
	hooks, remarks := d.HookRemarks(g)
	details = details.Then(rebalanced, why, above, d.ZonesCutOff(g), remarks)
	if reason == verdict.GroupSteady && g.Short {
		reason = verdict.GroupHeadroomShort
	}
	if reason == verdict.GroupSteady && len(g.Faults) > 0 {
		reason = verdict.GroupFaulty
	}
	if reason == verdict.GroupSteady && replaced != nil {
		reason = verdict.GroupReplacing
	}
	if reason == verdict.GroupSteady && above != nil {
		reason = verdict.GroupAboveDesired
	}
	if reason == verdict.GroupSteady && rebalanced != nil {
		reason = verdict.GroupZonesUneven
	}
	if reason == verdict.GroupSteady && len(g.Differs) > 0 {
		reason = verdict.GroupNodesDiffer
	}
	if reason == verdict.GroupSteady && hooks != "" {
		reason = hooks
	}
	return reason, details
}

func (d decision) condition(g *cluster.Group) (verdict.Reason, verdict.Details) {
	size := verdict.Say("{desired} desired of {min} to {max}", verdict.Desired(g.Desired), verdict.Min(g.Min), verdict.Max(g.Max))
	on := len(d.Unregistered(g)) + g.Unlaunched()
	for _, n := range g.Nodes {
		if n.Stage == cluster.Upcoming && n.Instance.Live() {
			on++
		}
	}
	var owed verdict.Details
	if g.Owed() > 0 {
		owed = verdict.Say("unfulfilled {count}", verdict.Count(g.Owed()))
	}
	switch {
	case d.OtherAutoscalerActs():
		return verdict.GroupOtherAutoscaler, size.Then(d.Stopped)
	case g.Unread: // its faults say why
		return verdict.GroupFaulty, size.Then(verdict.Say("nothing of it is changed before it is read again"))
	case g.Held != "":
		return verdict.GroupFaulty, size.Then(verdict.Say("nothing of it is changed: {why}", verdict.Why(verdict.Quote(g.Held))))
	case len(g.Templates) == 0:
		return verdict.GroupFaulty, size.Then(verdict.Say("its node template is not known, so it does not grow"))
	case len(g.Fresh) > 0:
		reason := verdict.GroupScalingUp
		if !g.Grows {
			reason = verdict.GroupNodesUpcoming
		}
		return reason, scaleup.Delay(g, verdict.Say("it grows {from}→{to}", verdict.From(g.Desired), verdict.To(g.Base()+len(g.Fresh))))
	case g.BackOff() != nil:
		return verdict.GroupBackOff, size.Then(owed, cluster.Remedy(seats.Resting(g), g.BackOff()))
	case g.IsSuspended(cluster.ProcessLaunch):
		return verdict.GroupSuspended, size.Then(owed, verdict.Say("its Launch process is suspended, so it does not grow"))
	case on > 0:
		return verdict.GroupNodesUpcoming, size.Then(verdict.Say("{count} upcoming", verdict.Count(on)))
	case g.Wanted:
		return d.unavailable(g, size)
	}
	return verdict.GroupSteady, size
}

// unavailable says why a group does not grow that pods would fit.
func (d decision) unavailable(g *cluster.Group, size verdict.Details) (verdict.Reason, verdict.Details) {
	_, why := seats.Room(g)
	_, limit := g.Totals.Room(g)
	reason := verdict.GroupUnfulfilled
	switch {
	case why == nil:
		return verdict.GroupSteady, size.Then(verdict.Say("pods are pending that another node of it would not help"))
	case why.Equal(g.Ill):
		reason = verdict.GroupUnhealthy
	case why.Equal(limit):
		reason = verdict.GroupClusterLimit
	case g.Max <= g.Base():
		return verdict.GroupAtMax, size.Then(verdict.Say("it is at its maximum, and pods are pending that fit its nodes"))
	}
	return reason, size.Then(verdict.Say("pods are pending, but it does not grow: {why}", verdict.Why(why)))
}
