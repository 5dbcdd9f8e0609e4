package cluster

import "time"

// SettlesIn is how long after the end of an outage, or after another leader took over,
// an instance that has no Node may still get one.
const SettlesIn = 2 * time.Minute

// After is when so much time is over from a moment on, outages of the API server left out: no Node
// registers, and none becomes Ready, while one lasts. An outage whose beginning is not known leaves
// nothing of the time before. Shortly after an outage nothing is over that was not before it.
func (d *Cluster) After(from time.Time, patience time.Duration) time.Time {
	due := from.Add(patience)
	for _, o := range d.outages {
		began := Later(o.From, from)
		if !o.Until.After(began) || !began.Before(due) {
			continue
		}
		due = Later(due.Add(o.Until.Sub(began)), o.Until.Add(min(SettlesIn, patience)))
	}
	return due
}

// upToDate is how long after an outage what is known counts as out of date: the watches are in step again
// then, and agents have answered.
const upToDate = 10 * time.Second

// CatchesUp reports whether the API server is away, or came back a moment ago: what is known may be
// out of date, so no agent is taken for unresponsive, and no node is scaled down anew.
func (d *Cluster) CatchesUp() bool {
	until := d.Back.Add(upToDate)
	if d.Back.IsZero() || !d.Now.Before(until) {
		return false
	}
	d.Clock.At(until)
	return true
}

func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
