package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	*cluster.Cluster
	*outcome.Outcome
	*recognition.Recognition
	*hooks.Hooks
	*scaledown.ScaleDown
}

// plan puts together what was settled. Beside another autoscaler it keeps
// the verdicts and drops the rest.
func (d decision) plan() Plan {
	p := Plan{
		Verdicts: d.verdicts(), Others: d.Others, Stopped: d.Rivalled(), Unrecognised: d.StrangersByGroup(), Braked: d.Brake != "",
		Wake: d.Clock.Next, Steps: d.Fit.Steps(), State: outcome.Compact(d.Given),
	}
	if !p.Stopped {
		p.Actions, p.Drains, p.State = action.Ordered(d.Actions), d.Carried, outcome.Compact(d.State)
	}
	return p
}

// verdicts has one for each waiting pod, node and group, by kind and name.
func (d decision) verdicts() []verdict.Verdict {
	list := append(d.PodVerdicts, d.DisownedVerdicts...)
	for _, n := range d.Nodes {
		message := n.Message
		if len(n.Garbled) > 0 {
			message = strings.Join(append([]string{message}, n.Garbled...), "; ")
		}
		list = append(list, verdict.Verdict{Of: verdict.OfNode, Name: n.Name, UID: string(n.UID), Group: n.GroupName(), Reason: n.Reason, Message: message})
	}
	for _, g := range d.Groups {
		reason, message := d.groupVerdict(g)
		list = append(list, verdict.Verdict{Of: verdict.OfGroup, Name: g.Name, Group: g.Name, Reason: reason, Message: message})
	}
	slices.SortFunc(list, func(a, b verdict.Verdict) int { // cmp.Or would compare all of it each time
		if by := cmp.Compare(a.Of, b.Of); by != 0 {
			return by
		}
		if by := cmp.Compare(a.Name, b.Name); by != 0 {
			return by
		}
		return cmp.Compare(a.UID, b.UID)
	})
	return list
}

// groupVerdict is the most telling of all that is true of a group; its message
// adds what else people should know.
func (d decision) groupVerdict(g *cluster.Group) (verdict.Reason, string) {
	reason, message := d.condition(g)
	notes := slices.Concat(g.Faults, g.Notes)
	if rest := seats.RestingBeside(g); rest != "" {
		notes = append([]string{rest}, notes...)
	}
	if g.Synchronous && g.Unsteered != "" {
		notes = append(notes, "Auto Scaling chooses its zones: "+g.Unsteered)
	}
	notes = append(notes, template.Differing(g)...)
	replaced := d.Replaces(g)
	if replaced != "" {
		notes = append(notes, replaced+": it is not made smaller meanwhile")
	}
	rebalanced := d.Rebalanced(g)
	if rebalanced != "" {
		notes = append(notes, rebalanced)
	}
	unrecognised, why := d.Unrecognised(g)
	if why != "" {
		notes = append(notes, why)
		if reason == verdict.GroupSteady || reason == verdict.GroupBackOff || unrecognised == verdict.GroupForeign && reason != verdict.GroupRivalled {
			reason = unrecognised
		}
	}
	above := scaledown.AboveDesired(g)
	if above != "" {
		notes = append(notes, above)
	}
	notes = append(notes, d.ZonesCutOff(g)...)
	hooks, remarks := d.HookRemarks(g)
	notes = append(notes, remarks...)
	if reason == verdict.GroupSteady && g.Short {
		reason = verdict.GroupShort
	}
	if reason == verdict.GroupSteady && len(g.Faults) > 0 {
		reason = verdict.GroupFaulty
	}
	if reason == verdict.GroupSteady && replaced != "" {
		reason = verdict.GroupReplacing
	}
	if reason == verdict.GroupSteady && above != "" {
		reason = verdict.GroupAboveDesired
	}
	if reason == verdict.GroupSteady && rebalanced != "" {
		reason = verdict.GroupRebalances
	}
	if reason == verdict.GroupSteady && len(g.Differs) > 0 {
		reason = verdict.GroupShapeDiffers
	}
	if reason == verdict.GroupSteady && hooks != "" {
		reason = hooks
	}
	return reason, strings.Join(append([]string{message}, notes...), "; ")
}

func (d decision) condition(g *cluster.Group) (verdict.Reason, string) {
	size := fmt.Sprintf("%d desired of %d to %d", g.Desired, g.Min, g.Max)
	on := len(d.Unregistered(g)) + g.Unlaunched()
	for _, n := range g.Nodes {
		if n.Stage == cluster.Coming && n.Instance.Live() {
			on++
		}
	}
	owed := ""
	if g.Owed() > 0 {
		owed = fmt.Sprintf("; unfulfilled %d", g.Owed())
	}
	switch {
	case d.Rivalled():
		return verdict.GroupRivalled, size + "; " + d.Stopped
	case len(g.Looks) == 0:
		return verdict.GroupFaulty, size + "; its node template is not known, so it does not grow"
	case len(g.Fresh) > 0:
		return verdict.GroupGrows, fmt.Sprintf("it grows %d→%d%s", g.Desired, g.Base()+len(g.Fresh), scaleup.Delay(g))
	case g.Paused() != nil:
		return verdict.GroupBackOff, fmt.Sprintf("%s%s; %s%s", size, owed, seats.Resting(g), cluster.LookAt(g.Paused()))
	case g.IsSuspended(cluster.ProcessLaunch):
		return verdict.GroupSuspended, fmt.Sprintf("%s%s; its Launch process is suspended, so it does not grow", size, owed)
	case on > 0:
		return verdict.GroupComing, fmt.Sprintf("%s; %d upcoming", size, on)
	case g.Wanted:
		return d.unavailable(g, size)
	}
	return verdict.GroupSteady, size
}

// unavailable says why a group does not grow that pods would fit.
func (d decision) unavailable(g *cluster.Group, size string) (verdict.Reason, string) {
	_, why := seats.Room(g)
	_, limit := g.Totals.Room(g)
	reason := verdict.GroupUnfulfilled
	switch {
	case why == "":
		return verdict.GroupSteady, size + "; pods wait that its next node would not help"
	case why == g.Ill:
		reason = verdict.GroupUnhealthy
	case why == limit:
		reason = verdict.GroupClusterLimit
	case g.Max <= g.Base():
		return verdict.GroupAtMax, size + "; pods wait that it has no room for"
	}
	return reason, fmt.Sprintf("%s; pods wait, but it does not grow: %s", size, why)
}
