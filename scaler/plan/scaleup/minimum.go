package scaleup

import (
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// fillToMinimum grows groups that are smaller than they may be, where people want
// that: Auto Scaling keeps to its own bounds, and does not know those of --nodes.
func (d *ScaleUp) fillToMinimum() {
	if !d.Policy.EnforceMinSize {
		return
	}
	for _, g := range d.Groups {
		room, _ := seats.Room(g)
		lacks := min(room, g.Min-g.Base()-len(g.Fresh))
		if lacks <= 0 {
			continue
		}
		for range lacks {
			s := seats.Supply(g, lacks)
			zone := s.Next(make([]int, len(s.Template)))[0]
			d.Open(g, d.Fit.Open("a new node of group "+g.Name, s.Template[zone]))
		}
		g.Note(verdict.Say("its minimum is {min}", verdict.Min(g.Min)))
	}
}

// Open takes new nodes into the plan.
func (d *ScaleUp) Open(g *cluster.Group, places ...*fit.Place) {
	for _, p := range places {
		g.Have[g.ZoneOf(p.Template().Zone)]++
	}
	g.Fresh = append(g.Fresh, places...)
	d.Totals.Add(g, len(places))
}
