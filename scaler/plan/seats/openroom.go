package seats

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// openRoom is where pods may go without a new node.
type openRoom struct {
	*Seats
	free, staying, upcoming *fit.Row
	otherDestinations       *otherDestinations
	scalingDown             *cancellable
}

// OpenRoom is what there is of it when it is first asked for a seat. No room may come free while it
// is in use.
func (d *Seats) OpenRoom() openRoom {
	return openRoom{Seats: d, otherDestinations: d.yielding(), scalingDown: d.Cancellable(func(*cluster.Node) bool { return true })}
}

func (r *openRoom) list() {
	r.free = r.Fit.NewRow(r.PlacesIn(cluster.Serving, cluster.Cordoned, cluster.Draining)) // some tolerate a cordon, and some of the draining ones wait for their turn
	r.staying = r.Fit.NewRow(r.Seats.Staying())
	r.upcoming = r.Fit.NewRow(r.Seats.Upcoming)
}

// Seat is where a pod goes that needs no new node.
type Seat struct {
	Pod     fit.Tenant
	Reason  verdict.Reason
	Details verdict.Details
	// Cancels is the node whose scale-down is cancelled for it, nil without one.
	Cancels *cluster.Node
}

// Seat gives the pod a seat.
func (r *openRoom) Seat(t fit.Tenant) (Seat, bool) {
	if r.free == nil {
		r.list()
	}
	if p := r.free.Seat(t); p != nil {
		return Seat{Pod: t, Reason: verdict.PodFitsNode, Details: hasRoom(p)}, true
	}
	if p := r.staying.Seat(t); p != nil {
		return Seat{Pod: t, Reason: verdict.PodCancelsScaleDown, Details: staysFor(p.Name)}, true
	}
	if p := r.upcoming.Seat(t); p != nil {
		return Seat{Pod: t, Reason: verdict.PodFitsUpcoming, Details: verdict.Say("{place} is upcoming and has room for it", verdict.Place(p.Name))}, true
	}
	if p := r.otherDestinations.seat(t); p != nil {
		r.list() // who was to go there may have left more room than it takes
		return Seat{Pod: t, Reason: verdict.PodFitsNode, Details: hasRoom(p)}, true
	}
	if r.TooYoung(t) {
		return Seat{}, false
	}
	n := r.scalingDown.Seat(t)
	if n == nil {
		return Seat{}, false
	}
	r.list() // what was to move to other nodes has left room there
	return Seat{Pod: t, Reason: verdict.PodCancelsScaleDown, Details: staysFor(n.Name), Cancels: n}, true
}

func hasRoom(p *fit.Place) verdict.Details {
	return verdict.Say("node {node} has room for it", verdict.Node(p.Name))
}

func staysFor(node string) verdict.Details {
	return verdict.Say("node {node} stays and has room for it", verdict.Node(node))
}

func (d *Seats) TooYoung(t fit.Tenant) bool { return d.Now.Before(d.GrowsFrom(t)) }

// GrowsFrom is when a pod is old enough to trigger scale-up. One that runs now and will
// wait for another node is.
func (d *Seats) GrowsFrom(t fit.Tenant) time.Time {
	if t.Pod.Node != "" {
		return d.Now
	}
	delay, _ := contract.PodScaleUpDelay(t.Pod.Annotations, d.Policy.NewPodDelay) // one that cannot be parsed counts for nothing
	return t.Pod.Created.Time().Add(delay)
}
