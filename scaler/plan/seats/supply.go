package seats

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/template"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Expect takes the zones in which groups, or groups like them, could get a node for places to
// spread over, until over is called: three pods that spread get a node in each of three zones by
// one evaluation, though none of the zones has one yet. Zones of other groups do not count. A group
// that would not be chosen must not draw pods to its zone.
func (d *Seats) Expect(groups ...*cluster.Group) (over func()) {
	if !d.Foresees {
		return func() {}
	}
	var expected []*fit.NodeTemplate
	seen := map[*cluster.Group]bool{}
	for _, g := range groups {
		for _, kin := range d.SimilarTo(g) {
			if room, _ := Room(kin); room > 0 && !seen[kin] {
				looks, _ := launch.Open(kin)
				expected = append(expected, looks...)
			}
			seen[kin] = true
		}
	}
	return d.Fit.Expect(expected)
}

func Spreads(t fit.Tenant) bool { return t.Class.Spreads() }

// SimilarTo is the group and those that are similar to it, by name.
func (d *Seats) SimilarTo(g *cluster.Group) []*cluster.Group {
	if g.Similar == nil {
		for _, other := range d.Groups {
			if other == g || similar(d.Policy, g, other) {
				g.Similar = append(g.Similar, other)
			}
		}
	}
	return g.Similar
}

// Supply is where up to limit new nodes of the group come from: zones in which no
// back-off runs. Where the zone is not ours to choose and a pod needs one that is not
// next, Auto Scaling has to be asked for those before it too.
func Supply(g *cluster.Group, limit int) fit.Supply {
	looks, have := launch.Open(g)
	return fit.Supply{
		Name: "group " + g.Name, Template: looks, Have: have, Limit: limit,
		Steered: g.Unsteered == nil, Detour: max(0, len(looks)-1-detours(g)),
	}
}

// detours counts new nodes that are planned only to reach the zone of another.
func detours(g *cluster.Group) int {
	n := 0
	for _, p := range g.Fresh {
		if len(p.Seated()) == 0 {
			n++
		}
	}
	return n
}

// Room is how many nodes the group may still grow by; if none, why.
func Room(g *cluster.Group) (n int, whyNot verdict.Details) {
	switch {
	case g.Aside:
		return 0, notAsked
	case g.Held != "":
		return 0, verdict.Quote(g.Held)
	case len(g.Templates) == 0 && len(g.Faults) > 0:
		return 0, verdict.QuoteAll(g.Faults)
	case len(g.Templates) == 0:
		return 0, verdict.Say("its node template is not known")
	case g.Foreign:
		return 0, verdict.Say("none of its instances ever was a Node of this cluster, so a new one would most likely not become one")
	case g.IsSuspended(cluster.ProcessLaunch):
		return 0, verdict.Say("its Launch process is suspended")
	case g.BackOff() != nil:
		return 0, Resting(g)
	case g.Ill != nil:
		return 0, g.Ill
	case g.Closed != nil:
		return 0, g.Closed
	case !g.SilentSince.IsZero():
		return 0, verdict.Say("LaunchInstances has not answered since {since}", verdict.Since(g.SilentSince))
	}
	n = g.Max - g.Base() - len(g.Fresh)
	if n <= 0 {
		return 0, verdict.Say("at its maximum of {max}", verdict.Max(g.Max))
	}
	most, whyNot := g.Totals.Room(g)
	return min(n, most), whyNot
}

var notAsked = verdict.Say("it is not asked")

// Foresee finds the pods that will wait soon: a spot interruption is not replaced before the
// instance is gone, so the pods of its node are pending from the notice on. Where there is time for
// a replacement first, they wait from when it is the node's turn. Each counts until it is evicted,
// and then its successor does.
func (d *Seats) Foresee() []fit.Tenant {
	var list []fit.Tenant
	for n := range d.In(cluster.Draining) {
		if Awaited(n) {
			list = append(list, d.Lifted(n)...)
		}
	}
	return list
}

// similar reports whether a new node of one group is as good as one of the other, but for
// the zone. Of each the first node template speaks, because its others differ in the zone
// alone.
func similar(p policy.Policy, a, b *cluster.Group) bool {
	if len(a.NodeTemplates) == 0 || len(b.NodeTemplates) == 0 {
		return false
	}
	x, y := &a.NodeTemplates[0], &b.NodeTemplates[0]
	return maps.Equal(template.Telling(p, x.Labels), template.Telling(p, y.Labels)) &&
		template.SameTaints(x.Taints, y.Taints) &&
		template.Near(cluster.CapacityOf(x), cluster.CapacityOf(y), func(r corev1.ResourceName) float64 {
			if r == corev1.ResourceMemory {
				return template.MemoryMayDiffer
			}
			return 0
		}) &&
		template.Near(x.Allocatable, y.Allocatable, func(corev1.ResourceName) float64 { return template.AllocatableMayDiffer })
}

// Resting says in which zones a group is backed off, until when, and after what; nil where no
// back-off runs. Zones with the same trouble are named together.
func Resting(g *cluster.Group) verdict.Details {
	type trouble struct {
		until time.Time // by the second, as it is reported
		cause string
	}
	zones := map[trouble][]string{}
	var order []trouble
	for _, z := range ZonesAsked(g) {
		b := g.BackOffIn(z)
		if b == nil {
			continue
		}
		t := trouble{b.Until.UTC().Truncate(time.Second), b.Cause}
		if zones[t] == nil {
			order = append(order, t)
		}
		zones[t] = append(zones[t], z)
	}
	var all verdict.Details
	for _, t := range order {
		if wholeGroup := everywhere(g, zones[t]); wholeGroup {
			return verdict.BackOff(t.until, t.cause)
		}
		all = append(all, verdict.NotIn(t.cause, zones[t], t.until)...)
	}
	if len(all) < 2 {
		return all
	}
	return verdict.Say("{why:,}", verdict.Why(all))
}

// ZonesAsked are the zones of new nodes, each once.
func ZonesAsked(g *cluster.Group) []string {
	var zones []string
	for _, l := range g.Templates {
		if !slices.Contains(zones, l.Zone) {
			zones = append(zones, l.Zone)
		}
	}
	if zones == nil {
		zones = []string{""}
	}
	return zones
}

// everywhere reports whether the group as a whole is backed off, or these are all the zones it has
// and it has no other to be told apart from.
func everywhere(g *cluster.Group, zones []string) bool {
	all := ZonesAsked(g)
	if len(all) == 1 {
		return true
	}
	_, whole := g.BackOffs[""]
	return whole && len(zones) == len(all)
}

// RestingBeside is what back-off there is in some zones of a group that may still grow in others;
// nil without one.
func RestingBeside(g *cluster.Group) verdict.Details {
	if g.BackOff() != nil {
		return nil
	}
	return Resting(g)
}
