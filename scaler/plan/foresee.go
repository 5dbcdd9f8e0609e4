package plan

import (
	"windlass.dev/windlass/scaler/fit"
)

// expect takes the zones in which groups, or groups like them, could get a node for
// places to spread over, until over is called: three pods that spread get a node in
// each of three zones by one look, though none of the zones has one yet. Zones of
// other groups do not count. A group that nobody would choose must not draw pods to
// its zone.
func (d *decision) expect(groups ...*group) (over func()) {
	if !d.foresees {
		return func() {}
	}
	var expected []*fit.Looks
	seen := map[*group]bool{}
	for _, g := range groups {
		for _, kin := range d.kinOf(g) {
			if room, _ := kin.room(); room > 0 && !seen[kin] {
				looks, _ := kin.open()
				expected = append(expected, looks...)
			}
			seen[kin] = true
		}
	}
	return d.fit.Expect(expected)
}

func spreads(t fit.Tenant) bool { return t.Class.Spreads() }

// kinOf is the group and those that are like it, by name.
func (d *decision) kinOf(g *group) []*group {
	if g.kin == nil {
		for _, other := range d.groups {
			if other == g || d.policy.alike(g, other) {
				g.kin = append(g.kin, other)
			}
		}
	}
	return g.kin
}
