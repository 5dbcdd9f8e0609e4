package scaleup

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// growForHeadRoom keeps nodes that were to go, and plans new ones, where head-room is
// short when every real pod has its place.
func (d *ScaleUp) growForHeadRoom() {
	var putBack []func()
	for _, h := range d.HeadRooms {
		d.keepForHeadRoom(h)
		room := d.RoomFor(h)
		if room >= h.Wanted {
			continue
		}
		putBack = append(putBack, d.bringHeadRoom(h, room))
	}
	for _, put := range putBack {
		put()
	}
}

// keepForHeadRoom takes retirements back while head-room is short that their nodes have:
// to keep a node is cheaper than to launch one.
func (d *ScaleUp) keepForHeadRoom(h *seats.HeadRoom) {
	for _, n := range d.In(cluster.Retiring) {
		if !n.Open || n.Kept || !h.Has(n) || d.RoomFor(h) >= h.Wanted {
			continue
		}
		start, moved := d.Fit.Fork(), n.Moved
		d.UndoMoves(n)
		if d.Fit.Slots(h.Tenant.Class, n.Place).N == 0 {
			d.Fit.Revert(start)
			n.Moved = moved
			continue
		}
		d.Keep(n, verdict.Say("{headroom} needs it", verdict.HeadRoom(h.String())))
	}
}

// bringHeadRoom plans nodes for what a head-room lacks. The pods that stand for it are
// taken off them, as the next head-room counts the same room; putBack seats them again.
func (d *ScaleUp) bringHeadRoom(h *seats.HeadRoom, room int) (putBack func()) {
	sizes := map[*cluster.Group]int{}
	for _, g := range d.Groups {
		sizes[g] = len(g.Fresh)
		g.Aside = h.Group != nil && h.Group != g
	}
	refused := d.growFor(slices.Repeat([]fit.Tenant{h.Tenant}, h.Wanted-room))
	if len(refused) > 0 {
		d.sayShort(h, len(refused))
	}
	var undo []func()
	for _, g := range d.Groups {
		g.Aside = false
		if len(g.Fresh) > sizes[g] {
			g.Note(h.IsWanted(h.Wanted).And(", and there is for {count}", verdict.Count(room)))
		}
		for _, p := range g.Fresh[sizes[g]:] {
			for _, t := range p.Tenants() {
				d.Fit.Lift(t, p)
				undo = append(undo, func() { d.Fit.Put(t, p) })
			}
		}
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// sayShort tells at the groups that could have it why head-room is short, or at all of
// them if none could. It returns the same for all of them.
func (d *ScaleUp) sayShort(h *seats.HeadRoom, lacks int) (why verdict.Details) {
	var could []*cluster.Group
	for _, g := range d.Groups {
		if (h.Group == nil || h.Group == g) && d.Fit.CouldTake(h.Tenant.Class, g.Looks) {
			could = append(could, g)
		}
	}
	if len(could) == 0 {
		could = d.Groups
		if h.Group != nil {
			could = []*cluster.Group{h.Group}
		}
	}
	defer d.closeFor(h.Tenant.Class)()
	misses := make([]miss, len(could))
	unasked := d.Unasked[seats.Asking{Class: h.Tenant.Class, Namespace: h.Tenant.Pod.Namespace}]
	for i, g := range could {
		if misses[i] = (miss{g, nil, d.BudgetSpent(h.Tenant.Pod.Namespace)}); !unasked {
			misses[i] = d.missOf(h.Tenant.Class, g)
		}
		g.Short = true
		g.Note(h.IsWanted(h.Wanted).And(", and there is none for {count}: {why}", verdict.Count(lacks), verdict.Why(misses[i].why)))
	}
	return tell(misses)
}
