package scaleup

import (
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// growForHeadroom cancels scale-downs, and plans new nodes, where headroom is short when every real
// pod has its place. The pods that stand for it leave their seats as soon as those of their list
// have them, as the next list counts the same room. In the end those on new nodes are seated there
// again.
func (d *ScaleUp) growForHeadroom() {
	var brought []cluster.Move
	for _, list := range d.Headrooms {
		brought = append(brought, d.triggerHeadroom(list)...)
	}
	for _, m := range brought {
		d.Fit.Put(m.Pod, m.To)
	}
}

// triggerHeadroom does so for headrooms that add up, and returns the seats on new nodes.
func (d *ScaleUp) triggerHeadroom(list []*seats.Headroom) (brought []cluster.Move) {
	pods, of := d.HeadRoomPods(list)
	have, left := seats.SeatHeadRoom(pods, d.headRoomSeats(list))
	sizes := map[*cluster.Group]int{}
	for _, g := range d.Groups {
		sizes[g] = len(g.Fresh)
		g.Aside = list[0].Group != nil && list[0].Group != g
	}
	beside := len(d.beside)
	for _, t := range d.growFor(left) {
		of[t.Pod].Short++
	}
	room := map[*seats.Headroom]int{}
	lift := func(t fit.Tenant, from *fit.Place) {
		room[of[t.Pod]]++
		d.Fit.Lift(t, from)
	}
	for _, m := range have {
		lift(m.Pod, m.To)
	}
	for _, s := range d.beside[beside:] { // beside what is launched for others of them
		lift(s.Tenant, s.At)
	}
	d.beside = d.beside[:beside]
	for _, g := range d.Groups {
		g.Aside = false
		grows := map[*seats.Headroom]bool{}
		for _, p := range g.Fresh[:sizes[g]] {
			for _, t := range p.Tenants() {
				if of[t.Pod] != nil {
					lift(t, p)
				}
			}
		}
		for _, p := range g.Fresh[sizes[g]:] {
			for _, t := range p.Tenants() {
				grows[of[t.Pod]] = true
				d.Fit.Lift(t, p)
				brought = append(brought, cluster.Move{Pod: t, To: p})
			}
		}
		for _, h := range list {
			if grows[h] {
				g.Note(h.IsWanted(h.Wanted).And(", and there is room for {count}", verdict.Count(room[h])))
			}
		}
	}
	for _, h := range list {
		if h.Short > 0 {
			h.Why = d.sayShort(h)
		}
	}
	return brought
}

// headRoomSeats seeks seats for pods of headrooms without a new node. To cancel a scale-down is
// cheaper than to launch one.
func (d *ScaleUp) headRoomSeats(list []*seats.Headroom) func(fit.Tenant) *fit.Place {
	_, of := d.HeadRoomPods(list)
	row, retiring := d.HeadRoomRow(list), d.Cancellable(list[0].Has)
	return func(t fit.Tenant) *fit.Place {
		if !d.Ration.Ask(t.Pod.Namespace) {
			return nil // it is reported there
		}
		if p := row.Seat(t); p != nil {
			return p
		}
		n := retiring.Seat(t)
		if n == nil {
			return nil
		}
		d.Cancel(n, verdict.Say("{headroom} needs it", verdict.HeadRoom(of[t.Pod].String())))
		row = d.HeadRoomRow(list) // what was to move to other nodes has left room there
		return n.Place
	}
}

// sayShort notes at the groups that could have it why headroom is short, or at all of them if none
// could. It returns the same for all of them.
func (d *ScaleUp) sayShort(h *seats.Headroom) (why verdict.Details) {
	var could []*cluster.Group
	for _, g := range d.Groups {
		if (h.Group == nil || h.Group == g) && d.Fit.CouldTake(h.Tenant.Class, g.Templates) {
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
		g.Note(h.IsWanted(h.Wanted).And(", and there is none for {count} of them: {why}", verdict.Count(h.Short), verdict.Why(misses[i].why)))
	}
	return tell(misses)
}
