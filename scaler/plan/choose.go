package plan

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/fit"
)

// candidate is a node that every rule lets go, if its pods have other places.
type candidate struct {
	*node
	// movers are its pods that need another place.
	movers []fit.Tenant
	// since is when it was marked as unneeded; zero without a mark.
	since time.Time
	// worth is what it costs in an hour.
	worth float64
	// priority is the sum of its movers', and age the sum of how long they have been
	// there, reckoned from a moment that is the same for all nodes.
	priority, age int64
	// reason and why say what it is needed for; empty while it may go.
	reason Reason
	why    string
}

// choose finds the nodes that can all go at once: the pods of every one have places on
// nodes that stay. One after the other is emptied in thought, in order, and what cannot
// be is as before.
func (r *retirement) choose(list []*candidate) []*candidate {
	slices.SortStableFunc(list, compareCandidates)
	r.line(list)
	var chosen []*candidate
	r.inTurn(list, func(c *candidate) (goes bool) {
		if c.reason, c.why = r.limited(c.node); c.reason == "" {
			c.reason, c.why = r.empty(c)
		}
		if c.reason != "" {
			return false
		}
		chosen = append(chosen, c)
		r.leaving[c.group]++
		r.remains.take(c.node)
		return true
	})
	for _, c := range list {
		if c.reason != "" {
			c.say(c.reason, c.why)
		}
	}
	return chosen
}

// compareCandidates says who goes first. Those that were chosen before do, so that one
// look does not undo what the last one found; then those that save most, and of these
// those whose going disturbs least: fewer pods move, of less priority, and younger ones.
func compareCandidates(a, b *candidate) int {
	return cmp.Or(
		compareBool(a.since.IsZero(), b.since.IsZero()),
		cmp.Compare(b.worth, a.worth),
		a.since.Compare(b.since),
		cmp.Compare(len(a.movers), len(b.movers)),
		cmp.Compare(a.priority, b.priority),
		cmp.Compare(a.age, b.age),
	)
}

// compareBool puts what is false first.
func compareBool(a, b bool) int {
	if a == b {
		return 0
	}
	return map[bool]int{false: -1, true: 1}[a]
}

// zoneOfGroup is a zone with the group's nodes in it.
type zoneOfGroup struct {
	group *group
	zone  string
}

// inTurn lets the candidates try to go, in order. Of several that are as good the next
// is one of the zone that has most of the group's nodes.
func (r *retirement) inTurn(list []*candidate, try func(*candidate) (goes bool)) {
	have := map[zoneOfGroup]int{}
	for _, g := range r.groups {
		for _, i := range g.live {
			have[zoneOfGroup{g, i.Zone}]++
		}
	}
	for len(list) > 0 {
		equal := 1
		for equal < len(list) && compareCandidates(list[0], list[equal]) == 0 {
			equal++
		}
		byZone := map[zoneOfGroup][]*candidate{}
		var zones []zoneOfGroup
		for _, c := range list[:equal] {
			z := zoneOfGroup{c.group, c.instance.Zone}
			if byZone[z] == nil {
				zones = append(zones, z)
			}
			byZone[z] = append(byZone[z], c)
		}
		for range equal {
			z := slices.MaxFunc(zones, func(a, b zoneOfGroup) int {
				return cmp.Or(compareBool(len(byZone[a]) > 0, len(byZone[b]) > 0), cmp.Compare(have[a], have[b]))
			})
			next := byZone[z][0]
			byZone[z] = byZone[z][1:]
			if try(next) {
				have[z]--
			}
		}
		list = list[equal:]
	}
}

// line makes the row of places in which movers look for another: nodes that stay for
// certain come first, the fullest of them at the front, then the candidates, those that
// go last at the front. What is only coming stands at the end.
func (r *retirement) line(list []*candidate) {
	turn := map[*node]int{}
	for i, c := range list {
		turn[c.node] = len(list) - i
	}
	stay := r.in(serving)
	slices.SortStableFunc(stay, func(a, b *node) int {
		return cmp.Or(cmp.Compare(turn[a], turn[b]), cmp.Compare(r.used[b], r.used[a]))
	})
	r.row = r.fit.NewRow(places(stay))
}
