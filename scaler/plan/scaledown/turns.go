package scaledown

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/scaler/plan/cluster"
)

// zoneOfGroup is a zone with the group's nodes in it.
type zoneOfGroup struct {
	group *cluster.Group
	zone  string
}

// inTurn lets sorted candidates try to go, beside those that are removed already. Of several that
// are as good the next is one of the zone that has most of the group's nodes.
func (r *nodeSearch) inTurn(o order, list, gone []*candidate, try func(*candidate) (goes bool)) {
	have := map[zoneOfGroup]int{}
	for _, g := range r.Groups {
		for _, i := range g.Live {
			have[zoneOfGroup{g, i.Zone}]++
		}
	}
	for _, c := range gone {
		have[zoneOfGroup{c.Group, c.Instance.Zone}]--
	}
	for len(list) > 0 {
		equal := 1
		for equal < len(list) && o.compare(list[0], list[equal]) == 0 {
			equal++
		}
		byZone := map[zoneOfGroup][]*candidate{}
		var zones []zoneOfGroup
		for _, c := range list[:equal] {
			z := zoneOfGroup{c.Group, c.Instance.Zone}
			if byZone[z] == nil {
				zones = append(zones, z)
			}
			byZone[z] = append(byZone[z], c)
		}
		for range equal {
			z := slices.MaxFunc(zones, func(a, b zoneOfGroup) int {
				return cmp.Or(cluster.CompareBool(len(byZone[a]) > 0, len(byZone[b]) > 0), cmp.Compare(have[a], have[b]))
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
