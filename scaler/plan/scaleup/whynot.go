package scaleup

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// mostNamed is how many groups a pod's verdict names; of more it has the nearest and counts the
// others.
const mostNamed = 8

// miss is why a group has no new node for some pods.
type miss struct {
	group *cluster.Group
	// reasons keep the pods off its nodes, as they are; none where only the group itself stands in
	// the way.
	reasons fit.Reasons
	why     verdict.Details
}

// whyNot says for each group by name what keeps these pods from it: what its
// nodes would lack, of several zones in the one that comes nearest, or what keeps
// it from growing.
func (d *ScaleUp) whyNot(c *fit.Class) (verdict.Reason, verdict.Details) {
	if len(d.Groups) == 0 {
		return verdict.PodNoGroupFits, verdict.Say("there is no group that could grow")
	}
	defer d.closeFor(c)()
	reason := verdict.PodNoGroupFits
	misses := make([]miss, len(d.Groups))
	for i, g := range d.Groups {
		misses[i] = d.missOf(c, g)
		if len(g.Templates) > 0 && len(misses[i].reasons) == 0 {
			reason, g.Wanted = verdict.PodGroupsUnavailable, true
		}
	}
	return reason, tell(misses)
}

// whyNotBriefly says the same where more is not worked out, and why it is not: what costs
// next to nothing to find out.
func (d *ScaleUp) whyNotBriefly(t fit.Tenant, because string) (verdict.Reason, verdict.Details) {
	defer d.closeFor(t.Class)()
	reason, all := verdict.PodNoGroupFits, "no group's new node has what it asks for"
	for _, g := range d.Groups {
		if d.Fit.CouldTake(t.Class, g.Templates) {
			reason, all = verdict.PodGroupsUnavailable, "no group has a new node for it now"
			g.Wanted = true
		}
	}
	return reason, verdict.Say(all).Then(verdict.Say("what each group lacks is not evaluated, because "+because, verdict.Namespace(t.Pod.Namespace)))
}

func (d *ScaleUp) missOf(c *fit.Class, g *cluster.Group) miss {
	open, _ := launch.Open(g)
	nearest, at := d.Fit.FitsNew(c, g.Templates)
	if len(nearest) > 0 {
		return miss{g, nearest, lacks(g, nearest, at)}
	}
	if _, why := seats.Room(g); why != nil {
		return miss{g, nil, why}
	}
	// It may grow, and where the pods would fit no node is to be had.
	if other, at := d.Fit.FitsNew(c, open); len(other) > 0 {
		return miss{g, nil, seats.Resting(g).And(", and in {zone} {lack}", verdict.Zone(cmp.Or(at.Zone, "its zone")), verdict.Lack(other.Of(at.Name)))}
	}
	if g.Unsteered != nil && len(g.Templates) > 1 {
		return miss{g, nil, verdict.Say("Auto Scaling chooses the zone of its next node, and that would be another one")}
	}
	return miss{g, nil, verdict.Say("other pods take the room that it has")}
}

// lacks says what a group's new nodes lack, by the template of one of them.
func lacks(g *cluster.Group, why fit.Reasons, at *fit.NodeTemplate) verdict.Details {
	elsewhere := slices.ContainsFunc(why, func(r fit.Reason) bool { return r.Rule == fit.RuleVolumeBinding && r.Found != "" })
	if !elsewhere {
		return verdict.Say("{lack}", verdict.Lack(why.Of(at.Name)))
	}
	return verdict.Say("zone {zones:,} only, {lack}", verdict.Zones(seats.ZonesAsked(g)), verdict.Lack(why.Of(at.Name)))
}

// tell puts the misses together: groups that would serve first, because who can do something
// about it has to see them, also where the rest is cut; then by name. Of many the nearest are
// named, those whose nodes lack least.
func tell(misses []miss) verdict.Details {
	named, rest := slices.Clone(misses), 0
	if len(named) > mostNamed {
		slices.SortStableFunc(named, func(a, b miss) int { return a.reasons.Compare(b.reasons) })
		named, rest = named[:mostNamed], len(named)-mostNamed
	}
	slices.SortFunc(named, func(a, b miss) int {
		return cmp.Or(min(len(a.reasons), 1)-min(len(b.reasons), 1), cmp.Compare(a.group.Name, b.group.Name))
	})
	all := make(verdict.Details, 0, len(named)+1)
	for _, m := range named {
		all = append(all, verdict.Say("{group}: {why}", verdict.Group(m.group.Name), verdict.Why(m.why))...)
	}
	if rest > 0 {
		all = append(all, verdict.Say("and {count} more groups that lack as much or more", verdict.Count(rest))...)
	}
	return all
}
