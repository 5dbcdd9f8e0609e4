package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// plan puts together what was settled. Beside another autoscaler it keeps
// the verdicts and drops the rest.
func (d *decision) plan() Plan {
	p := Plan{
		Verdicts: d.verdicts(), Others: d.others, Stopped: d.rivalled(), Unrecognised: d.strangersByGroup(), Braked: d.brake != "",
		Wake: d.clock.next, Steps: d.fit.Steps(), State: compact(d.given),
	}
	if !p.Stopped {
		p.Actions, p.Drains, p.State = ordered(d.actions), d.drains, compact(d.state)
	}
	return p
}

// rivalled says that another autoscaler acts on the same groups.
func (d *decision) rivalled() bool {
	return d.stopped != ""
}

// ordered sorts actions by lane; within one, what is most pressing goes first.
func ordered(actions []Action) []Action {
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Lane(), b.Lane()), cmp.Compare(rank(a), rank(b)))
	})
	return actions
}

// rank within a lane. Grow goes before anything that lowers desired, which it
// expects to find as it was.
func rank(a Action) int {
	switch a.(type) {
	case Suspend, Claim: // before anything of which Auto Scaling would make something
		return -1
	case Grow:
		return 0
	case Complete:
		return 1
	case Heartbeat, Cordon, Evict:
		return 2
	case Spare, Keep, Release, Permit, NotYet, OutOfService, InServiceAgain:
		return 3
	case Retire:
		return 4
	case Terminate:
		return 5
	case Lower:
		return 6
	case Unmark:
		return 7
	}
	return 8
}

// verdicts has one for each waiting pod, node and group, by kind and name.
func (d *decision) verdicts() []Verdict {
	list := append(d.podVerdicts, d.disownedVerdicts...)
	for _, n := range d.nodes {
		message := n.message
		if len(n.garbled) > 0 {
			message = strings.Join(append([]string{message}, n.garbled...), "; ")
		}
		list = append(list, Verdict{Of: OfNode, Name: n.Name, UID: string(n.UID), Group: n.groupName(), Reason: n.reason, Message: message})
	}
	for _, g := range d.groups {
		reason, message := d.groupVerdict(g)
		list = append(list, Verdict{Of: OfGroup, Name: g.Name, Group: g.Name, Reason: reason, Message: message})
	}
	slices.SortFunc(list, func(a, b Verdict) int { // cmp.Or would compare all of it each time
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
func (d *decision) groupVerdict(g *group) (Reason, string) {
	reason, message := d.condition(g)
	notes := slices.Concat(g.Faults, g.notes)
	if rest := g.restingBeside(); rest != "" {
		notes = append([]string{rest}, notes...)
	}
	if g.Synchronous && g.unsteered != "" {
		notes = append(notes, "Auto Scaling chooses its zones: "+g.unsteered)
	}
	notes = append(notes, g.differing()...)
	replaced := d.replaces(g)
	if replaced != "" {
		notes = append(notes, replaced+": it is not made smaller meanwhile")
	}
	rebalanced := d.rebalanced(g)
	if rebalanced != "" {
		notes = append(notes, rebalanced)
	}
	unrecognised, why := d.unrecognised(g)
	if why != "" {
		notes = append(notes, why)
		if reason == GroupSteady || reason == GroupBackOff || unrecognised == GroupForeign && reason != GroupRivalled {
			reason = unrecognised
		}
	}
	above := g.aboveDesired()
	if above != "" {
		notes = append(notes, above)
	}
	notes = append(notes, d.zonesCutOff(g)...)
	hooks, remarks := d.hookRemarks(g)
	notes = append(notes, remarks...)
	if reason == GroupSteady && g.short {
		reason = GroupShort
	}
	if reason == GroupSteady && len(g.Faults) > 0 {
		reason = GroupFaulty
	}
	if reason == GroupSteady && replaced != "" {
		reason = GroupReplacing
	}
	if reason == GroupSteady && above != "" {
		reason = GroupAboveDesired
	}
	if reason == GroupSteady && rebalanced != "" {
		reason = GroupRebalances
	}
	if reason == GroupSteady && len(g.differs) > 0 {
		reason = GroupShapeDiffers
	}
	if reason == GroupSteady && hooks != "" {
		reason = hooks
	}
	return reason, strings.Join(append([]string{message}, notes...), "; ")
}

func (d *decision) condition(g *group) (Reason, string) {
	size := fmt.Sprintf("%d desired of %d to %d", g.Desired, g.Min, g.Max)
	on := len(d.unregistered(g)) + g.unlaunched()
	for _, n := range g.nodes {
		if n.stage == coming && n.instance.Live() {
			on++
		}
	}
	owed := ""
	if g.owed() > 0 {
		owed = fmt.Sprintf("; unfulfilled %d", g.owed())
	}
	switch {
	case d.rivalled():
		return GroupRivalled, size + "; " + d.stopped
	case len(g.looks) == 0:
		return GroupFaulty, size + "; what its nodes look like is not known, so it does not grow"
	case len(g.fresh) > 0:
		return GroupGrows, fmt.Sprintf("it grows %d→%d%s", g.Desired, g.base()+len(g.fresh), g.delay())
	case g.paused() != nil:
		return GroupBackOff, fmt.Sprintf("%s%s; %s%s", size, owed, g.resting(), lookAt(g.paused()))
	case g.suspended(processLaunch):
		return GroupSuspended, fmt.Sprintf("%s%s; its Launch process is suspended, so it does not grow", size, owed)
	case on > 0:
		return GroupComing, fmt.Sprintf("%s; %d coming", size, on)
	case g.wanted:
		return d.unavailable(g, size)
	}
	return GroupSteady, size
}

// unavailable says why a group does not grow that pods would fit.
func (d *decision) unavailable(g *group, size string) (Reason, string) {
	_, why := g.room()
	_, limit := g.cluster.room(g)
	reason := GroupUnfulfilled
	switch {
	case why == "":
		return GroupSteady, size + "; pods wait that its next node would not help"
	case why == g.ill:
		reason = GroupUnhealthy
	case why == limit:
		reason = GroupClusterLimit
	case g.Max <= g.base():
		return GroupAtMax, size + "; pods wait that it has no room for"
	}
	return reason, fmt.Sprintf("%s; pods wait, but it does not grow: %s", size, why)
}
