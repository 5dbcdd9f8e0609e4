package scaleup

import (
	"slices"

	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/seats"
)

// SeatDraining gives the pods of nodes that others take what room is left after the pending ones,
// so that no pod is moved there. It triggers no scale-up: Auto Scaling replaces what it takes.
func (d *ScaleUp) SeatDraining() {
	leaving := slices.Collect(d.In(cluster.Draining, cluster.Terminating))
	if len(leaving) == 0 {
		return
	}
	open := d.Fit.NewRow(slices.Concat(d.PlacesIn(cluster.Serving), d.Staying(), d.Upcoming))
	for _, n := range leaving {
		if !d.Unproven(n) {
			d.Spend(n)
		}
		if seats.Awaited(n) {
			continue
		}
		lifted := d.Lifted(n)
		if slices.ContainsFunc(lifted, d.Fit.Heeded) {
			open.Forget() // whom they kept out of their zone may come there now
		}
		for _, t := range lifted {
			if open.Seat(t) == nil {
				d.SettleBack(t)
			}
		}
	}
}
