package plan

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// NeverJoined is the cause of a pause after an instance that never became a
// node.
const NeverJoined = "NeverJoined"

// pauseGroups learns from launches that failed, and from those of which no node
// came. A group with a running pause is not grown, and what Auto Scaling still
// owes it does not count as coming.
func (d *decision) pauseGroups() {
	for _, g := range d.groups {
		b := d.state.BackOffs[g.Name]
		for _, f := range g.failures() {
			b = d.policy.Learn(b, f)
		}
		if b.Count == 0 || d.now.After(b.Until.Add(d.policy.BackOffReset)) {
			delete(d.state.BackOffs, g.Name)
			continue
		}
		d.state.BackOffs[g.Name] = b
		if d.now.Before(b.Until) {
			g.paused = &b
			d.clock.at(b.Until)
		}
	}
}

// failures are all that went wrong with launches of the group, the oldest first.
func (g *group) failures() []fleet.Failure {
	list := slices.Clone(g.Failures)
	for _, due := range g.lost {
		list = append(list, fleet.Failure{At: due, Cause: NeverJoined})
	}
	slices.SortStableFunc(list, func(a, b fleet.Failure) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause)) })
	return list
}

// Learn takes one failure into account; the result belongs into
// fleet.State.BackOffs, also where Auto Scaling has refused to grow a group. A
// failure during the pause is of the same trouble and only makes it start again;
// the next one after it doubles the pause; after a long time without any the
// count begins anew.
func (p Policy) Learn(b fleet.BackOff, f fleet.Failure) fleet.BackOff {
	count := b.Count
	switch {
	case count > 0 && !f.At.After(b.Until.Add(-p.pause(count))):
		return b // seen before
	case count == 0, f.At.After(b.Until.Add(p.BackOffReset)):
		count = 1
	case !f.At.Before(b.Until):
		count++
	}
	return fleet.BackOff{Until: f.At.Add(p.pause(count)), Count: count, Cause: f.Cause}
}

// pause is how long the group rests after that many failures.
func (p Policy) pause(count int) time.Duration { return doubled(p.BackOff, count, p.MaxBackOff) }

// doubled is first for a count of 1 and twice as much for each more, up to most.
func doubled(first time.Duration, count int, most time.Duration) time.Duration {
	d := first
	for range count - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return min(d, most)
}

// endLost ends instances that should long have become nodes. Others of their
// group would most likely fare no better: it shrinks by them where it may, and
// is paused.
func (d *decision) endLost() {
	unjoined := map[string]time.Time{}
	for _, g := range d.groups {
		joined := map[string]bool{}
		for _, n := range g.nodes {
			joined[n.InstanceID()] = true
		}
		for _, i := range g.live {
			if joined[i.ID] {
				continue
			}
			since, known := d.state.Unjoined[i.ID]
			if !known {
				since = d.now
			}
			unjoined[i.ID] = since
			d.endOverdue(g, i, since.Add(d.policy.MaxNodeProvisionTime))
		}
	}
	d.state.Unjoined = unjoined
}

func (d *decision) endOverdue(g *group, i *fleet.Instance, due time.Time) {
	if d.now.Before(due) {
		d.clock.at(due)
		return
	}
	decrement := g.shrinkable()
	g.lost[i.ID] = due
	g.ended++
	if decrement {
		g.lowered++
	}
	d.do(Terminate{
		Group: g.Name, Instance: i.ID, ID: "never-joined:" + i.ID, Decrement: decrement,
		Why: "no node of it has registered within " + d.policy.MaxNodeProvisionTime.String(),
	})
}
