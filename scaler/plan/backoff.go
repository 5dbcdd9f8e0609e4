package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// pauseGroups learns from launches that failed, and from those of which no node
// came. Where a pause runs nothing is grown, and what Auto Scaling still owes
// there does not count as coming.
func (d *decision) pauseGroups() {
	all := make([]*fleet.Group, len(d.groups))
	for i, g := range d.groups {
		all[i] = g.Group
	}
	for _, g := range d.groups {
		for _, f := range g.failures() {
			for _, key := range concerned(all, g.Group, f) {
				d.learnOf(key, f)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.state.BackOffs)) {
		b := d.state.BackOffs[key]
		if d.now.After(b.Until.Add(d.policy.BackOffReset)) {
			delete(d.state.BackOffs, key)
			continue
		}
		name, zone, _ := fleet.ParseBackOffKey(key)
		if g := d.groupOf(name); g != nil && d.now.Before(b.Until) {
			g.pause(zone, b)
			d.clock.at(b.Until)
		}
	}
}

func (d *decision) learnOf(key string, f fleet.Failure) {
	b := d.policy.Learn(d.state.BackOffs[key], f)
	if d.now.After(b.Until.Add(d.policy.BackOffReset)) {
		return // Auto Scaling tells of failures for weeks
	}
	d.state.BackOffs[key] = b
}

// pause notes a running pause; of several in one zone the longest counts.
func (g *group) pause(zone string, b fleet.BackOff) {
	if longest, ok := g.pauses[zone]; !ok || b.Until.After(longest.Until) {
		g.pauses[zone] = b
	}
}

// pausedIn is the running pause of a zone or of the whole group, the longest of
// them; nil without one.
func (g *group) pausedIn(zone string) *fleet.BackOff {
	var longest *fleet.BackOff
	for _, z := range []string{"", zone} {
		if b, ok := g.pauses[z]; ok && (longest == nil || b.Until.After(longest.Until)) {
			longest = &b
		}
	}
	return longest
}

// paused is the pause that ends first of those that keep a group from growing in
// any zone; nil where it may grow in one.
func (g *group) paused() *fleet.BackOff {
	if len(g.looks) == 0 {
		return g.pausedIn("")
	}
	var first *fleet.BackOff
	for _, l := range g.looks {
		b := g.pausedIn(l.Zone)
		if b == nil {
			return nil
		}
		if first == nil || b.Until.Before(first.Until) {
			first = b
		}
	}
	return first
}

// open is the looks of new nodes in zones where no pause runs, and how many nodes
// the group has in each.
func (g *group) open() (looks []*fit.Looks, have []int) {
	for i, l := range g.looks {
		if g.pausedIn(l.Zone) == nil {
			looks, have = append(looks, l), append(have, g.have[i])
		}
	}
	return looks, have
}

// Pause puts a pause into words, by its key in fleet.State.BackOffs: whose it is,
// until when, and after what.
func Pause(key string, b fleet.BackOff) string {
	group, zone, _ := fleet.ParseBackOffKey(key)
	if zone == "" {
		return fmt.Sprintf("%s: in back-off until %s after %s%s", group, clockTime(b.Until), b.Cause, lookAt(&b))
	}
	return fmt.Sprintf("%s: %s until %s%s", group, notIn(b.Cause, []string{zone}), clockTime(b.Until), lookAt(&b))
}

// failures are all that went wrong with launches of the group, the oldest first.
func (g *group) failures() []fleet.Failure {
	list := slices.Clone(g.Failures)
	for _, f := range g.lost {
		if f.Cause != "" {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b fleet.Failure) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Zone, b.Zone))
	})
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
	return backOff(f.At.Add(p.pause(count)), count, f.Cause)
}

// mostCause is the most bytes of a cause that is remembered: it may be the words of an
// agent or of AWS.
const mostCause = 256

func backOff(until time.Time, count int, cause string) fleet.BackOff {
	return fleet.BackOff{Until: until, Count: count, Cause: contract.Shorten(cause, mostCause)}
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
