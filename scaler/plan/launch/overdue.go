package launch

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// Causes of back-offs after launches that neither fail nor come to an end.
const (
	// NeverLaunched: Auto Scaling has not launched what the group wants, and reports no failure, or
	// may not be asked for any.
	NeverLaunched = "NeverLaunched"
	// NeverReleased: a launch hook of others holds the instance.
	NeverReleased = "NeverReleased"
)

// notedAfter is how long after a growth nothing is persisted of what the group waits for: most
// instances are launched by then.
const notedAfter = time.Minute

// LimitWaiting bounds how long pods count on what does not come, by the time that a
// node may take to come. Then its group is backed off like after any launch that failed,
// and the pods go to another one. What was asked for stays asked for.
func (d *Launches) LimitWaiting() {
	awaited := map[string]time.Time{}
	for _, g := range d.Groups {
		d.limitOwed(g, awaited)
		d.limitHeld(g, awaited)
	}
	d.State.Awaited = awaited
}

// limitOwed counts the time in which a group got none of the instances that it wants. It begins
// anew with each that came, with each failure that Auto Scaling reports, and with each back-off.
// An instance that terminates may have its successor after it, but no longer than a node may take
// to come: the hook of others that holds it may hold it for days.
func (d *Launches) limitOwed(g *cluster.Group, awaited map[string]time.Time) {
	n, patience := g.Owed(), g.ProvisionTime(d.Policy)
	if n <= 0 || g.Unanswered || g.IsSuspended(cluster.ProcessLaunch) {
		return
	}
	for _, i := range g.Instances {
		if i.Terminating() && !i.Retained() && d.Now.Before(i.TerminatingSince.Add(patience)) {
			n--
			d.Clock.At(i.TerminatingSince.Add(patience))
		}
	}
	if n <= 0 {
		return
	}
	since, known := d.owedSince(g, n, patience)
	for _, f := range g.Failures {
		if f.At.After(since) && !f.At.After(d.Now) {
			since = f.At
		}
	}
	if !known && d.Now.Before(d.State.GrownAt[g.Name].Add(notedAfter)) {
		d.Clock.At(since.Add(patience))
		return
	}
	if periods := d.Now.Sub(since) / patience; periods > 0 {
		since = since.Add(periods * patience)
		g.Lost[NeverLaunched] = fleet.Failure{At: since, Cause: NeverLaunched}
	}
	d.Clock.At(since.Add(patience))
	awaited[fleet.OwedKey(g.Name, n)] = since
}

// owedSince is since when the group has lacked at least one of the instances that it
// lacks now: where it lacked fewer, it has got none since, and was asked for more. Where
// nothing is known, it is what the group last grew by, unless that is too long ago.
func (d *Launches) owedSince(g *cluster.Group, n int, patience time.Duration) (since time.Time, known bool) {
	since = d.Now
	if grown, grew := d.State.GrownAt[g.Name]; grew && d.Now.Before(grown.Add(patience)) {
		since = grown
	}
	for key, at := range d.Given.Awaited {
		name, lacked, ok := fleet.ParseOwedKey(key)
		if ok && name == g.Name && lacked <= n && (!known || at.Before(since)) {
			since, known = at, true
		}
	}
	return since, known
}

// limitHeld counts the time in which launch hooks hold instances. They may be the
// ones that we wait for, and may as well stay where they are until the hook's own
// timeout.
func (d *Launches) limitHeld(g *cluster.Group, awaited map[string]time.Time) {
	for _, i := range d.Unregistered(g) {
		if i.State != fleet.PendingWait {
			continue
		}
		since, known := d.Given.Awaited[i.ID]
		if !known {
			since = d.Now
		}
		awaited[i.ID] = since
		due := since.Add(g.ProvisionTime(d.Policy))
		if d.Now.Before(due) {
			d.Clock.At(due)
			continue
		}
		d.lose(g, i, due, NeverReleased)
	}
}
