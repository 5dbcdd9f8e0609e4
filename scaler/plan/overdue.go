package plan

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// Causes of pauses after launches that neither fail nor come to an end.
const (
	// NeverLaunched: Auto Scaling has not launched what the group wants, and tells of
	// no failure, or may not be asked for any.
	NeverLaunched = "NeverLaunched"
	// NeverReleased: somebody's launch hook holds the instance.
	NeverReleased = "NeverReleased"
)

// notedAfter is how long after a growth nothing is remembered of what the group
// waits for: most instances are launched by then.
const notedAfter = time.Minute

// limitWaiting bounds how long pods count on what does not come, by the time that a
// node may take to come. Then its group is paused like after any launch that failed,
// and the pods go to another one. What was asked for stays asked for.
func (d *decision) limitWaiting() {
	awaited := map[string]time.Time{}
	for _, g := range d.groups {
		d.limitOwed(g, awaited)
		d.limitHeld(g, awaited)
	}
	d.state.Awaited = awaited
}

// limitOwed counts the time in which a group got none of the instances that it wants.
// It begins anew with each that came, with each failure that Auto Scaling tells of, and
// with each pause.
func (d *decision) limitOwed(g *group, awaited map[string]time.Time) {
	n := g.owed() - g.leavingCount()
	if n <= 0 || g.unanswered || g.suspended(processLaunch) {
		return
	}
	since, known := d.owedSince(g, n)
	for _, f := range g.Failures {
		if f.At.After(since) && !f.At.After(d.now) {
			since = f.At
		}
	}
	patience := d.policy.MaxNodeProvisionTime
	if !known && d.now.Before(d.state.GrownAt[g.Name].Add(notedAfter)) {
		d.clock.at(since.Add(patience))
		return
	}
	if periods := d.now.Sub(since) / patience; periods > 0 {
		since = since.Add(periods * patience)
		g.lost[NeverLaunched] = fleet.Failure{At: since, Cause: NeverLaunched}
	}
	d.clock.at(since.Add(patience))
	awaited[fleet.OwedKey(g.Name, n)] = since
}

// owedSince is since when the group has lacked at least one of the instances that it
// lacks now: where it lacked fewer, it has got none since, and was asked for more.
func (d *decision) owedSince(g *group, n int) (since time.Time, known bool) {
	since = d.now
	if grown, grew := d.state.GrownAt[g.Name]; grew {
		since = grown
	}
	for key, at := range d.given.Awaited {
		name, lacked, ok := fleet.ParseOwedKey(key)
		if ok && name == g.Name && lacked <= n && (!known || at.Before(since)) {
			since, known = at, true
		}
	}
	return since, known
}

// leavingCount counts the instances on their way out, whose successors may come after
// them.
func (g *group) leavingCount() int {
	n := 0
	for _, i := range g.Instances {
		if i.Leaving() && !i.Retained() {
			n++
		}
	}
	return n
}

// limitHeld counts the time in which launch hooks hold instances. They may be the
// ones that we wait for, and may as well stay where they are until the hook's own
// timeout.
func (d *decision) limitHeld(g *group, awaited map[string]time.Time) {
	for _, i := range d.unregistered(g) {
		if i.State != fleet.PendingWait {
			continue
		}
		since, known := d.given.Awaited[i.ID]
		if !known {
			since = d.now
		}
		awaited[i.ID] = since
		due := since.Add(d.policy.MaxNodeProvisionTime)
		if d.now.Before(due) {
			d.clock.at(due)
			continue
		}
		d.lose(g, i, due, NeverReleased)
	}
}
