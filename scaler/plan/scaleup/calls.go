package scaleup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
)

// grows are the calls by which a group gets its fresh nodes: one for all, or, where
// their zones are ours to choose, one for each zone and hundred.
func (d *ScaleUp) grows(g *cluster.Group) []action.Grow {
	if g.Unsteered != nil {
		return []action.Grow{{Group: g.Name, From: g.Desired, To: g.Base() + len(g.Fresh), For: d.podsOf(g.Fresh)}}
	}
	byZone := map[string][]*fit.Place{}
	for _, p := range g.Fresh {
		zone := p.Template().Zone
		byZone[zone] = append(byZone[zone], p)
	}
	var calls []action.Grow
	at := g.Desired
	for _, zone := range slices.Sorted(maps.Keys(byZone)) {
		part := 0
		for places := range slices.Chunk(byZone[zone], launch.MostAtOnce) {
			x := d.launch(g, zone, part, at, len(places))
			x.For, x.Follows = d.podsOf(places), len(calls) > 0
			calls = append(calls, x)
			at, part = x.To, part+1
		}
	}
	return calls
}

func (d *ScaleUp) podsOf(places []*fit.Place) []action.PodRef {
	seated := make([][]fit.Tenant, len(places))
	for i, p := range places {
		seated[i] = slices.DeleteFunc(p.Tenants(), func(t fit.Tenant) bool { return cluster.Imaginary(t.Pod) })
	}
	return cluster.Refs(d.InOrder(slices.Concat(seated...)))
}

// launch notes a launch of some nodes in a zone and returns the call.
func (d *ScaleUp) launch(g *cluster.Group, zone string, part, from, count int) action.Grow {
	key := fleet.LaunchKey(g.Name, zone, part)
	l := fleet.Launch{Count: count, Desired: g.Desired, Had: launch.Had(g, zone), Attempt: d.State.Launches[key].Attempt + 1, At: d.Now}
	l.Token = token(g, zone, from, count, l.Attempt)
	d.State.Launches[key] = l
	return action.Grow{
		Group: g.Name, Zone: zone, From: from, To: from + count,
		Token: l.Token, Count: count, Attempt: l.Attempt, Part: part,
	}
}

// token is the same for the same launch, seen from the same state of the group:
// who decides again without knowing that it was decided before repeats the call.
func token(g *cluster.Group, zone string, from, count, attempt int) string {
	ids := make([]string, len(g.Live))
	for i, instance := range g.Live {
		ids[i] = instance.ID
	}
	slices.Sort(ids)
	text := strings.Join([]string{
		cmp.Or(g.ARN, g.Name), zone, strconv.Itoa(from), strings.Join(ids, ","), strconv.Itoa(count), strconv.Itoa(attempt),
	}, "\n")
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
