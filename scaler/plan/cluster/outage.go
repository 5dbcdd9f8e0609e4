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

func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
