package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windlass.dev/windlass/scaler/fit"
)

// mostNamed is how many groups a pod's verdict names; of more it tells the
// nearest and counts the others.
const mostNamed = 8

// miss is why a group has no new node for some pods.
type miss struct {
	group *group
	// reasons keep the pods off its nodes, as they look; none where only the
	// group itself stands in the way.
	reasons fit.Reasons
	why     string
}

// whyNot says for each group by name what keeps these pods from it: what its
// nodes would lack, of several zones in the one that comes nearest, or what keeps
// it from growing.
func (d *decision) whyNot(c *fit.Class) (Reason, string) {
	if len(d.groups) == 0 {
		return PodFitsNothing, "there is no group that could grow"
	}
	defer d.closeFor(c)()
	reason := PodFitsNothing
	misses := make([]miss, len(d.groups))
	for i, g := range d.groups {
		misses[i] = d.missOf(c, g)
		if len(g.looks) > 0 && len(misses[i].reasons) == 0 {
			reason, g.wanted = PodGroupsFull, true
		}
	}
	return reason, tell(misses)
}

// whyNotBriefly says the same where more is not worked out, and why it is not: what costs
// next to nothing to find out.
func (d *decision) whyNotBriefly(t fit.Tenant, because string) (Reason, string) {
	defer d.closeFor(t.Class)()
	reason, all := PodFitsNothing, "no group's new node has what it asks for"
	for _, g := range d.groups {
		if d.fit.CouldTake(t.Class, g.looks) {
			reason, all = PodGroupsFull, "no group has a new node for it now"
			g.wanted = true
		}
	}
	return reason, fmt.Sprintf("%s; what keeps it from each is not worked out, as %s", all, because)
}

func (d *decision) missOf(c *fit.Class, g *group) miss {
	open, _ := g.open()
	nearest, at := d.fit.FitsNew(c, g.looks)
	if len(nearest) > 0 {
		return miss{g, nearest, g.lacks(nearest, at)}
	}
	if _, why := g.room(); why != "" {
		return miss{g, nil, why}
	}
	// It may grow, and where the pods would fit no node is to be had.
	if other, at := d.fit.FitsNew(c, open); len(other) > 0 {
		return miss{g, nil, fmt.Sprintf("%s, and in %s %s", g.resting(), zoneName(at), other.Of(at.Name))}
	}
	if g.unsteered != "" && len(g.looks) > 1 {
		return miss{g, nil, "Auto Scaling chooses the zone of its next node, and that would be another one"}
	}
	return miss{g, nil, "other pods take the room that it has"}
}

// lacks says what a group's new nodes lack, as one of them looks.
func (g *group) lacks(why fit.Reasons, at *fit.Looks) string {
	elsewhere := slices.ContainsFunc(why, func(r fit.Reason) bool { return r.Rule == fit.RuleVolumeBinding && r.Found != "" })
	if !elsewhere {
		return why.Of(at.Name)
	}
	return fmt.Sprintf("zone %s only, %s", strings.Join(g.zonesAsked(), ", "), why.Of(at.Name))
}

func zoneName(l *fit.Looks) string { return cmp.Or(l.Zone, "its zone") }

// tell puts the misses together, by name. Of many the nearest are named: groups
// that would serve first, then those whose nodes lack least.
func tell(misses []miss) string {
	named, rest := misses, 0
	if len(misses) > mostNamed {
		near := slices.Clone(misses)
		slices.SortStableFunc(near, func(a, b miss) int {
			switch {
			case a.reasons.Nearer(b.reasons):
				return -1
			case b.reasons.Nearer(a.reasons):
				return 1
			}
			return 0
		})
		named, rest = near[:mostNamed], len(near)-mostNamed
		slices.SortFunc(named, func(a, b miss) int { return cmp.Compare(a.group.Name, b.group.Name) })
	}
	texts := make([]string, len(named))
	for i, m := range named {
		texts[i] = fmt.Sprintf("%s: %s", m.group.Name, m.why)
	}
	if rest > 0 {
		texts = append(texts, fmt.Sprintf("and %d more groups are no nearer", rest))
	}
	return strings.Join(texts, "; ")
}

// resting says in which zones a group is not grown now, until when, and after
// what; empty where no pause runs. Zones with the same trouble are told of
// together.
func (g *group) resting() string {
	type trouble struct{ until, cause string }
	zones := map[trouble][]string{}
	var order []trouble
	for _, z := range g.zonesAsked() {
		b := g.pausedIn(z)
		if b == nil {
			continue
		}
		t := trouble{clockTime(b.Until), b.Cause}
		if zones[t] == nil {
			order = append(order, t)
		}
		zones[t] = append(zones[t], z)
	}
	texts := make([]string, len(order))
	for i, t := range order {
		if wholeGroup := g.everywhere(zones[t]); wholeGroup {
			return fmt.Sprintf("in back-off until %s after %s", t.until, t.cause)
		}
		texts[i] = fmt.Sprintf("%s until %s", notIn(t.cause, zones[t]), t.until)
	}
	return strings.Join(texts, ", ")
}

// zonesAsked are the zones of new nodes, each once.
func (g *group) zonesAsked() []string {
	var zones []string
	for _, l := range g.looks {
		if !slices.Contains(zones, l.Zone) {
			zones = append(zones, l.Zone)
		}
	}
	if zones == nil {
		zones = []string{""}
	}
	return zones
}

// everywhere says that the group as a whole rests, or that these are all the
// zones it has and it has no other to be told apart from.
func (g *group) everywhere(zones []string) bool {
	all := g.zonesAsked()
	if len(all) == 1 {
		return true
	}
	_, whole := g.pauses[""]
	return whole && len(zones) == len(all)
}

// notIn says what zones lack.
func notIn(cause string, zones []string) string {
	where := strings.Join(zones, ", ")
	switch cause {
	case "InsufficientInstanceCapacity", "UnfulfillableCapacity":
		return "no capacity in " + where
	case "InsufficientFreeAddressesInSubnet":
		return "no free addresses in " + where
	}
	return fmt.Sprintf("back-off after %s in %s", cause, where)
}

// restingBeside is what rest there is in some zones of a group that may still
// grow in others; empty without one.
func (g *group) restingBeside() string {
	if g.paused() != nil {
		return ""
	}
	return g.resting()
}
